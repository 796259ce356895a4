"""What the jobs of a call ask SLURM for, in lines."""

from workflow_scripts.workflow.submission_requests import describe_requests, read_request

TRAINING = {"runtime": 23, "mem_mb": 10_000, "gpu": 1, "gres": "", "slurm_extra": ""}


def test_jobs_with_the_same_gpu_and_place_are_one_line():
    long = TRAINING | {"runtime": 24 * 60, "mem_mb": 108_000}
    analysis = {"runtime": 60, "mem_mb": 4000, "slurm_partition": "cpu"}
    requests = [
        read_request("mine", analysis),
        read_request("analyse", analysis),
        read_request("train", TRAINING),
        read_request("train", long),
    ]
    assert describe_requests(requests) == [
        "The first attempts of these jobs ask SLURM for",
        "      2 train          0.38-24 h, 10-108 GB, --gpus=1, the default partition",
        "      1 analyse        1 h, 4 GB, no GPU, partition cpu",
        "      1 mine           1 h, 4 GB, no GPU, partition cpu",
    ]
    assert describe_requests([]) == []


def test_every_option_of_a_request_is_shown():
    by_gres = TRAINING | {"gpu": 0, "gres": "gpu:h100:1", "qos": "normal", "constraint": "80gb"}
    by_gres["slurm_extra"] = "--signal=TERM@780 --reservation=mine"
    by_gres |= {"slurm_partition": "big", "slurm_account": "physics"}
    request = read_request("train", by_gres)
    assert request.gpu == "--gres=gpu:h100:1 --reservation=mine"
    assert request.location == "partition big, account physics, qos normal, constraint 80gb"
    assert read_request("train", TRAINING | {"gpu_model": "a100"}).gpu == "--gpus=a100:1"

"""Requests of a GPU: which options of sbatch they may have, and what Snakemake is given for them."""

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.gpu_request import parse_gpu_request
from workflow_scripts.config.schema import Config, parse_config


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        ("--gpus=1", {"gpu": 1}),
        ("--gpus=h100:1", {"gpu": 1, "gpu_model": "h100"}),
        ("--gres=gpu:1", {"gres": "gpu:1"}),
        ("--gres=gpu:a100:1", {"gres": "gpu:a100:1"}),
        (
            "--partition=big  --gres=gpu:h100:1 --account=my-lab --qos=long --constraint=sxm5",
            {
                "gres": "gpu:h100:1",
                "slurm_partition": "big",
                "slurm_account": "my-lab",
                "qos": "long",
                "constraint": "sxm5",
            },
        ),
        (
            "--gpus-per-node=a100:1 --reservation=course",
            {"slurm_extra": "--gpus-per-node=a100:1 --reservation=course"},
        ),
    ],
)
def test_options_become_the_resources_by_which_the_executor_sets_them(text, resources):
    assert parse_gpu_request(text) == resources


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gres", "'gres' is no option of sbatch"),
        ("-p big --gpus=1", "'-p' is no option of sbatch"),
        ("--gpus 1", "'--gpus' is no option of sbatch"),
        ("--gres=gpu:1;reboot", "no option of sbatch"),
        ("--gres=$(id)", "no option of sbatch"),
        ("--constraint=a|b --gpus=1", "no option of sbatch"),
        ("--gpu=1", "--gpu requests no GPU; did you mean 'gpus'?"),
        ("--gpus=1 --wrap=id", "--wrap requests no GPU; known: account"),
        ("--gpus=1 --time=5", "--time requests no GPU"),
        ("--gpus=0", "write it like --gpus=1"),
        ("--gpus=1 --gpus=2", "--gpus is given twice"),
        ("--gres=gpu:a100:0", "write it like --gres=gpu:1"),
        ("--gpus=1 --gres=gpu:1", "such as --gres=gpu:1; it has 2"),
        ("--partition=big", "give one of --gpus, --gres, --gpus-per-node, --gpus-per-task"),
        ("", "such as --gres=gpu:1; it has 0"),
    ],
)
@pytest.mark.parametrize("key", ["gpu_request", "large_gpu_request"])
def test_other_options_and_what_a_shell_reads_are_refused_in_one_line(key, text, problem):
    with pytest.raises(UserError) as refused:
        parse_config({key: text})
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"config.yaml: key '{key}'") and problem in line


def test_the_key_of_earlier_versions_says_what_to_write_now():
    with pytest.raises(UserError, match=r"key 'gpu_option' is gone; .*`gpu_request: --gres=gpu:1`"):
        parse_config({"gpu_option": "gres"})


def test_one_gpu_of_any_kind_is_the_default():
    config = Config()
    assert parse_gpu_request(config.gpu_request) == {"gpu": 1}
    assert config.large_gpu_request is None

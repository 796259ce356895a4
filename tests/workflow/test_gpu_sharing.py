"""Jobs that share a GPU: in the place of nvidia-smi and MPS, executables answer, fail or print
garbage.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.limits import HANGS
from tests.workflow.fake_gpu import NOISE, FakeTools
from tests.workflow.projects import RUN, TRAINED, Project
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training.run import add_objective
from workflow_scripts.workflow import gpu_sharing
from workflow_scripts.workflow.gpu_sharing import (
    GRAPH_MODELS,
    GRAPH_OBJECTIVES,
    WITH_GRAPHS,
    WITHOUT_GRAPHS,
    Gpu,
    MissingGpuError,
    Sharing,
    choose_gpu,
    choose_job_count,
    estimate_slowdown,
    has_graph_updates,
    list_gpus,
    parse_gpus,
)
from workflow_scripts.workflow.snakemake_call import find_gpu_word, set_gpu_jobs

GPU_PROFILE = ("--workflow-profile", "profiles/gpu")
SMALL = {"scale": "small", "papers": ["sq_transformer"]}
FULL = {"scale": "full", "papers": ["sq_transformer"]}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    """No tool yet, first on PATH; MPS has its folders in the folder of the tools."""
    tools = FakeTools(tmp_path / "tools")
    tools.folder.mkdir()
    monkeypatch.setenv("PATH", tools.path())
    monkeypatch.setenv("TMPDIR", str(tools.folder))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    return tools


def test_the_answer_of_nvidia_smi_is_read_among_noise():
    answer = (
        NOISE
        + "0, GPU-1a2b, 81037\n\n 1 ,  GPU-3c4d , 512 MiB \r\n2, GPU-5e6f, [N/A]\n0, GPU-1a2b, 81037\nGPU lost\n"
    )
    assert parse_gpus(answer) == [
        Gpu(0, "GPU-1a2b", 81037 * 2**20),
        Gpu(1, "GPU-3c4d", 512 * 2**20),
        Gpu(2, "GPU-5e6f", None),
    ]
    assert parse_gpus("") == parse_gpus(NOISE) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "nvidia-smi is not on PATH"),
        ("#!/bin/sh\nprintf '\\000\\377 \\033[31m??\\n'", r"nvidia-smi lists no GPU \("),
        (
            "#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9",
            r"nvidia-smi lists no GPU \(NVIDIA-SMI has failed\)",
        ),
        ("#!/bin/sh\nexit 0", r"nvidia-smi lists no GPU \(no message\)"),
        ("#!/no/interpreter\n", r"nvidia-smi does not answer \(FileNotFoundError\)"),
        ("#!/bin/sh\nexec sleep 60", r"nvidia-smi does not answer \(TimeoutExpired\)"),
    ],
)
def test_why_there_is_no_gpu(script, reason, tools, monkeypatch):
    monkeypatch.setattr(gpu_sharing, "ANSWER_SECONDS", 1)
    if script:
        tools.add("nvidia-smi", script)
    with pytest.raises(MissingGpuError, match=f"^{reason}"):
        list_gpus()


def test_of_two_gpus_one_is_chosen(tools):
    tools.add_smi(10, 70, noise=NOISE)
    first, second = list_gpus()
    assert choose_gpu([first, second], None) == second
    for visible in ("0", "0,1", first.uuid, first.uuid[:6]):
        assert choose_gpu([first, second], visible) == first
    part = choose_gpu([first, second], "MIG-1")
    assert (part.uuid, part.free_bytes) == ("MIG-1", None)
    for visible in ("", "2", "-1"):
        with pytest.raises(
            MissingGpuError, match=f"CUDA_VISIBLE_DEVICES is '{visible}', which names none of the 2"
        ):
            choose_gpu([first, second], visible)


@pytest.mark.parametrize(
    ("config", "free_bytes", "count"),
    [
        (SMALL, 80e9, WITH_GRAPHS.processes),
        (SMALL, None, 1),
        (
            FULL | {"papers": ["carma"]},
            80e9,
            1,
        ),  # no memory was measured, and its largest model has 7 billion parameters
        (SMALL | {"papers": ["carma"]}, 80e9, WITHOUT_GRAPHS.processes),
        (SMALL | {"papers": ["carma"]}, 20e9, 2),  # of 8 GB each, since no memory was measured
        (SMALL | {"papers": ["carma"]}, 1e9, 1),
    ],
)
def test_memory_and_kind_of_task_decide_how_many_share_a_gpu(config, free_bytes, count):
    gpu = Gpu(0, "GPU-0", free_bytes and int(free_bytes))
    assert (
        choose_job_count(load_catalogue(), load_config({"extra": False} | config), gpu)[0] == count
    )


def test_measured_memory_counts_with_its_context():
    run = next(
        run
        for run in gpu_sharing.list_requested_runs(load_catalogue(), load_config(SMALL))
        if "sal" in str(run)
    )
    assert 0.7e9 < gpu_sharing.estimate_process_bytes(load_catalogue(), run, "small") < 0.8e9


def test_updates_are_graphs_where_model_and_objective_say_so():
    """RoBERTa's decoder and CARMA's objective look at values: a GPU does not repeat their updates."""
    catalogue = load_catalogue()
    papers = list(catalogue.papers)
    config = load_config({"scale": "small", "extra": True, "papers": papers})
    runs = gpu_sharing.list_requested_runs(catalogue, config)
    first_runs = {run.variant_key: run for run in runs if not run.weights}
    specs = [resolve_training(catalogue, run, "small") for run in first_runs.values()]
    vocabulary = {"source": ["w"] * 20, "target": ["w"] * 20}
    names = set()
    for spec in specs:
        if spec.kind != "seq2seq":
            assert not has_graph_updates(spec)
            continue
        model = build_model(spec.model, vocabulary)
        alone = TrainingSetup(model, WordLoss(), [], None, capturable=model.capturable)
        setup = add_objective(alone, spec.objective)
        assert has_graph_updates(spec) == setup.capturable, spec.run
        names |= {spec.model.name, spec.objective and spec.objective.name}
    assert names >= {*GRAPH_MODELS, *GRAPH_OBJECTIVES, "roberta_decoder", "carma"}


def test_a_training_takes_longer_among_others():
    sharing = Sharing(processes=3, slowdown=2)
    assert [estimate_slowdown(sharing, count) for count in (1, 2, 3, 6)] == [1, 1.5, 2, 4]
    assert estimate_slowdown(Sharing(processes=1, slowdown=1), 2) == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--logger=terminal"], ["--resources", "gpu=3", "--logger=terminal"]),
        (["-n", "--resources", "mem_mb=9"], ["-n", "--resources", "gpu=3", "mem_mb=9"]),
    ],
)
def test_the_number_is_added_to_the_resources_of_a_call(arguments, expected):
    assert find_gpu_word(arguments) is None
    assert set_gpu_jobs(arguments, 3) == expected
    assert find_gpu_word(expected) == "gpu=3" and find_gpu_word(["--resources=gpu=5"])


# What jobs see of the GPU, in the place of a training.
REPORT = "results/demo/jobs.txt"
RULE = """
rule jobs:
    output: "{REPORT}"
    shell: "env | sort | sed -n /^CUDA/p > {{output}}; {body}"
"""


def add_rule(project: Project, body: str) -> None:
    """Add a rule `jobs`, whose job writes what it sees of the GPU, and then runs the commands of
    `body`.
    """
    snakefile = project.root / "Snakefile"
    snakefile.write_text(snakefile.read_text() + RULE.format(REPORT=REPORT, body=body))


@pytest.fixture
def project_with_job(project: Project) -> Project:
    """A copy with a job that ends at once."""
    add_rule(project, "true")
    return project


def said_of_gpu(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "GPU" in line or "MPS" in line]


def test_mps_runs_while_the_jobs_do(project_with_job, tools):
    tools.add_smi(70, noise=NOISE)
    tools.add_mps()
    done = project_with_job.make(*GPU_PROFILE, REPORT)
    assert said_of_gpu(done) == [
        f"GPU 0: up to {WITH_GRAPHS.processes} jobs at once (more would not be faster)"
    ]
    seen = (project_with_job.root / REPORT).read_text()
    assert "CUDA_VISIBLE_DEVICES=GPU-0a2b-0c3d\n" in seen
    assert f"CUDA_MPS_PIPE_DIRECTORY={tools.folder}/recompose-mps-" in seen
    assert tools.read_calls().count("start") == tools.read_calls().count("quit") == 1
    assert not tools.list_daemons() and not list(tools.folder.glob("recompose-mps-*"))


@pytest.mark.slow
def test_a_daemon_that_runs_already_is_used_and_continues(project_with_job, tools):
    tools.add_smi(70)
    tools.add_mps()
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True, stdout=subprocess.DEVNULL)
    (daemon,) = tools.list_daemons()
    try:
        done = project_with_job.make(*GPU_PROFILE, "--resources", "gpu=5", "--", REPORT)
        assert said_of_gpu(done) == [
            "GPU 0: up to 5 jobs at once (as --resources says)",
            "MPS is running already: it is used, and continues afterwards",
        ]
        assert "quit" not in tools.read_calls() and tools.list_daemons() == [daemon]
        assert "CUDA_MPS" not in (project_with_job.root / REPORT).read_text()
    finally:
        os.kill(int(daemon.read_text()), signal.SIGKILL)


@pytest.mark.faults
@pytest.mark.parametrize("fault", ["echo 'cannot bind the socket' >&2; exit 1", "exit 0"])
def test_without_mps_the_jobs_take_turns(fault, project_with_job, tools, monkeypatch):
    tools.add_smi(70, 30)
    tools.add_mps(fault)
    done = project_with_job.make(*GPU_PROFILE, REPORT)
    chosen, without = said_of_gpu(done)
    count = f"up to {WITH_GRAPHS.processes} jobs at once"
    assert chosen.startswith(f"GPU 0, one of 2; CUDA_VISIBLE_DEVICES chooses another: {count}")
    reason = "cannot bind the socket" if "bind" in fault else "no message"
    assert (
        without
        == f"MPS did not start ({reason}): jobs take turns on the GPU, which is slower than with MPS"
    )
    assert "CUDA_MPS" not in (project_with_job.root / REPORT).read_text()
    assert not list(tools.folder.glob("recompose-mps-*"))


@pytest.mark.slow
def test_where_mps_is_not_installed_a_line_says_so(project_with_job, tools):
    tools.add_smi(70)
    done = project_with_job.make(*GPU_PROFILE, REPORT)
    assert said_of_gpu(done)[1].startswith(
        "nvidia-cuda-mps-control is not on PATH: jobs take turns on the GPU"
    )


@pytest.mark.faults
def test_without_a_gpu_the_jobs_use_the_cpu_unless_the_configuration_demands_one(
    project_with_job, tools
):
    tools.add_mps()
    demanding = project_with_job.reproduce(*GPU_PROFILE, "--config", "device=cuda", "--", REPORT)
    assert demanding.returncode == 1 and not (project_with_job.root / REPORT).exists()
    assert demanding.stderr.splitlines()[-1] == (
        "error: no GPU: nvidia-smi is not on PATH, but config.yaml has device: cuda; set device: auto"
    )
    tools.add_smi(text="\x00garbage\n")
    done = project_with_job.make(*GPU_PROFILE, REPORT)
    assert said_of_gpu(done) == [
        "No GPU is used: nvidia-smi lists no GPU (garbage); trainings run on the CPU"
    ]
    assert tools.read_calls() == []


@pytest.mark.faults
def test_a_failed_job_ends_mps_too(project, tools):
    add_rule(project, "exit 3")
    tools.add_smi(70)
    tools.add_mps()
    done = project.reproduce(*GPU_PROFILE, REPORT)
    assert done.returncode == 1 and "quit" in tools.read_calls() and not tools.list_daemons()


@pytest.mark.parametrize(
    "ctrl_c",
    [
        pytest.param(True, id="ctrl-c-twice", marks=pytest.mark.faults),
        pytest.param(False, id="sigterm", marks=pytest.mark.quick_faults),
    ],
)
def test_stopped_by_a_signal_it_saves_the_training_and_ends_mps(ctrl_c, project, tools):
    """Ctrl-C reaches all processes of the terminal, SIGTERM only ./reproduce itself."""
    project.set_demo_steps(100000)
    tools.add_smi(70)
    tools.add_mps()
    command = ["./reproduce", *GPU_PROFILE, TRAINED]
    process = subprocess.Popen(
        command, cwd=project.root, start_new_session=True, text=True, stderr=subprocess.PIPE
    )
    log = project.root / f"results/demo/logs/train/{RUN}.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and "step" in log.read_text()):
        assert time.monotonic() < deadline and process.poll() is None, "the training did not begin"
        time.sleep(0.2)
    for _ in range(2 if ctrl_c else 1):
        (os.killpg if ctrl_c else os.kill)(process.pid, signal.SIGINT if ctrl_c else signal.SIGTERM)
        time.sleep(0.3)
    said = process.communicate(timeout=HANGS)[1]
    assert process.returncode == 128 + (signal.SIGINT if ctrl_c else signal.SIGTERM), said
    assert "Traceback" not in said and list(
        (project.root / f"results/demo/state/{RUN}").glob("*/step-*")
    )
    assert not tools.list_daemons() and not list((project.root / ".snakemake").glob("locks/*"))

"""Let several trainings share one GPU: choose how many at once, and run NVIDIA's MPS.

MPS is a daemon. Processes that find it by CUDA_MPS_PIPE_DIRECTORY compute at the same time, others
take turns. The daemon that is started here has folders of its own, so that it neither meets nor
ends the daemon of another user.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.workflow.snakemake_call import SnakemakeCall, set_gpu_jobs
from workflow_scripts.workflow.step_times import (
    estimate_hours,
    read_step_times,
)


@dataclass(frozen=True)
class Sharing:
    """How many trainings at once one GPU can use.

    slowdown: how much longer an update then takes than in a training that is alone on the GPU.
    """

    processes: int
    slowdown: float


# More trainings at once make hardly more updates a second in total. Measured on an H100: two
# Transformers of the papers' size, whose updates are graphs, make 223 updates a second, one 183.
WITH_GRAPHS = Sharing(processes=2, slowdown=1.64)
# Estimated from the host's and the GPU's share of an update without graphs.
WITHOUT_GRAPHS = Sharing(processes=8, slowdown=1.2)
# Whose updates a GPU repeats as CUDA graphs. Models say it by `capturable`, objectives by
# CAPTURABLE; here they are named, since reading that needs torch.
GRAPH_KINDS = {"seq2seq"}
GRAPH_MODELS = {"transformer", "lrf", "sq_transformer"}
GRAPH_OBJECTIVES = {"structural_quantisation"}

# What a process needs in addition to the peak of torch's allocator, `gpu_bytes` in step_times.csv.
CONTEXT_BYTES = 0.5e9
# What a training needs of which no GPU memory was measured: the larger of these. Weights, gradients
# and two moments of Adam are 4 checkpoints; activations may need as much.
UNMEASURED_BYTES = 8e9
UNMEASURED_CHECKPOINTS = 8
# The share of the free memory that is used.
MEMORY_SHARE = 0.9

SMI = "nvidia-smi"
MPS_CONTROL = "nvidia-cuda-mps-control"
QUERY = ("--query-gpu=index,uuid,memory.free", "--format=csv,noheader,nounits")
GPU_LINE = re.compile(r"\s*(\d+)\s*,\s*(GPU-[0-9a-fA-F-]+)\s*,\s*(?:(\d+)(?:\s*MiB)?|\[.*\])\s*")
TAKE_TURNS = "jobs take turns on the GPU, which is slower than with MPS"
ANSWER_SECONDS = 60  # for an answer of the driver, which may have to load first
START_TRIES = 5  # a second apart


@dataclass(frozen=True)
class Gpu:
    """A GPU that nvidia-smi lists."""

    index: int
    uuid: str
    free_bytes: int | None  # None: nvidia-smi does not know it


class MissingGpuError(UserError):
    """The error where no GPU can be used. The message says what is missing."""


def list_gpus() -> list[Gpu]:
    """Return the GPUs of this machine. Raises MissingGpuError with the reason if there is none."""
    if not shutil.which(SMI):
        raise MissingGpuError(f"{SMI} is not on PATH")
    try:
        done = subprocess.run(
            [SMI, *QUERY],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingGpuError(f"{SMI} does not answer ({type(error).__name__})") from error
    gpus = parse_gpus(done.stdout)
    if done.returncode != 0 or not gpus:
        raise MissingGpuError(f"{SMI} lists no GPU ({shorten_output(done.stdout + done.stderr)})")
    return gpus


def parse_gpus(output: str) -> list[Gpu]:
    """Parse the answer of nvidia-smi to QUERY. Other lines, such as warnings, are left out."""
    gpus: dict[str, Gpu] = {}
    for line in output.splitlines():
        match = GPU_LINE.fullmatch(line)
        if match is None:
            continue
        index, uuid, free_mib = match.groups()
        free_bytes = None
        if free_mib:
            free_bytes = int(free_mib) * 2**20
        gpus[uuid] = Gpu(int(index), uuid, free_bytes)
    return list(gpus.values())


def shorten_output(output: str) -> str:
    """Return the first line of an output that has a letter, in at most 80 printable characters."""
    for line in output.splitlines():
        text = "".join(character for character in line if character.isprintable()).strip()
        if re.search(r"[A-Za-z]", text):
            return text[:80]
    return "no message"


def choose_gpu(gpus: list[Gpu], visible: str | None) -> Gpu:
    """Return the GPU for all jobs: the first of CUDA_VISIBLE_DEVICES, else that with most memory.

    `visible` is the value of that variable. The free memory of a MIG device is not known. Raises
    MissingGpuError if the variable names no GPU of the list.
    """
    if visible is None:
        return max(gpus, key=lambda gpu: gpu.free_bytes or 0)
    first = visible.split(",")[0].strip()
    if first.startswith("MIG-"):  # a part of a GPU, which is not in the list
        return Gpu(gpus[0].index, first, free_bytes=None)
    for gpu in gpus:
        if first == str(gpu.index):
            return gpu
        if first.startswith("GPU-") and gpu.uuid.startswith(first):
            return gpu
    listed = f"none of the {len(gpus)} GPUs of {SMI}"
    raise MissingGpuError(f"CUDA_VISIBLE_DEVICES is '{visible}', which names {listed}")


def choose_job_count(catalogue: Catalogue, config: Config, gpu: Gpu) -> tuple[int, str]:
    """Return how many jobs share the GPU at once, and the reason.

    The number is that of the kind of run with most hours, unless the free memory has room for fewer
    of the largest run of any kind.
    """
    runs = [run for run in list_requested_runs(catalogue, config) if not run.weights]
    if not runs:
        return 1, "no training is requested"
    if gpu.free_bytes is None:
        return 1, f"{SMI} does not know the free memory"
    sharing = find_sharing(catalogue, config, runs)
    largest = max(estimate_process_bytes(catalogue, run, config.scale) for run in runs)
    fitting = int(MEMORY_SHARE * gpu.free_bytes / largest)
    if fitting < sharing.processes:
        free = f"{gpu.free_bytes / 1e9:.1f} GB are free"
        return max(fitting, 1), f"{free}, and one needs up to {largest / 1e9:.1f} GB"
    return sharing.processes, "more would not be faster"


def find_sharing(catalogue: Catalogue, config: Config, runs: list[Run]) -> Sharing:
    """Return how the runs, of which there is at least one, share a GPU.

    Runs whose updates are graphs share it in another way than runs whose updates are not. All runs
    share it in the way of the group that needs more hours, by the measured step times. If no run
    has such a time, the larger group decides.
    """
    hours: dict[Sharing, float] = defaultdict(float)
    counts: dict[Sharing, float] = defaultdict(float)
    for run in runs:
        spec = resolve_training(catalogue, run, config.scale, config.precision)
        sharing = WITH_GRAPHS if has_graph_updates(spec) else WITHOUT_GRAPHS
        estimate = estimate_hours(catalogue, [run], config.scale, config.precision, "cuda")
        hours[sharing] += estimate.total
        counts[sharing] += 1
    weights = hours if any(hours.values()) else counts
    return max(weights, key=weights.__getitem__)


def has_graph_updates(spec: RunSpec) -> bool:
    """Whether a GPU repeats the updates of a training as CUDA graphs."""
    if spec.kind not in GRAPH_KINDS or spec.model.name not in GRAPH_MODELS:
        return False
    return spec.objective is None or spec.objective.name in GRAPH_OBJECTIVES


def estimate_process_bytes(catalogue: Catalogue, run: Run, scale: str) -> float:
    """Estimate the GPU memory of the process of one training."""
    times = read_step_times(catalogue)
    measured = times.find_gpu_bytes(run, scale)
    if measured is not None:
        return measured + CONTEXT_BYTES
    checkpoint = times.estimate_checkpoint_bytes(run, scale) or 0
    return max(UNMEASURED_BYTES, UNMEASURED_CHECKPOINTS * checkpoint)


def estimate_slowdown(sharing: Sharing, count: int) -> float:
    """Estimate how much longer an update takes in one of `count` trainings than in one alone."""
    if count > sharing.processes:
        return sharing.slowdown * count / sharing.processes
    if sharing.processes == 1:
        return sharing.slowdown
    return 1 + (sharing.slowdown - 1) * (count - 1) / (sharing.processes - 1)


@dataclass(frozen=True)
class MpsFolders:
    """Where an MPS daemon has its pipe and its log: the same for each call in this directory."""

    root: Path

    @classmethod
    def locate(cls) -> "MpsFolders":
        """Return folders with short names on a local disk, as sockets need them."""
        name = hashlib.sha256(os.path.realpath(".").encode()).hexdigest()[:12]
        return cls(Path(tempfile.gettempdir()) / f"recompose-mps-{os.getuid()}-{name}")

    def make(self) -> None:
        """Make the folders. Raises OSError if another user has one of that name."""
        self.root.mkdir(mode=0o700, exist_ok=True)
        if self.root.stat().st_uid != os.getuid():
            raise PermissionError(f"{self.root} is another user's")
        for name in ("pipe", "log"):
            (self.root / name).mkdir(exist_ok=True)

    def add_to(self, environment: dict[str, str]) -> dict[str, str]:
        """Return the environment of a process that uses the daemon."""
        return environment | {
            "CUDA_MPS_PIPE_DIRECTORY": str(self.root / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(self.root / "log"),
        }


def send_to_mps(command: str, environment: dict[str, str]) -> bool:
    """Send a command to the daemon of an environment. Return whether a daemon has obeyed."""
    try:
        done = subprocess.run(
            [MPS_CONTROL],
            env=environment,
            input=f"{command}\n",
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_SECONDS,
            start_new_session=True,  # Ctrl-C does not reach it
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "cannot find" not in (done.stdout + done.stderr).lower()


def start_mps(environment: dict[str, str], folders: MpsFolders) -> str:
    """Start a daemon in `folders`, which `environment` names. A daemon that is there is used.

    Return why none runs; empty if one does.
    """
    if send_to_mps("get_server_list", environment):
        return ""
    try:
        # A file, no pipe: the daemon inherits it, and a pipe would be read until the daemon ends.
        with open(folders.root / "start.txt", "w+", encoding="utf-8", errors="replace") as messages:
            done = subprocess.run(
                [MPS_CONTROL, "-d"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                timeout=ANSWER_SECONDS,
                start_new_session=True,
            )
            messages.seek(0)
            fault = shorten_output(messages.read())
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return fault
    for _ in range(START_TRIES):
        if send_to_mps("get_server_list", environment):
            return ""
        time.sleep(1)
    return fault


def stop_mps(environment: dict[str, str], folders: MpsFolders) -> None:
    """End the daemon in `folders`, and delete them. Print how to end it where that fails."""
    send_to_mps("quit", environment)
    if send_to_mps("get_server_list", environment):
        pipe = environment["CUDA_MPS_PIPE_DIRECTORY"]
        command = f"echo quit | CUDA_MPS_PIPE_DIRECTORY={pipe} {MPS_CONTROL}"
        print_line(f"MPS did not end; end it with: {command}")
    else:
        shutil.rmtree(folders.root, ignore_errors=True)


def print_line(text: str) -> None:
    """Print a line to stderr at once, as Snakemake's messages are."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class GpuSetup:
    """How Snakemake is called so that its jobs share a GPU."""

    arguments: list[str]
    environment: dict[str, str]
    has_gpu: bool


def prepare_gpu(call: SnakemakeCall) -> GpuSetup:
    """Choose the GPU of a call, and how many jobs share it, unless the call says so itself.

    Without a GPU a line says so, and the jobs use the CPU. Raises UserError if config.yaml demands
    a GPU.
    """
    environment = dict(os.environ)
    device = call.config.device
    try:
        if device not in ("auto", "cuda"):
            raise MissingGpuError(f"config.yaml has device: {device}")
        gpus = list_gpus()
        gpu = choose_gpu(gpus, environment.get("CUDA_VISIBLE_DEVICES"))
    except MissingGpuError as error:
        if device == "cuda":
            demand = "config.yaml has device: cuda; set device: auto"
            raise UserError(f"no GPU: {error}, but {demand}") from error
        used = "CPU" if device == "auto" else device
        print_line(f"No GPU is used: {error}; trainings run on the {used}")
        # No job uses a GPU, so nothing limits their number but the cores.
        environment["CUDA_VISIBLE_DEVICES"] = ""
        return GpuSetup(limit_gpu_jobs(call, call.cores or 1), environment, has_gpu=False)

    count, reason = choose_job_count(load_catalogue(), call.config, gpu)
    if call.sets_gpu_jobs:
        count = call.gpu_jobs or 1
        reason = "as --resources says"
    # By its UUID: a daemon numbers the GPUs of CUDA_VISIBLE_DEVICES again.
    environment["CUDA_VISIBLE_DEVICES"] = gpu.uuid
    others = ""
    if len(gpus) > 1:
        others = f", one of {len(gpus)}; CUDA_VISIBLE_DEVICES chooses another"
    print_line(f"GPU {gpu.index}{others}: up to {count} jobs at once ({reason})")
    return GpuSetup(limit_gpu_jobs(call, count), environment, has_gpu=True)


def limit_gpu_jobs(call: SnakemakeCall, count: int) -> list[str]:
    """Return the arguments of the call with this limit of jobs on the GPU, unless they have one."""
    if call.sets_gpu_jobs:
        return call.arguments
    return set_gpu_jobs(call.arguments, count)


@contextmanager
def run_mps(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Run MPS during the block, and yield the environment of processes that use it.

    A daemon that is found is used, and continues; one that is started here ends with the block.
    Where there is no MPS, a line says why.
    """
    if not shutil.which(MPS_CONTROL):
        print_line(f"{MPS_CONTROL} is not on PATH: {TAKE_TURNS}")
        yield environment
        return
    if send_to_mps("get_server_list", environment):
        print_line("MPS is running already: it is used, and continues afterwards")
        yield environment
        return
    folders = MpsFolders.locate()
    try:
        folders.make()
    except OSError as error:
        print_line(f"MPS is not started ({error}): {TAKE_TURNS}")
        yield environment
        return
    own_environment = folders.add_to(environment)
    try:
        fault = start_mps(own_environment, folders)
        if fault:
            print_line(f"MPS did not start ({fault}): {TAKE_TURNS}")
            yield environment
        else:
            yield own_environment
    finally:
        stop_mps(own_environment, folders)

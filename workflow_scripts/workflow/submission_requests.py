"""Say what the jobs of a call ask SLURM for, before they are submitted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workflow_scripts.workflow.job_times import format_time_limits

# Rules that are submitted, in the order of the data flow. Those of a user come after them.
RULES = ("prepare_large", "search", "train", "evaluate", "candidates", "intervene", "analyse")
# Resources that say where a job runs.
LOCATION = ("slurm_partition", "slurm_account", "qos", "constraint")


@dataclass(frozen=True)
class SlurmRequest:
    """What a submitted job of a rule asks for. minutes: of its first attempt."""

    rule: str
    minutes: int
    megabytes: int
    gpu: str  # options of sbatch, such as --gpus=1
    location: str  # partition, account, QOS and constraint, as far as they are given


def read_request(rule: str, resources: Mapping[str, Any]) -> SlurmRequest:
    """Read the request of a job from its resources."""
    location = []
    for name in LOCATION:
        value = resources.get(name)
        if value:
            location.append(f"{name.removeprefix('slurm_')} {value}")
    return SlurmRequest(
        rule=rule,
        minutes=int(resources["runtime"]),
        megabytes=int(resources["mem_mb"]),
        gpu=format_gpu(resources),
        location=", ".join(location),
    )


def format_gpu(resources: Mapping[str, Any]) -> str:
    """Format the options by which a job asks for a GPU; empty if it asks for none."""
    options = []
    if resources.get("gres"):
        options.append(f"--gres={resources['gres']}")
    if resources.get("gpu"):
        words = [resources.get("gpu_model"), resources["gpu"]]
        options.append(f"--gpus={':'.join(str(word) for word in words if word)}")
    extra = str(resources.get("slurm_extra") or "").split()
    options += [word for word in extra if not word.startswith("--signal=")]
    return " ".join(options)


def describe_requests(requests: Iterable[SlurmRequest]) -> list[str]:
    """Describe requests, those of a rule for the same GPU and partition in a line."""
    groups: dict[tuple[str, str, str], list[SlurmRequest]] = {}
    places = {rule: place for place, rule in enumerate(RULES)}
    for request in sorted(requests, key=lambda request: places.get(request.rule, len(places))):
        key = (request.rule, request.gpu, request.location)
        groups.setdefault(key, []).append(request)
    if not groups:
        return []
    lines = ["The first attempts of these jobs ask SLURM for"]
    for (rule, gpu, location), group in groups.items():
        time = format_time_limits(request.minutes for request in group)
        memory = format_range([request.megabytes / 1000 for request in group])
        words = [time, f"{memory} GB", gpu or "no GPU", location or "the default partition"]
        lines.append(f"{len(group):7,} {rule:14} {', '.join(words)}")
    return lines


def format_range(values: list[float]) -> str:
    """Format the least and the largest value, of those below ten two significant digits."""
    texts = []
    for value in (min(values), max(values)):
        texts.append(f"{value:.2g}" if value < 10 else f"{value:.0f}")
    return texts[0] if texts[0] == texts[1] else "-".join(texts)

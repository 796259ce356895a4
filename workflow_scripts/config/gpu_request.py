"""How a GPU is requested from SLURM: options of sbatch, as resources of Snakemake."""

import re

from workflow_scripts.common.validation import suggest_name

# Options that request a GPU; a request has one of them.
GPU_OPTIONS = ("gpus", "gres", "gpus-per-node", "gpus-per-task")
# The executor sets these options from resources, and refuses them in slurm_extra.
RESOURCES_OF_OPTIONS = {
    "gres": "gres",
    "partition": "slurm_partition",
    "account": "slurm_account",
    "qos": "qos",
    "constraint": "constraint",
}
# Options that sbatch is given as they are.
OTHER_OPTIONS = ("gpus-per-node", "gpus-per-task", "reservation", "nodelist", "exclude")
KNOWN_OPTIONS = ("gpus", *RESOURCES_OF_OPTIONS, *OTHER_OPTIONS)
OPTION = re.compile(r"--([a-z-]+)=([A-Za-z0-9_.:,+-]+)")
# What the executor accepts: a number, with the type of the GPU before it or without.
GPUS = re.compile(r"(?:([A-Za-z0-9_.]+):)?([1-9][0-9]*)")
GRES = re.compile(r"[A-Za-z0-9_]+(:[A-Za-z0-9_.]+)?(:[1-9][0-9]*)?")

GpuResources = dict[str, str | int]  # name of a resource of Snakemake -> value


def require_gpu_request(text: str) -> str:
    """Return the text. Raises ValueError unless it has options of sbatch that request a GPU."""
    parse_gpu_request(text)
    return text


def parse_gpu_request(text: str) -> GpuResources:
    """Return the resources of Snakemake for options such as `--partition=big --gres=gpu:h100:1`.

    Raises ValueError for other options and values, and if none of them requests a GPU.
    """
    resources: GpuResources = {}
    extra = []
    names = []
    for word in text.split():
        name, value = _split_option(word)
        if name in names:
            raise ValueError(f"--{name} is given twice; remove one")
        names.append(name)
        if name == "gpus":
            resources |= _parse_gpus(value)
        elif name in RESOURCES_OF_OPTIONS:
            resources[RESOURCES_OF_OPTIONS[name]] = value
        else:
            extra.append(word)
    n_requests = len(set(names).intersection(GPU_OPTIONS))
    if n_requests != 1:
        options = ", ".join(f"--{name}" for name in GPU_OPTIONS)
        raise ValueError(f"give one of {options}, such as --gres=gpu:1; it has {n_requests}")
    if extra:
        resources["slurm_extra"] = " ".join(extra)
    return resources


def _split_option(word: str) -> tuple[str, str]:
    """Return name and value of an option. Raises ValueError if it may not be in a request."""
    match = OPTION.fullmatch(word)
    if match is None:
        raise ValueError(
            f"{word!r} is no option of sbatch of the form --name=value, whose value has letters, "
            "digits and _.:,+- alone"
        )
    name, value = match.groups()
    if name not in KNOWN_OPTIONS:
        raise ValueError(f"--{name} requests no GPU; {suggest_name(name, KNOWN_OPTIONS)}")
    if name == "gres" and not GRES.fullmatch(value):
        raise ValueError(f"{word}: write it like --gres=gpu:1 or --gres=gpu:a100:1")
    return name, value


def _parse_gpus(value: str) -> GpuResources:
    """Return the resources of --gpus=<value>. Raises ValueError for a wrong value."""
    match = GPUS.fullmatch(value)
    if match is None:
        raise ValueError(f"--gpus={value}: write it like --gpus=1 or --gpus=a100:1")
    model, count = match.groups()
    resources: GpuResources = {"gpu": int(count)}
    if model:
        resources["gpu_model"] = model
    return resources

"""Resources by which a job on a run asks for a GPU. `JobInputs` gives its memory and its time."""

from collections.abc import Mapping
from typing import Any

from workflow_scripts.config.gpu_request import GpuResources, parse_gpu_request
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.run_job_spec import JobResources

# Of a job without a GPU. gpu: of this machine, `--resources gpu=N` limits them.
NO_GPU: GpuResources = {"gpu": 0, "gres": "", "slurm_extra": ""}


class GpuRequests:
    """How jobs on runs ask for a GPU: by `gpu_request` and `large_gpu_request` of config.yaml.

    defaults: the default resources of the user's profile, such as the partition.
    """

    def __init__(self, config: Config, defaults: Mapping[str, Any] | None = None) -> None:
        self.usual = parse_gpu_request(config.gpu_request)
        self.large = parse_gpu_request(config.large_gpu_request or config.gpu_request)
        self.defaults = defaults or {}

    @property
    def names(self) -> list[str]:
        """The resources that a request sets, those of `NO_GPU` first."""
        return list(NO_GPU | self.usual | self.large)

    def get_resources(
        self, resources: JobResources, device: str, is_submitted: bool
    ) -> dict[str, Any]:
        """Return the resources of a job on a run by which it asks for a GPU, by `names`.

        A request that leaves out what the other one sets keeps the default of the user's profile.
        """
        asked: dict[str, Any] = {name: self.defaults.get(name) for name in self.names}
        asked |= NO_GPU
        if device != "cuda":
            return asked
        if not is_submitted:
            return asked | {"gpu": 1}
        if resources.large_gpu:
            return asked | self.large
        return asked | self.usual


def format_save_signal(resources: JobResources) -> str:
    """Return the option of sbatch that tells a training early to save its state; empty if none."""
    if not resources.save_seconds:
        return ""
    return f"--signal=TERM@{resources.save_seconds}"


def read_default_resources(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return Snakemake's `--default-resources` as the user wrote them, from its settings."""
    values = {}
    for name, setting in (settings or {}).items():
        value = getattr(setting, "raw", setting)
        if isinstance(value, str | int):
            values[name] = value
    return values

"""What the jobs of a run are given: results/<scale>/specs/<run>.json.

The file is written before the first job starts.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.packages import load_kind_settings
from workflow_scripts.tasks.run_spec import (
    GivenWeightsSpec,
    RunSpec,
    read_given_weights_spec,
    read_run_spec,
)
from workflow_scripts.tasks.settings import Evaluation


class JobResources(StrictModel):
    """What each job on a run asks a cluster for at its first attempt.

    `jobs` in catalogue/scales.yaml gives them.
    """

    memory: int
    hours: int
    save_seconds: int
    large_gpu: bool


@dataclass(frozen=True)
class RunJobSpec:
    """A run with all that its jobs need to know.

    scale, resources: None for a spec that a person wrote. evaluation, intervention: None if the run
    is not scored so. shared_spec: of given weights, the spec that all seeds share. analysis_plans:
    file in papers/ -> sha256 of each analysis plan with a primary claim that the run decides.
    """

    spec: RunSpec | GivenWeightsSpec
    scale: str | None = None
    evaluation: Evaluation | None = None
    intervention: Intervention | None = None
    shared_spec: GivenWeightsSpec | None = None
    resources: JobResources | None = None
    analysis_plans: dict[str, str] = field(default_factory=dict)

    @property
    def training_spec(self) -> RunSpec:
        """The spec as that of a training. Raises UserError if the run scores given weights."""
        if not isinstance(self.spec, RunSpec):
            raise UserError(f"{self.spec.run} scores given weights and is no training")
        return self.spec

    def to_json(self) -> dict[str, Any]:
        """Return the content of the run's spec file."""
        content: dict[str, Any] = {
            "scale": self.scale,
            "spec": self.spec.to_json(),
            "analysis_plans": self.analysis_plans,
        }
        if isinstance(self.spec, GivenWeightsSpec) and self.spec.start:
            content["start"] = self.spec.start.to_json()
        if self.shared_spec:
            content["shared_spec"] = self.shared_spec.to_json()
        if self.evaluation:
            content["evaluation"] = self.evaluation.model_dump(mode="json", exclude_defaults=True)
        if self.intervention:
            content["intervention"] = self.intervention.model_dump(
                mode="json", exclude_defaults=True
            )
        if self.resources:
            content["resources"] = self.resources.model_dump(mode="json")
        return content


def read_run_job_spec(file: Path) -> RunJobSpec:
    """Read the spec file of a run, or a file with the spec of a training alone.

    Raises UserError if it is wrong.
    """
    content = read_mapping(file)
    if "spec" not in content:
        return RunJobSpec(read_run_spec(content, file))
    spec = _read_spec(content, file)
    job_spec = RunJobSpec(
        spec, content.get("scale"), analysis_plans=content.get("analysis_plans", {})
    )
    if "evaluation" in content:
        evaluation_class = load_kind_settings(spec.kind).evaluation
        evaluation = parse_as(evaluation_class, content["evaluation"], file, "evaluation")
        job_spec = replace(job_spec, evaluation=evaluation)
    if "intervention" in content:
        intervention = parse_as(Intervention, content["intervention"], file, "intervention")
        job_spec = replace(job_spec, intervention=intervention)
    if "resources" in content:
        resources = parse_as(JobResources, content["resources"], file, "resources")
        job_spec = replace(job_spec, resources=resources)
    if "shared_spec" in content:
        shared_spec = read_given_weights_spec(content["shared_spec"], file, "shared_spec")
        job_spec = replace(job_spec, shared_spec=shared_spec)
    return job_spec


def _read_spec(content: dict[str, Any], file: Path) -> RunSpec | GivenWeightsSpec:
    spec = content["spec"]
    if not isinstance(spec, dict):
        raise UserError(f"{file}: key 'spec' must be a mapping; plan the run again")
    if "weights" not in spec:
        return read_run_spec(spec, file, "spec")
    weights_spec = read_given_weights_spec(spec, file, "spec")
    if "start" not in content:
        return weights_spec
    return replace(weights_spec, start=read_run_spec(content["start"], file, "start"))

"""Settings as `config.run_specs` resolves them, with the defaults that a spec leaves out."""

from workflow_scripts.config import run_specs
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.settings import Evaluation


def resolve_run(catalogue, run, scale, precision="auto"):
    return run_specs.add_defaults(run_specs.resolve_run(catalogue, run, scale, precision))


def resolve_evaluation(catalogue, run, scale):
    return Evaluation(**run_specs.resolve_evaluation(catalogue, run, scale)).model_dump()


def resolve_intervention(catalogue, run, scale):
    return Intervention(**run_specs.resolve_intervention(catalogue, run, scale)).model_dump()

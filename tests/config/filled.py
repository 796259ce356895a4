"""Settings as `config.specs` resolves them, with the defaults that a spec leaves out."""

from workflow_scripts.config import specs
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.settings import Evaluation


def resolve_run(catalogue, run, scale, precision="auto"):
    return specs.add_defaults(specs.resolve_run(catalogue, run, scale, precision))


def resolve_evaluation(catalogue, run, scale):
    return Evaluation(**specs.resolve_evaluation(catalogue, run, scale)).model_dump()


def resolve_intervention(catalogue, run, scale):
    return Intervention(**specs.resolve_intervention(catalogue, run, scale)).model_dump()

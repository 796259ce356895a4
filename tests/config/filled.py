"""Settings as `config.specs` resolves them, with the defaults that a spec in JSON leaves out."""

from tests.config.as_json import parse
from workflow_scripts.config import specs
from workflow_scripts.config.setting_places import list_all_settings


def resolve_run(catalogue, run, scale, precision="auto"):
    spec = specs.resolve_run(catalogue, parse(run), scale, precision)
    return spec.to_json() | list_all_settings(spec)


def resolve_evaluation(catalogue, run, scale):
    return specs.resolve_evaluation(catalogue, run, scale).model_dump()


def resolve_intervention(catalogue, run, scale):
    return specs.resolve_intervention(catalogue, run, scale).model_dump()

"""What `config.specs` resolves, as the content of JSON files, which a test can change."""

from workflow_scripts.common.run_names import Run
from workflow_scripts.config import specs


def parse(run: Run | str) -> Run:
    """Tests name runs by their text, too."""
    return Run.parse(run) if isinstance(run, str) else run


def resolve_run(catalogue, run, scale, precision="auto"):
    return specs.resolve_run(catalogue, parse(run), scale, precision).to_json()


def resolve_data(catalogue, task, scale):
    return specs.resolve_data(catalogue, task, scale).to_json()


def resolve_evaluation(catalogue, run, scale):
    return specs.resolve_evaluation(catalogue, run, scale).model_dump(
        mode="json", exclude_defaults=True
    )

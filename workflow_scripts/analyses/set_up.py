"""Sizes of data sets and models, from the files of preparation and training."""

from typing import Any

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.options import merge_options


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Report `examples` of each task and split, and the sizes of each method's causal language model.

    Sizes are `parameters` (million), `layers`, `width`, `heads` and `feed_forward`, from the first run of the method
    (the column subset): all have one size. n counts examples or parameters.
    """
    merge_options(options)
    by_task, by_method = ({getattr(run, name): run for run in reversed(runs)} for name in ("task", "method"))
    examples = [row for task, run in sorted(by_task.items()) for row in count_examples(task, run)]
    return AnalysisResult(
        examples + [row for method, run in sorted(by_method.items()) for row in read_model_sizes(method, run)]
    )


def count_examples(task: str, run: TrainedRun) -> list[dict[str, Any]]:
    """Make score rows of the number of examples in each split."""
    manifest = read_json(run.data / "dataset.json")
    what = {"task": task, "subset": "all", "metric": "examples", "unit": "examples", "protocol": manifest["protocol"]}
    return [
        what | {"split": split, "value": float(counts["rows"]), "n": counts["rows"]}
        for split, counts in manifest["splits"].items()
    ]


def read_model_sizes(method: str, run: TrainedRun) -> list[dict[str, Any]]:
    """Make score rows of the sizes of a run's model, from the configuration in its checkpoint."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(run.folder / "checkpoint", local_files_only=True)
    count = read_json(run.folder / "run.json")["parameters"]
    # GPT-2 has no value if it uses four times the width.
    feed_forward = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None)
    values = {
        "parameters": (count / 1e6, "million"),
        "layers": (config.num_hidden_layers, "layers"),
        "width": (config.hidden_size, "dimensions"),
        "heads": (config.num_attention_heads, "heads"),
        "feed_forward": (feed_forward or 4 * config.hidden_size, "dimensions"),
    }
    what = {"task": run.task, "subset": method, "n": count, "protocol": run.protocol}
    return [what | {"metric": name, "value": float(value), "unit": unit} for name, (value, unit) in values.items()]

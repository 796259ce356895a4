"""What was trained, on how much: sizes of the data sets and of the models, from what preparation and training wrote."""

from typing import Any

from workflow_scripts.analyses.trained_runs import AnalysisResult, TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.options import merge_options


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Metric `examples` for each task and split; for each method (in the column subset) `parameters` (million),
    `layers`, `width`, `heads` and `feed_forward` of its causal language model. n counts examples or parameters.

    All runs of a method are of one size: the first one tells it.
    """
    merge_options(options)
    by_task, by_method = ({getattr(run, name): run for run in reversed(runs)} for name in ("task", "method"))
    examples = [row for task, run in sorted(by_task.items()) for row in count_examples(task, run)]
    return AnalysisResult(
        examples + [row for method, run in sorted(by_method.items()) for row in read_model_sizes(method, run)]
    )


def count_examples(task: str, run: TrainedRun) -> list[dict[str, Any]]:
    """Score rows: how many examples the splits of a run's data have."""
    manifest = read_json(run.data / "dataset.json")
    what = {"task": task, "subset": "all", "metric": "examples", "unit": "examples", "protocol": manifest["protocol"]}
    return [
        what | {"split": split, "value": float(counts["rows"]), "n": counts["rows"]}
        for split, counts in manifest["splits"].items()
    ]


def read_model_sizes(method: str, run: TrainedRun) -> list[dict[str, Any]]:
    """Score rows: the sizes of a run's model, by the configuration beside its weights."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(run.folder / "checkpoint", local_files_only=True)
    count = read_json(run.folder / "run.json")["parameters"]
    # GPT-2 has no number where it takes four times the width.
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

"""Sizes of data sets and models, from the files of preparation and training."""

from typing import Any

from transformers import AutoConfig

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.scores import make_scores


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Report `examples` of each task and split, and the sizes of each method's causal language model.

    Sizes are `parameters` (million), `layers`, `width`, `heads` and `feed_forward`, from the first run of the method
    (the column subset). n counts examples or parameters.
    """
    merge_options(options)
    by_task, by_method = (
        {getattr(run, name): run for run in reversed(runs)} for name in ("task", "method")
    )
    scores = []
    for task, run in sorted(by_task.items()):
        dataset = read_json(run.data / "dataset.json")
        for split, counts in dataset["splits"].items():
            where = {"task": task, "split": split, "protocol": dataset["protocol"]}
            scores += make_scores(where, {"examples": (counts["rows"], "examples", counts["rows"])})
    for method, run in sorted(by_method.items()):
        config = AutoConfig.from_pretrained(run.folder / "checkpoint", local_files_only=True)
        count = read_json(run.folder / "run.json")["parameters"]
        # GPT-2 has no value if it uses four times the width.
        feed_forward = getattr(config, "intermediate_size", None) or getattr(
            config, "n_inner", None
        )
        values = {
            "parameters": (count / 1e6, "million", count),
            "layers": (config.num_hidden_layers, "layers", count),
            "width": (config.hidden_size, "dimensions", count),
            "heads": (config.num_attention_heads, "heads", count),
            "feed_forward": (feed_forward or 4 * config.hidden_size, "dimensions", count),
        }
        scores += make_scores(
            {"task": run.task, "subset": method, "protocol": run.protocol}, values
        )
    return AnalysisResult(scores)

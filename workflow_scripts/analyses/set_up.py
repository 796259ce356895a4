"""Sizes of data sets and models, from the files of preparation and training."""

from transformers import AutoConfig, PretrainedConfig

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.evaluation.scores import make_scores


def analyse(runs: list[TrainedRun], options: NoOptions) -> AnalysisResult:
    """Report `examples` of each task and split, and the sizes of each method's model.

    The models are causal language models. Sizes are `parameters` (million), `layers`, `width`,
    `heads` and `feed_forward`, from the first run of the method (the column subset). n counts
    examples or parameters.
    """
    first_of_task: dict[str, TrainedRun] = {}
    first_of_method: dict[str, TrainedRun] = {}
    for run in runs:
        first_of_task.setdefault(run.task, run)
        first_of_method.setdefault(run.method, run)
    scores = []
    for task, run in sorted(first_of_task.items()):
        dataset = read_json(run.dataset)
        for split, counts in dataset["splits"].items():
            columns = {"task": task, "split": split, "protocol": dataset["protocol"]}
            examples = counts["rows"]
            scores += make_scores(columns, {"examples": (examples, "examples", examples)})
    for method, run in sorted(first_of_method.items()):
        config = AutoConfig.from_pretrained(run.files.checkpoint, local_files_only=True)
        count = read_json(run.files.manifest)["parameters"]
        values = {
            "parameters": (count / 1e6, "million", count),
            "layers": (config.num_hidden_layers, "layers", count),
            "width": (config.hidden_size, "dimensions", count),
            "heads": (config.num_attention_heads, "heads", count),
            "feed_forward": (find_feed_forward(config), "dimensions", count),
        }
        columns = {"task": run.task, "subset": method, "protocol": run.protocol}
        scores += make_scores(columns, values)
    return AnalysisResult(scores)


def find_feed_forward(config: PretrainedConfig) -> int:
    """Find the width of the feed-forward parts of a model."""
    for name in ("intermediate_size", "n_inner"):
        size = getattr(config, name, None)
        if size:
            return size
    # GPT-2 has no value if it uses four times the width.
    return 4 * config.hidden_size

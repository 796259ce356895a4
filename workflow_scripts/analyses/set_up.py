"""Sizes of data sets and models, from the files of preparation and training."""

from transformers import PretrainedConfig

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import make_scores
from workflow_scripts.models.hugging_face import load_pretrained_config, load_tokenizer
from workflow_scripts.tasks.checkpoints import read_run
from workflow_scripts.tasks.prompt.training_setup import encode_prompts, get_prompt_settings


def analyse(runs: list[TrainedRun], options: NoOptions) -> AnalysisResult:
    """Report `examples` of each task and split, and the sizes of each method's model.

    The examples of a task are all that were prepared, and in rows of a method (the column subset)
    those whose answer is one token for its model: the others are left out of training and test. The
    models are causal language models. Sizes are `parameters` (million), `layers`, `width`,
    `heads` and `feed_forward`, from the first run of the method. n counts examples or parameters.
    """
    first_of_task: dict[str, TrainedRun] = {}
    first_of_method: dict[str, TrainedRun] = {}
    first_of_both: dict[tuple[str, str], TrainedRun] = {}
    for run in runs:
        first_of_task.setdefault(run.task, run)
        first_of_method.setdefault(run.method, run)
        first_of_both.setdefault((run.task, run.method), run)
    scores = []
    for task, run in sorted(first_of_task.items()):
        dataset = read_json(run.dataset)
        for split, counts in dataset["splits"].items():
            columns = {"task": task, "split": split, "protocol": dataset["protocol"]}
            examples = counts["rows"]
            scores += make_scores(columns, {"examples": (examples, "examples", examples)})
    for (task, method), run in sorted(first_of_both.items()):
        protocol = read_json(run.dataset)["protocol"]
        columns = {"task": task, "subset": method, "protocol": protocol}
        for split, examples in count_answerable(run).items():
            values = {"examples": (examples, "examples", examples)}
            scores += make_scores(columns | {"split": split}, values)
    for method, run in sorted(first_of_method.items()):
        config = load_pretrained_config(run.files.checkpoint)
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


def count_answerable(run: TrainedRun) -> dict[str, int]:
    """Return split -> prompts of the run's task whose answer is one token of its tokenizer."""
    tokenizer = load_tokenizer(run.files.checkpoint)
    settings = get_prompt_settings(read_run(run.folder).spec)
    counts = {}
    for split in read_json(run.dataset)["splits"]:
        table = read_table(run.data, split, ["content", "label"])
        prompts = encode_prompts(
            tokenizer,
            table["content"].to_pylist(),
            table["label"].to_pylist(),
            settings.template,
            None,  # BOS is not counted
            settings.label_space,
        )
        counts[split] = len(prompts)
    return counts


def find_feed_forward(config: PretrainedConfig) -> int:
    """Find the width of the feed-forward parts of a model."""
    for name in ("intermediate_size", "n_inner"):
        size = getattr(config, name, None)
        if size:
            return size
    # GPT-2 has no value if it uses four times the width.
    return 4 * config.hidden_size

"""The one typed description of config.yaml, catalogue/ and papers/: checks the files, makes their JSON schemas."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, model_validator

from workflow_scripts.common.validation import Strict
from workflow_scripts.evaluation.protocol import Protocol


def _once(entries: list) -> list:
    if twice := [entry for number, entry in enumerate(entries) if entry in entries[:number]]:
        raise ValueError(f"{twice[0]} stands there twice")
    return entries


Seed = Annotated[int, Field(ge=0, lt=2**31)]
# A seed that stands there twice would count as two independent runs.
Seeds = Annotated[list[Seed], AfterValidator(_once)]
Kind = Literal["seq2seq", "prompt", "text", "masked", "sentence", "span"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
SplitName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
LAST = "last"  # of Training.also_keep: the weights after the last update


def _compiles(pattern: str) -> str:
    try:
        re.compile(f"(?:{pattern})")  # as a part of a larger one
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


def _pooled_blocks(wanted: str | int | list[int]) -> str | int | list[int]:
    if isinstance(wanted, int) and wanted < 1:
        raise ValueError("a number of blocks is at least 1")
    if isinstance(wanted, list) and (not wanted or min(wanted) < 0):
        raise ValueError("a list names one block or more, each 0 or above")
    return _once(wanted) if isinstance(wanted, list) else wanted


class DataSources(Strict):
    mirror: str | None = Field(
        None, description="Folder <dataset>/<file> that is looked in before any URL. RECOMPOSE_MIRROR does the same."
    )


class ModelSources(Strict):
    local: str | None = Field(None, description="Folder of downloaded Hugging Face models; the hub is then not asked.")


class Config(Strict):
    """config.yaml: what a user chooses."""

    scale: Name = Field("demo", description="demo, small or paper: see catalogue/scales.yaml.")
    papers: Annotated[list[str], AfterValidator(_once)] = Field(
        ["sq_transformer"], min_length=1, description="Which papers to reproduce."
    )
    seeds: Seeds | None = Field(
        None, min_length=1, description="Use these seeds for every run instead of those that the papers' requests name."
    )
    extra: bool = Field(False, description="Also run the sweeps and further ablations (the paper scale always does).")
    data: DataSources = DataSources()
    models: ModelSources = ModelSources()
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="Where training and evaluation run.")
    gpu_option: Literal["gpus", "gres"] = Field("gpus", description="How the cluster's sbatch is asked for a GPU.")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="Of trainings: auto is what the catalogue says of each (training.precision)."
    )


class Training(Strict):
    """What the training loop does; every value reaches the digest of a run."""

    max_steps: int = Field(ge=0, description="Optimiser steps; 0 scores a model as it starts.")
    batch_tokens: int = Field(gt=0, description="Longest sequence times sentences of a batch, at most.")
    batch_sentences: int | None = Field(None, gt=0, description="Sentences of a batch, at most; none is no limit.")
    shuffle_rows: bool = Field(
        True,
        description="Whether rows are permuted at random, by the run's seed, before they are sorted by length into "
        "batches, as in fairseq; for sequence-to-sequence tasks.",
    )
    learning_rate: float = Field(gt=0, description="Peak learning rate.")
    schedule: Literal["inverse_square_root", "linear", "constant", "constant_then_linear"] = Field(
        "inverse_square_root",
        description="After the warm-up; linear falls to 0 at max_steps, constant_then_linear in the last decay_steps.",
    )
    decay_steps: int = Field(0, ge=0, description="Last updates, in which constant_then_linear falls to 0.")
    warmup_steps: int = Field(ge=0, description="Linear warm-up from 0.")
    warmup_fraction: float | None = Field(
        None, ge=0, lt=1, description="Warm-up as a part of max_steps, in the place of warmup_steps."
    )
    betas: tuple[float, float] = Field(description="Adam's decay rates of the two moments.")
    adam_epsilon: float = Field(gt=0)
    weight_decay: float = Field(ge=0, description="Decoupled, on all parameters.")
    clip_norm: float = Field(ge=0, description="Gradient norm; 0 is off.")
    validate_every: int = Field(gt=0, description="Steps between validations.")
    log_every: int = Field(gt=0, description="Steps averaged into one row of training.csv.")
    validation: dict[Literal["split", "metric", "module", "decoding"], Any] = Field(
        description="What chooses the best weights: a metric on a split; greater is better. `module` computes it from "
        "outputs, decoded and scored as `decoding` says (keys of an evaluation), where a teacher-forced pass does not."
    )
    also_keep: Annotated[list[SplitName], AfterValidator(_once)] = Field(
        [],
        description="Further checkpoints that are kept and scored, of sequence-to-sequence tasks: `last`, the last "
        "weights, or a split, the weights that are best on it by the metric of `validation`, at the same validations.",
    )
    precision: Literal["fp32", "bf16"] = Field("fp32", description="bf16 is autocast over fp32 weights.")
    gradient_checkpointing: bool = Field(
        False,
        description="Keep the blocks' inputs alone and compute the rest anew in the backward pass; for "
        "prompts and encoders.",
    )
    torch_threads: int = Field(ge=1, description="Threads of one training; part of the spec since sums depend on it.")

    @model_validator(mode="after")
    def decay_fits(self) -> "Training":
        if (self.schedule == "constant_then_linear") != bool(self.decay_steps):
            raise ValueError(
                f"schedule is {self.schedule} and decay_steps {self.decay_steps}; give decay_steps with "
                "constant_then_linear, and only with it"
            )
        if self.decay_steps > self.max_steps:
            raise ValueError(f"decay_steps is {self.decay_steps}, more than max_steps {self.max_steps}")
        return self

    @property
    def kept_splits(self) -> list[str]:
        """The splits whose best weights are kept next to those that `validation` chooses."""
        return [name for name in self.also_keep if name != LAST]

    @property
    def warmup(self) -> int:
        """Steps of the warm-up."""
        return self.warmup_steps if self.warmup_fraction is None else round(self.warmup_fraction * self.max_steps)


class Evaluation(Strict):
    splits: list[str] = Field(min_length=1)
    beam: int = Field(1, ge=1, description="1 is greedy.")
    max_length: int = Field(200, gt=0, description="Tokens after which decoding stops.")
    max_length_ratio: float = Field(
        0.0, ge=0, description="So many tokens more for each source token, the end symbol among them."
    )
    batch_tokens: int = Field(gt=0)
    joined: Literal["tokens", "words", "text"] = Field(
        "tokens",
        description="What output and reference are compared as: their tokens, the words that parts with @@ make, or "
        "text without any spaces.",
    )
    measures: dict[str, dict[str, Any]] = Field(
        {}, description="Modules that score the outputs beside exact match, each with its options."
    )
    match: Literal["token", "text"] = Field(
        "token",
        description="A prompt's answer must be this very token, or the same text but for case and spaces.",
    )
    same_word: Pattern | None = Field(
        None, description="Regular expression of output words that count as one and the same for structure_match."
    )


class Intervention(Strict):
    """What is changed in a trained model or in its prompts to see what it answers then."""

    split: str = "test"
    blocks: Annotated[Literal["all"] | int | list[int], AfterValidator(_pooled_blocks)] = Field(
        "all",
        description="CAP pools before each block but the first, or before so many of them, evenly spread, or before "
        "those of a list, which may hold block 0: before it the embeddings are pooled.",
    )
    poolings: Annotated[list[Literal["max", "mean", "sum"]], AfterValidator(_once)] = Field(
        ["max", "mean", "sum"], min_length=1
    )
    bos_in_first_word: bool = Field(False, description="Whether CAP pools BOS with word 1 (official code: yes).")
    rates: Annotated[list[Annotated[float, Field(gt=0, le=1)]], AfterValidator(_once)] = Field(
        [0.25, 0.4], min_length=1, description="Shares of the words that synonyms take the place of."
    )
    seeds: Seeds = Field([42, 123, 19, 7, 14, 23], min_length=1, description="Of the choice of words and synonyms.")
    may_be_label: bool = Field(False, description="Whether a synonym may be the answer (official code: yes).")
    candidates: dict[str, Any] = Field({}, description="Options of workflow_scripts.interventions.candidates.")


class Init(Strict):
    """Where a run's first weights come from: another run with the same seed or another, or a model of the hub."""

    task: str | None = None
    method: str | None = Field(None, description="The run's own where none is named.")
    variant: str | None = None
    seed: Seed | Literal["own"] | None = Field(None, description="`own`: the run's own seed.")
    hub: str | None = Field(None, description="Name of a model on the Hugging Face hub.")
    revision: str | None = Field(None, description="Its commit.")


class Search(Strict):
    """Which learning rates and batch sizes are tried, each with each, before a variant is trained; none: no search."""

    seed: Seed = Field(1, description="Of the trainings of the search; best none of the runs' own.")
    learning_rate: list[Annotated[float, Field(gt=0)]] = []
    batch_sentences: list[Annotated[int, Field(gt=0)]] = []
    epochs: float | None = Field(
        None, gt=0, description="Passes over the training set, whatever the batch size; none: training.max_steps."
    )

    @model_validator(mode="after")
    def both_or_none(self) -> "Search":
        if bool(self.learning_rate) != bool(self.batch_sentences):
            raise ValueError("learning_rate and batch_sentences are tried each with each: give both, or neither")
        return self


class Settings(Strict):
    """One layer of settings; later layers overwrite earlier ones key by key."""

    model: dict[str, Any] = {}
    objective: dict[str, Any] = {}
    training: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}
    intervention: dict[str, Any] = {}
    init: dict[str, Any] = {}
    search: dict[str, Any] = {}


class Task(Strict):
    """A data set with its splits and its measure."""

    title: str
    kind: Kind
    prepare: str = Field(description="Module that makes the Parquet files.")
    options: dict[str, Any] = Field({}, description="Options of that module.")
    sources: list[str] = Field([], description="<dataset>/<file> of workflow_scripts/data/sources.yaml.")
    protocol: Protocol = Field("paper", description="What the data are, at their full size.")
    phrases: Pattern | None = Field(
        None,
        description="Regular expression of the source phrases that an objective over words takes for words; of a "
        "seq2seq task, whose words are single tokens. A match ends with whole tokens.",
    )
    disk: int | None = Field(
        None, gt=0, description="GB of a large data set with all that is written on the way, reckoned, for `plan`."
    )
    settings: Settings = Settings()


class Variant(Strict):
    title: str
    settings: Settings = Settings()
    by_task: dict[str, Settings] = {}


class Method(Strict):
    """A model with its objective; `settings` names every key that later layers may set."""

    title: str
    kinds: list[Kind] = Field(min_length=1, description="The kinds of tasks that it can be trained on.")
    settings: Settings
    by_task: dict[str, Settings] = {}
    variants: dict[Name, Variant] = Field(min_length=1)


class DataScale(Strict):
    """How a scale cuts the data of one task."""

    options: dict[str, Any] = {}
    sources: list[str] | None = None
    prepare: str | None = None
    protocol: Protocol | None = None


class Jobs(Strict):
    """What a job on a run asks a cluster for at its first attempt; each further one asks for twice the memory."""

    hours: int = Field(gt=0, description="Time; a training that needs more goes on as its next attempt.")
    memory: int = Field(gt=0, description="MB of host memory.")
    memory_of: dict[Name, Annotated[int, Field(gt=0)]] = Field({}, description="MB by method, where it differs.")
    save_seconds: int = Field(
        0, ge=0, description="How long before its time limit SLURM tells a training to save its state; 0: at the limit."
    )


class Scale(Strict):
    title: str
    purpose: str = Field(description="What the scale is for, as the report says it.")
    protocol: Protocol = Field(description="The most that a run of this scale can claim.")
    verdicts: bool = Field(True, description="Whether its numbers may decide on a claim; the demo's may not.")
    extra: bool = Field(False, description="Runs the requests marked `extra` in any case.")
    jobs: Jobs
    settings: Settings = Settings()
    by_method: dict[str, Settings] = {}
    by_task: dict[str, Settings] = {}
    by_method_and_task: dict[str, dict[str, Settings]] = {}
    data: dict[str, DataScale] = {}


class Request(Strict):
    """Runs that a paper needs: every task with every variant of every method, for the seeds of the scale."""

    tasks: list[str] = Field(min_length=1)
    methods: dict[str, list[str]]
    seeds: dict[str, Seeds] = Field(description="By scale; a scale that is not named does not run this.")
    settings: Settings = Settings()
    extra: bool = Field(False, description="A sweep or further ablation, run on demand at the small scale.")


class Requests(Strict):
    title: str
    citation: str
    requests: list[Request]


class Displays(Strict):
    """displays.yaml of a paper; its entries are described in workflow_scripts.reporting.spec."""

    analyses: dict[str, dict[str, Any]] | None = None
    displays: dict[str, dict[str, Any]]


def json_schemas() -> dict[str, dict]:
    """File name under catalogue/schemas/ -> JSON schema, for editors; made from the models above and those of tables,
    claims and analysis plans."""
    from workflow_scripts.reporting.analysis_plan import AnalysisPlan
    from workflow_scripts.reporting.spec import Analysis, Claim, FigureDisplay, TableDisplay

    class Shown(Strict):
        analyses: dict[str, Analysis] = {}
        displays: dict[str, TableDisplay | FigureDisplay]

    by_name = {"tasks": Task, "methods": Method, "scales": Scale}
    return {
        "analysis_plan.json": AnalysisPlan.model_json_schema(),
        "displays.json": Shown.model_json_schema(),
        "claims.json": TypeAdapter(list[Claim]).json_schema(),
        "config.json": Config.model_json_schema(),
        "requests.json": Requests.model_json_schema(),
        **{
            f"{name}.json": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Entry"}}
            | {"$defs": {**model.model_json_schema().pop("$defs", {}), "Entry": _without_defs(model)}}
            for name, model in by_name.items()
        },
    }


def _without_defs(model: type[BaseModel]) -> dict:
    return {key: value for key, value in model.model_json_schema().items() if key != "$defs"}


if __name__ == "__main__":
    folder = Path("catalogue/schemas")
    folder.mkdir(exist_ok=True)
    for name, schema in json_schemas().items():
        (folder / name).write_text(json.dumps(schema, indent=1) + "\n")

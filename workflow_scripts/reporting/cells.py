"""Cells of tables: the published number beside the scores of our seeds, with what may be said about the two."""

import csv
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from workflow_scripts.catalogue import Catalogue, Run, worst_protocol
from workflow_scripts.displays import Variant, score_files
from workflow_scripts.errors import UserError
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.files import read_json
from workflow_scripts.reporting.spec import SELECTORS, TableDisplay
from workflow_scripts.reporting.statistics import Summary, summarise

PUBLISHED_COLUMNS = (
    "display",
    "row",
    "column",
    "metric",
    "printed",
    "value",
    "unit",
    "std",
    "n_seeds",
    "source",
    "note",
)
MEASURED, NOT_RUN, PUBLISHED_ONLY, COMPUTED = "measured", "not run", "published only", "computed"
UNDEFINED = "undefined"  # measured, but without a value: of right answers of which there are none, of equal cosines
# Repetitions of an intervention on one trained model: what a cell does not fix of these it averages over, by seed.
REPEATED = ("intervention_seed", "pooling")
Key = tuple[str, str, str, str]  # display, row, column, metric


@dataclass(frozen=True)
class Published:
    """A number of the paper: `printed` verbatim; `value` is None where it prints no number but a bound or words."""

    printed: str
    value: float | None
    std: float | None
    n_seeds: int | None
    unit: str
    source: str
    note: str


@dataclass(frozen=True)
class Cell:
    """One cell of a table. `seeds` (seed -> value) is filled for measured cells only, `protocol` for these and for
    computed ones; `computed` is the number of an analysis that gives none by seed.
    """

    paper: str
    display: str
    row: str
    column: str
    metric: str
    unit: str
    decimals: int
    status: str
    note: str = ""
    published: Published | None = None
    selection: dict[str, Any] = field(default_factory=dict)
    seeds: dict[int, float] = field(default_factory=dict)
    protocol: str = ""
    computed: float | None = None

    @property
    def key(self) -> str:
        return "/".join((self.display, self.row, self.column, self.metric))

    @cached_property
    def summary(self) -> Summary | None:
        """Mean, deviation and interval over seeds; None unless measured."""
        return summarise(list(self.seeds.values())) if self.seeds else None

    @property
    def difference(self) -> float | None:
        """Reproduced less published. Only numbers of the paper's own protocol may be compared so."""
        comparable = self.status == MEASURED and self.protocol == "paper"
        if not comparable or self.published is None or self.published.value is None:
            return None
        return self.summary.mean - self.published.value


@dataclass(frozen=True)
class Evidence:
    """What the cells of a paper are made from."""

    paper: str
    scale: str
    published: dict[Key, Published]
    scores: dict[Variant, list[dict]]  # rows of scores.csv of runs asked for
    analyses: dict[str, list[dict]]  # rows of scores.csv by name of the analysis
    absent: dict[Variant, list[dict]] = field(default_factory=dict)  # scores that are not defined, with a `reason`


def read_published(path: Path) -> dict[Key, Published]:
    """Read published.csv. Raises UserError naming file and line for a wrong header, line, number or repeated cell."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; restore it from the repository") from error
    found: dict[Key, Published] = {}
    reader = csv.DictReader(lines)
    if tuple(reader.fieldnames or ()) != PUBLISHED_COLUMNS:
        raise UserError(f"{path}:1: the columns must be {','.join(PUBLISHED_COLUMNS)}")
    for row in reader:
        if None in row or None in row.values():
            raise UserError(f"{path}:{reader.line_num}: not {len(PUBLISHED_COLUMNS)} columns; quote texts with commas")
        key = (row["display"], row["row"], row["column"], row["metric"])
        try:
            value, std = (float(row[name]) if row[name] else None for name in ("value", "std"))
            n_seeds = int(row["n_seeds"]) if row["n_seeds"] else None
        except ValueError as error:
            raise UserError(
                f"{path}:{reader.line_num}: {error}; value, std and n_seeds are numbers or empty"
            ) from error
        if key in found:
            raise UserError(f"{path}:{reader.line_num}: the cell {'/'.join(key)} stands here a second time")
        found[key] = Published(row["printed"], value, std, n_seeds, row["unit"], row["source"], row["note"])
    return found


def make_cells(name: str, display: TableDisplay, evidence: Evidence) -> list[Cell]:
    """The cells of a table, row by row; those with neither a published number nor anything to measure are left out.

    Raises UserError where a cell selects two scores of one seed, or none of a run that has been made.
    """
    cells = []
    for row in display.rows:
        for column in display.columns:
            spec = column.model_dump(exclude_unset=True) | row.model_dump(exclude_unset=True)
            cell = _cell(name, spec, evidence)
            if cell.published or cell.status != PUBLISHED_ONLY:
                cells.append(cell)
    return cells


def _cell(name: str, spec: dict[str, Any], evidence: Evidence) -> Cell:
    """The cell of `spec`, the union of a row and a column of the display called `name`."""
    key = (name, spec["row"], spec["column"], spec["metric"])
    task, method, variant = spec.get("task"), spec.get("method"), spec.get("variant")
    variant = variant.get(task) if isinstance(variant, dict) else variant
    cell = Cell(
        evidence.paper,
        *key,
        spec["unit"],
        spec.get("decimals", 2),
        PUBLISHED_ONLY,
        published=evidence.published.get(key),
    )
    analysis = spec.get("analysis")
    if analysis and "method" not in spec:
        return _computed(cell, spec, evidence.analyses.get(analysis, []), evidence.scale)
    if method is None or variant is None:
        return cell
    run = {"task": task, "method": method, "variant": variant}
    selection = run | {name: spec[name] for name in ("metric", *SELECTORS) if name in spec}
    rows = evidence.analyses.get(analysis, []) if analysis else evidence.scores.get(tuple(run.values()), [])
    rows = [row for row in rows if all(row[name] == value for name, value in run.items())]
    chosen = _chosen(rows, selection)
    seen = rows if analysis else [row for row in rows if row["intervention"] == selection.get("intervention")]
    seen = [row for row in seen if row["rate"] in (None, selection.get("rate"))]
    absent = _absent(evidence.absent.get(tuple(run.values()), []), selection)
    if not chosen:
        if absent:
            return replace(cell, status=UNDEFINED, note=f"undefined: {absent[0]['reason']}", selection=selection)
        if seen and not analysis and "intervention" not in selection:
            wanted = ", ".join(f"{name} {value}" for name, value in selection.items())
            raise UserError(f"papers/{evidence.paper}/displays.yaml: cell {cell.key}: no score has {wanted}")
        # An analysis may have looked at the run and found nothing of the kind: a model without codes has none to count.
        if str(spec.get("item_set")).endswith("_correct") and _nothing_right(seen):
            return replace(cell, status=UNDEFINED, note="undefined: no right answers", selection=selection)
        measured = any(row["rate"] == selection.get("rate") for row in seen)
        note = "does not apply" if measured else f"not run at {evidence.scale}"
        return replace(cell, status=NOT_RUN, note=note, selection=selection)
    seeds, protocols = _by_seed(cell, selection, chosen), [row["protocol"] for row in chosen]
    if over := spec.get("over"):
        others = _chosen(evidence.scores.get((task, method, over), []), selection | {"variant": over})
        seeds = gains(seeds, _by_seed(cell, selection, others), spec.get("relative", False))
        protocols += [row["protocol"] for row in others]
        if not seeds:
            note = "does not apply" if others else f"not run at {evidence.scale}"
            return replace(cell, status=NOT_RUN, note=note, selection=selection)
        selection |= {"over": over}
    return replace(
        cell,
        status=MEASURED,
        note=f"seeds without a value, left out: {len(absent)} ({absent[0]['reason']})" if absent else "",
        selection=selection,
        seeds=dict(sorted(seeds.items())),
        protocol=worst_protocol(*protocols),
    )


def _computed(cell: Cell, spec: dict[str, Any], rows: list[dict], scale: str) -> Cell:
    """A cell of an analysis as a whole, of published numbers or over runs: one score, with the cell's task, metric and
    selectors.
    """
    selection = {name: spec[name] for name in ("task", "metric", *SELECTORS) if name in spec}
    chosen = _chosen(rows, selection)
    if not chosen:
        looked_at = any(row["subset"] == selection.get("subset") for row in rows)
        note = "does not apply" if looked_at else f"not run at {scale}"
        return replace(cell, status=NOT_RUN, note=note, selection=selection)
    if len(chosen) > 1:
        raise UserError(f"papers/{cell.paper}/displays.yaml: cell {cell.key}: {len(chosen)} scores; fix more of them")
    value, protocol = chosen[0]["value"], chosen[0]["protocol"]
    return replace(cell, status=COMPUTED, selection=selection, computed=value, protocol=protocol)


def _absent(rows: list[dict], selection: dict[str, Any]) -> list[dict]:
    """The scores that a cell selects and that are not defined."""
    wanted = {name: value for name, value in selection.items() if name in ("metric", "split", "subset", "readout")}
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def _nothing_right(seen: list[dict]) -> bool:
    """Whether the intervention of a cell was measured, but a set of right answers is empty: it has no share then.

    An intervention has scores on all items, too; an analysis of such a set has its size.
    """
    return any(row["n"] == 0 or row["item_set"] == "all" for row in seen)


def _chosen(rows: list[dict], selection: dict[str, Any]) -> list[dict]:
    """The scores that a cell selects; without an intervention it means the scores that come from none."""
    wanted = {"intervention": None} | selection
    layer = wanted.pop("layer", None)
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    if layer is None or not rows:
        return rows
    if isinstance(layer, str):
        layer = layer_at(layer, [row["layer"] for row in rows])
    return [row for row in rows if row["layer"] == layer]


def layer_at(depth: str, layers: Iterable[int]) -> int:
    """Of `layers` the one nearest to a depth like "25%" of the deepest of them; the earlier one of two as near.

    Raises UserError for another text.
    """
    try:
        part = float(depth.removesuffix("%")) / 100 if depth.endswith("%") else None
    except ValueError:
        part = None
    if part is None:
        raise UserError(f"displays.yaml: layer '{depth}' is neither a number of a block nor a depth like 25%")
    return min(layers, key=lambda layer: (abs(layer - part * max(layers)), layer))


def _by_seed(cell: Cell, selection: dict[str, Any], chosen: list[dict]) -> dict[int, float]:
    """Training seed -> score, averaged over the repetitions of an intervention on the seed's model."""
    values: dict[int, dict[tuple, float]] = {}
    for row in chosen:
        repetition = tuple(row[name] for name in REPEATED)
        if repetition in values.setdefault(row["seed"], {}):
            free = ", ".join(name for name in SELECTORS if name not in selection and name not in REPEATED)
            raise UserError(
                f"papers/{cell.paper}/displays.yaml: cell {cell.key}: two scores of one seed; fix also {free}"
            )
        values[row["seed"]][repetition] = row["value"]
    return {seed: sum(found.values()) / len(found) for seed, found in values.items()}


def gains(scores: dict[int, float], others: dict[int, float], relative: bool) -> dict[int, float]:
    """Seed -> score less the other variant's of the same seed, or in percent of it; seeds without one are left out.

    Another variant with a single seed is one model that is not trained again: all seeds are compared with it.
    """
    if len(others) == 1:
        others = dict.fromkeys(scores, next(iter(others.values())))
    shared = [seed for seed in scores if seed in others and not (relative and others[seed] == 0)]
    return {
        seed: 100 * (scores[seed] / others[seed] - 1) if relative else scores[seed] - others[seed] for seed in shared
    }


def read_evidence(
    catalogue: Catalogue,
    paper: str,
    scale: str,
    runs: Iterable[Run],
    analyses: Iterable[str],
    results: Path,
    intervened: Container[Variant] = (),
) -> Evidence:
    """Read published.csv of a paper, and scores.csv of runs and of analyses under `results`, the folder of the scale.

    The runs of the variants `intervened` come with the scores of their interventions. Raises UserError when the scores
    of one of `runs` are missing.
    """
    scores: dict[Variant, list[dict]] = {}
    absent: dict[Variant, list[dict]] = {}
    for run in runs:
        if (described := results / f"runs/{run}/eval/evaluation.json").exists():
            absent.setdefault((run.task, run.method, run.variant), []).extend(read_json(described).get("absent", []))
        found = scores.setdefault((run.task, run.method, run.variant), [])
        for file in score_files(run, intervened):
            found += read_scores(results / file)
    files = {name: results / "analyses" / paper / name / "scores.csv" for name in analyses}
    return Evidence(
        paper,
        scale,
        read_published(catalogue.root / "papers" / paper / "published.csv"),
        scores,
        {name: read_scores(file) for name, file in files.items()},
        absent,
    )

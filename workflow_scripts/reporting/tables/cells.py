"""Cells of tables: the published number next to the scores of our seeds."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.display_schema import SELECTORS, TableDisplay, name_variant
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.published import Published
from workflow_scripts.evaluation.statistics import Summary, summarise_seeds
from workflow_scripts.reporting.evidence.evidence import Evidence, has_empty_item_set, matches_intervention, select_rows
from workflow_scripts.reporting.evidence.pairing import compute_gains, require_same_weights

MEASURED, NOT_RUN, PUBLISHED_ONLY, COMPUTED = "measured", "not run", "published only", "computed"
WITHHELD = "withheld"  # a part of the planned seeds: shown when all are there
UNDEFINED = "undefined"  # measured, but without a value: of right answers of which there are none, of equal cosines
# Repetitions of an intervention on one trained model: what a cell does not fix of these it averages over, by seed.
REPEATED = ("intervention_seed", "pooling")


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Measured cells have `seeds` (seed -> value), `weights` (source of the initial weights) and `block` of an
    intervention; computed ones have `computed`, a number of an analysis without seeds. Withheld cells have what
    measured ones have, for primary claims to count their seeds; nothing of it is shown.
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
    weights: str = ""
    block: int | None = None

    @property
    def key(self) -> str:
        """The cell's name in claims.yaml and published.csv: display/row/column/metric."""
        return "/".join((self.display, self.row, self.column, self.metric))

    @cached_property
    def summary(self) -> Summary | None:
        """Return mean, standard deviation and interval over seeds; None unless measured."""
        return summarise_seeds(list(self.seeds.values())) if self.seeds else None

    @property
    def mean(self) -> float | None:
        """Return the mean over seeds, or the computed number."""
        return self.computed if self.status == COMPUTED else self.summary.mean

    @property
    def difference(self) -> float | None:
        """Return reproduced minus published, for numbers of the paper's own protocol only."""
        comparable = self.status == MEASURED and self.protocol == "paper"
        if not comparable or self.published is None or self.published.value is None:
            return None
        return self.mean - self.published.value


def make_cells(name: str, display: TableDisplay, evidence: Evidence) -> list[Cell]:
    """Make the cells of a table, row by row, without those for which there is neither a published number nor a run.

    Raises UserError if a cell selects two scores of one seed, or no score of a finished run.
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
    """Make the cell of `spec`, the union of a row and a column of the display `name`."""
    key = (name, spec["row"], spec["column"], spec["metric"])
    task, method, variant = spec.get("task"), spec.get("method"), name_variant(spec)
    number, decimals = evidence.published.get(key), spec.get("decimals", 2)
    cell = Cell(evidence.paper, *key, spec["unit"], decimals, PUBLISHED_ONLY, published=number)
    analysis = spec.get("analysis")
    if analysis and "method" not in spec:
        return _computed(cell, spec, evidence.analyses.get(analysis, []), evidence.scale)
    if method is None or variant is None:
        return cell
    run, of_runs = {"task": task, "method": method, "variant": variant}, (task, method, variant)
    selection = run | {name: spec[name] for name in ("metric", *SELECTORS) if name in spec}
    cell = replace(cell, selection=selection)
    rows = evidence.analyses.get(analysis, []) if analysis else evidence.scores.get(of_runs, [])
    rows = [row for row in rows if all(row[name] == value for name, value in run.items())]
    chosen = select_rows(rows, selection)
    seen = [row for row in rows if matches_intervention(row, selection, bool(analysis))]
    place = {name: selection[name] for name in ("metric", "split", "subset", "readout") if name in selection}
    absent = [row for row in evidence.absent.get(of_runs, []) if row.items() >= place.items()]
    if not chosen:
        if absent:
            return replace(cell, status=UNDEFINED, note=f"undefined: {absent[0]['reason']}")
        if seen and not analysis and "intervention" not in selection:
            wanted = ", ".join(f"{name} {value}" for name, value in selection.items())
            raise UserError(f"papers/{evidence.paper}/displays.yaml: cell {cell.key}: no score has {wanted}")
        # An analysis may have looked at the run and found nothing of the kind: a model without codes has none to count.
        if has_empty_item_set(seen, selection):
            return replace(cell, status=UNDEFINED, note="undefined: no right answers")
        measured = any(row["rate"] == selection.get("rate") for row in seen)
        note = "does not apply" if measured else f"not run at {evidence.scale}"
        return replace(cell, status=NOT_RUN, note=note)
    seeds, protocols = _by_seed(cell, selection, chosen), [row["protocol"] for row in chosen]
    valueless = {row["seed"] for row in absent} - seeds.keys()
    if over := spec.get("over"):
        where = f"papers/{evidence.paper}/displays.yaml: cell {cell.key}"
        require_same_weights(evidence.weights, of_runs, (task, method, over), where)
        everything = evidence.scores.get((task, method, over), [])
        others = select_rows(everything, selection | {"variant": over})
        # Of several seeds one alone may have the score, as one of right answers: that is no model for all seeds.
        trained_again = len({row["seed"] for row in everything}) > 1
        ours, theirs = seeds, _by_seed(cell, selection, others)
        seeds = compute_gains(ours, theirs, spec.get("relative", False), trained_again)
        protocols += [row["protocol"] for row in others]
        if not seeds:
            shared = bool(compute_gains(ours, theirs, relative=False, trained_again=trained_again))
            why = _no_gain(over, others, shared, everything, selection, evidence.scale)
            return replace(cell, **why)
        cell = replace(cell, selection=selection | {"over": over})
    note = f"seeds without a value, left out: {len(valueless)} ({absent[0]['reason']})" if valueless else ""
    more = {"protocol": find_worst_protocol(*protocols), "weights": evidence.weights.get(of_runs, "")}
    more["block"] = chosen[0]["layer"] if {"intervention", "layer"} <= selection.keys() else None
    cell = replace(cell, status=MEASURED, note=note, seeds=dict(sorted(seeds.items())), **more)
    compared = [(task, method, over)] if over else []
    reasons = [evidence.withheld[one] for one in (of_runs, *compared) if one in evidence.withheld]
    return replace(cell, status=WITHHELD, note=reasons[0]) if reasons else cell


def _no_gain(
    over: str, others: list[dict], shared: bool, everything: list[dict], selection: dict, scale: str
) -> dict[str, str]:
    """Return status and note of a gain without a value; `shared`: both sides have a common seed."""
    if others:
        why = f"0 for {over}" if shared else f"shares no seed with {over}"
        return {"status": UNDEFINED, "note": f"undefined: {why}"}
    if has_empty_item_set([row for row in everything if matches_intervention(row, selection)], selection):
        return {"status": UNDEFINED, "note": f"undefined: no right answers of {over}"}
    return {"status": NOT_RUN, "note": f"not run at {scale}"}


def _computed(cell: Cell, spec: dict[str, Any], rows: list[dict], scale: str) -> Cell:
    """Make a cell that an analysis computes as a whole: one score with the cell's task, metric and selectors."""
    selection = {name: spec[name] for name in ("task", "metric", *SELECTORS) if name in spec}
    chosen, cell = select_rows(rows, selection), replace(cell, selection=selection)
    if not chosen:
        looked_at = any(row["subset"] == selection.get("subset") for row in rows)
        return replace(cell, status=NOT_RUN, note="does not apply" if looked_at else f"not run at {scale}")
    if len(chosen) > 1:
        raise UserError(f"papers/{cell.paper}/displays.yaml: cell {cell.key}: {len(chosen)} scores; fix more of them")
    return replace(cell, status=COMPUTED, computed=chosen[0]["value"], protocol=chosen[0]["protocol"])


def _by_seed(cell: Cell, selection: dict[str, Any], chosen: list[dict]) -> dict[int, float]:
    """Return training seed -> score, averaged over the repetitions of an intervention."""
    values: dict[int, dict[tuple, float]] = {}
    for row in chosen:
        repetition = tuple(row[name] for name in REPEATED)
        if repetition in values.setdefault(row["seed"], {}):
            free = ", ".join(name for name in SELECTORS if name not in selection and name not in REPEATED)
            where = f"papers/{cell.paper}/displays.yaml: cell {cell.key}"
            raise UserError(f"{where}: two scores of one seed; fix also {free}")
        values[row["seed"]][repetition] = row["value"]
    return {seed: sum(found.values()) / len(found) for seed, found in values.items()}

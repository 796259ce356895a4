"""Files of an export with a row per item or draw: predictions, answers, scores of draws."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.parquet_files import read_parquet
from workflow_scripts.common.result_folders import RunFolder
from workflow_scripts.common.run_names import Run, VariantKey

if TYPE_CHECKING:
    import pyarrow as pa

# Ids and outputs. The texts of the data stay out.
PREDICTION_IDS = ("split", "row", "item", "subset", "readout")
PREDICTION_COLUMNS = (*PREDICTION_IDS, "prediction", "likelihood")
ANSWER_IDS = ("readout", "intervention", "layer", "pooling", "rate", "intervention_seed", "item")
# What tells the scores of draws apart, and their values; unit and protocol are in scores.csv.
DRAW_COLUMNS = (
    "task",
    "method",
    "variant",
    "seed",
    "split",
    "subset",
    "metric",
    "intervention",
    "layer",
    "pooling",
    "rate",
    "item_set",
    "readout",
    "intervention_seed",
    "value",
    "n",
)


@dataclass(frozen=True)
class ExportedRun:
    """A scored run: its folder, and the content of its manifest and its record."""

    folder: RunFolder
    content: dict[str, Any]

    @property
    def run(self) -> Run:
        """The name of the run."""
        return Run.parse(self.folder.name)

    @property
    def is_planned(self) -> bool:
        """Whether an analysis plan lists the run, so that a primary claim rests on it."""
        return bool(self.content.get("analysis_plans"))


def group_planned_runs(runs: Iterable[ExportedRun]) -> dict[VariantKey, list[ExportedRun]]:
    """Return the runs of each variant that an analysis plan lists."""
    runs_of_variant: dict[VariantKey, list[ExportedRun]] = {}
    for run in runs:
        if run.is_planned:
            runs_of_variant.setdefault(run.run.variant_key, []).append(run)
    return runs_of_variant


def add_predictions(file: Path, runs: Iterable[ExportedRun]) -> None:
    """Write the predictions of runs of one variant to a file, next to those of other seeds."""
    table_of_seed: dict[int, pa.Table] = {}
    for run in runs:
        table = read_parquet(run.folder.evaluation.predictions)
        columns = [name for name in table.column_names if name in PREDICTION_COLUMNS]
        table_of_seed[run.run.seed] = table.select(columns)
    add_seeds(file, table_of_seed, PREDICTION_IDS)


def add_intervention_answers(file: Path, runs: Iterable[ExportedRun]) -> None:
    """Write the answers under interventions of runs of one variant to a file, as predictions are.

    They say whether an answer is right. Runs without interventions are left out.
    """
    table_of_seed: dict[int, pa.Table] = {}
    for run in runs:
        answers = run.folder.interventions.answers
        if answers.exists():
            table_of_seed[run.run.seed] = read_parquet(answers)
    if table_of_seed:
        add_seeds(file, table_of_seed, ANSWER_IDS)


def add_seeds(file: Path, table_of_seed: dict[int, "pa.Table"], ids: Iterable[str]) -> None:
    """Write tables with a column of their seeds to a Parquet file, next to those of other seeds.

    ids: columns by which the rows are sorted, if they are there, before the seed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tables = []
    for seed, table in table_of_seed.items():
        tables.append(table.add_column(0, "seed", pa.repeat(seed, len(table))))
    if file.exists():
        seeds = pa.array(list(table_of_seed))
        tables.append(read_parquet(file, filters=~pc.field("seed").isin(seeds)))
    merged = pa.concat_tables(tables)
    sorted_by = [name for name in ids if name in merged.column_names]
    merged = merged.sort_by([(name, "ascending") for name in (*sorted_by, "seed")])
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(merged, file, compression="brotli", compression_level=11, use_dictionary=False)


def average_draws(scores: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Average the scores of a run over the draws of an intervention, which are hundreds of rows."""
    values_by_row: dict[tuple, list[str]] = {}
    for row in scores:
        row_without_draw = row | {"value": "", "intervention_seed": ""}
        values_by_row.setdefault(tuple(row_without_draw.items()), []).append(row["value"])
    averaged = []
    for row, values in values_by_row.items():
        if len(set(values)) == 1:
            value = values[0]  # as it is written
        else:
            value = str(fmean(map(float, values)))
        averaged.append(dict(row) | {"value": value})
    return averaged


def write_draws(rows: list[dict[str, str]], earlier: Path, file: Path) -> None:
    """Write the scores of single draws to a Parquet file, sorted; without any there is no file.

    Runs that `rows` do not have are those of the file `earlier`. The coefficients of variation
    follow from the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.string() for name in DRAW_COLUMNS}
    columns |= {name: pa.int64() for name in ("seed", "n", "layer", "intervention_seed")}
    columns |= {name: pa.float64() for name in ("value", "rate")}
    schema = pa.schema(columns)
    texts = {}
    for name in DRAW_COLUMNS:
        column = [row.get(name) or None for row in rows]
        texts[name] = pa.array(column, pa.string())
    tables = [pa.table(texts).cast(schema)]
    if earlier.exists():
        new_runs = set(map(read_run_columns, rows))
        earlier_draws = read_parquet(earlier).cast(schema)
        is_kept = [read_run_columns(row) not in new_runs for row in earlier_draws.to_pylist()]
        tables.append(earlier_draws.filter(pa.array(is_kept, pa.bool_())))
    table = pa.concat_tables(tables)
    if len(table):
        ids = [name for name in DRAW_COLUMNS if name not in ("value", "n")]
        table = table.sort_by([(name, "ascending") for name in ids])
        pq.write_table(table, file, compression="brotli", compression_level=11)


def read_run_columns(row: dict[str, str]) -> Run:
    """Return the run that a row of scores is of."""
    return Run(row["task"], row["method"], row["variant"], int(row["seed"]))

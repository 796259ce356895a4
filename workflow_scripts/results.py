"""Results of one scale in Python.

These are scores, claims, tables, provenance, predictions, curves and trained models:

    from workflow_scripts.results import Results
    Results("results/reference/small").scores(task="paws", metric="accuracy")

docs/python.md has more examples, docs/results.md the meaning of the columns.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    hash_file,
    read_csv,
    read_json,
    read_mapping,
    verify_checksum,
)
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.config.paths import data_folder, evaluation_folder, run_folder
from workflow_scripts.evaluation.scores import NUMBERS, read_scores
from workflow_scripts.provenance.exported import select_provenance
from workflow_scripts.tasks.checkpoints import read_run
from workflow_scripts.tasks.packages import load_kind_settings
from workflow_scripts.training.history import read_history

if TYPE_CHECKING:
    import torch

    from workflow_scripts.tasks.base import Checkpoint

# Columns of tables, claims and curves that hold numbers; all others hold text.
FLOATS = {
    "at_least",
    "ci_high",
    "ci_low",
    "degrees_of_freedom",
    "difference",
    "effect",
    "p_value",
    "published",
    "published_effect",
    "published_std",
    "q_value",
    "quantile",
    "reproduced",
    "smallest_effect",
    "std",
    "value",
}
INTEGERS = {"n_seeds", "n_planned", "step", "seed"}
# Each folder of results has one of these at least.
CONTENTS = ("claims.csv", "provenance.json", "runs", "tables")
# Columns of names: to select by one that no row has is a mistake.
NAMES = {"paper", "claim", "cell", "task", "method", "variant", "metric"}


class Results:
    """The results of one scale, from one of three kinds of folder.

    `results/<scale>` is what ./reproduce writes, `results/reference/<scale>` what is under version
    control, and an unpacked crate what `python -m workflow_scripts crate` packs. The last two lack
    some files of a run. Every method raises UserError, in one line, for a file that is broken or
    that this folder does not have.
    """

    def __init__(self, folder: str | Path):
        """Raise UserError if the folder holds no results."""
        self.folder = Path(folder)
        if (self.folder / "ro-crate-metadata.json").exists():
            for file in self.folder.glob("results/*/config.json"):
                self.folder = file.parent
                break
        if any((self.folder / name).exists() for name in CONTENTS):
            return
        fault = "holds no results of a scale"
        parent = self.folder
        if not self.folder.is_dir():
            fault = "does not exist"
            parent = self.folder.parent
        scales = ", ".join(str(file.parent) for file in sorted(parent.glob("*/claims.csv")))
        kinds = "results/<scale>, results/reference/<scale> or an unpacked crate"
        raise UserError(f"{folder} {fault}; give {kinds}; here: {scales or 'none'}")

    def __repr__(self) -> str:
        return f"Results('{self.folder}')"

    @cached_property
    def _scores(self) -> pd.DataFrame:
        files = [self.folder / "scores.csv"]
        if not files[0].exists():
            files = sorted(self.folder.glob("runs/*/*/*/*/*/scores.csv"))
        if not files:
            raise UserError(f"{self.folder} has no scores; make some with ./reproduce")
        rows: list[dict[str, Any]] = []
        for file in files:
            rows += read_scores(file)
        types = {name: "Int64" if kind is int else float for name, kind in NUMBERS.items()}
        return pd.DataFrame(rows).astype(types)

    def scores(self, **selection: Any) -> pd.DataFrame:
        """Return the scores of all runs, one per row, with the columns of scores.csv.

        `selection` selects rows by column, by one value or several:
        `scores(task="paws", seed=[21, 22])`. None selects rows without a value: `intervention=None`
        are scores of the unchanged model. Raises UserError for an unknown column, and for a name
        that no row has.
        """
        return _select(self._scores, selection)

    def claims(self, **selection: Any) -> pd.DataFrame:
        """Return the claims, one per row, with the columns of claims.csv.

        They are selected as in `scores`.
        """
        return _select(self._read_table("claims.csv", "paper", "claim", "verdict"), selection)

    def sides(self, **selection: Any) -> pd.DataFrame:
        """Return what claims compare: a row per claim, side, cell and seed.

        They are selected as in `scores`.
        """
        columns = ("paper", "claim", "side", "cell", "seed", "value")
        return _select(self._read_table("claim_sides.csv", *columns), selection)

    def tables(self) -> list[str]:
        """Return the names of all tables, `<paper>/<table>`."""
        files = sorted(self.folder.glob("tables/*/*.csv"))
        return [f"{file.parent.name}/{file.stem}" for file in files]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table with one cell per row, indexed by row, column and metric.

        The columns are unit, published, published_std, reproduced, std, n_seeds, ci_low, ci_high,
        difference, protocol, status and note. Raises UserError for an unknown name.
        """
        if name not in self.tables():
            raise UserError(
                f"{self.folder} has no table {name}; {suggest_name(name, self.tables())}"
            )
        index = ["row", "column", "metric"]
        return self._read_table(f"tables/{name}.csv", *index).set_index(index)

    def wide(self, name: str, value: str | list[str] = "reproduced") -> pd.DataFrame:
        """Return one or several columns of a table as the paper prints it.

        The frame has rows by columns and metrics.
        """
        table = self.table(name)
        _check_columns(table, [value] if isinstance(value, str) else value)
        return pd.DataFrame(table[value].unstack(["column", "metric"], sort=False))

    @cached_property
    def _runs(self) -> pd.DataFrame:
        exported = self.folder / "provenance.json"
        if exported.exists():
            runs = _read_provenance(exported)
        else:
            folders = list_scored_runs(self.folder)
            runs = [select_provenance(read_run_files(folder)) for folder in folders]
        if not runs:
            return pd.DataFrame(columns=["run"]).set_index("run")
        return pd.DataFrame(runs).set_index("run")

    def runs(self) -> pd.DataFrame:
        """Return how each scored run was made.

        The frame is indexed by run, `<task>/<method>/<variant>/seed-<n>`. Its columns are those of
        `provenance.exported.PROVENANCE`, among them protocol, steps, best_step, parameters,
        started, seconds, device, commit, and the digests of spec, data and code. Committed results
        also have the runs that weights come from. `not_recorded` lists fields that an earlier
        export left out.
        """
        return self._runs.copy()

    def predictions(self, run: str) -> pd.DataFrame:
        """Return the predictions of a run, one example per row.

        The columns depend on the kind of task. Committed results have those of primary claims only,
        and crates have none. Raises UserError for other runs.
        """
        parsed = self._parse_run(run)
        name = f"{evaluation_folder(parsed)}/predictions.parquet"
        exported = self.folder / f"predictions/{parsed.variant_key}.parquet"
        if exported.exists() and run in self._runs.index:
            # It has the predictions of several seeds.
            predictions = _read_parquet(exported, filters=[("seed", "==", parsed.seed)])
        else:
            predictions = _read_parquet(self._find_file(parsed, name))
        if predictions.empty:  # a pilot: its variant has predictions of other seeds
            self._find_file(parsed, name)
        return predictions.drop(columns="seed", errors="ignore")

    def curves(self, run: str) -> pd.DataFrame:
        """Return the values that a training logged.

        The frame has a row per step and a column per value, such as `loss`. Columns that begin with
        `valid_` are validation scores. Committed results have a part of the steps.
        """
        parsed = self._parse_run(run)
        if run in self._runs.index and (self.folder / "curves.csv").exists():
            names = parsed._asdict()
            frame = self._read_table("curves.csv", *names, "step", "name", "value")
            frame = _select(frame, names)
        else:
            history = read_history(self._find_file(parsed, f"{run_folder(parsed)}/training.csv"))
            frame = pd.DataFrame(history, columns=["step", "name", "value"])
        return frame.pivot(index="step", columns="name", values="value").rename_axis(columns=None)

    def checkpoint(self, run: str) -> "Checkpoint":
        """Return the checkpoint of a run, checked against run.json; only `results/<scale>` has any.

        See `Checkpoint` for predictions. Raises UserError for other runs, and for files that were
        changed.
        """
        parsed = self._parse_run(run)
        name = f"{run_folder(parsed)}/checkpoint/model.safetensors"
        weights = self._find_file(parsed, name)
        return read_checkpoint(weights.parents[1])

    def load_model(self, run: str, device: str = "cpu") -> "torch.nn.Module":
        """Load the model of a run with the weights of its best validation, in eval mode.

        The files are checked as in `checkpoint`.
        """
        return self.checkpoint(run).load_model(device)

    def _read_table(self, name: str, *columns: str) -> pd.DataFrame:
        if not (self.folder / name).exists():
            raise UserError(f"{self.folder} has no {name}; ./reproduce writes it at its end")
        rows = read_csv(self.folder / name, columns)
        frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(columns))
        frame = frame.replace("", None)
        numbers = [column for column in frame if column in FLOATS | INTEGERS]
        integers = [column for column in numbers if column in INTEGERS]
        try:
            # Integers by way of floats, because a text is no Int64.
            frame = frame.astype(dict.fromkeys(numbers, float))
            return frame.astype(dict.fromkeys(integers, "Int64"))
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.folder / name}: {error}; restore it, or run ./reproduce again"
            ) from error

    def _parse_run(self, name: str) -> Run:
        """Parse the name of a run. Raises UserError with the nearest name for another form."""
        try:
            return Run.parse(name)
        except UserError:
            raise self._refuse_run(name) from None

    def _refuse_run(self, name: str) -> UserError:
        """Return the error for a name of no run, with the nearest name."""
        return UserError(f"{self.folder} has no run {name}; {self._suggest_run(name)}")

    def _find_file(self, run: Run, name: str) -> Path:
        """Return a file of a run.

        Raises UserError if it does not exist, or if there is no such run.
        """
        file = self.folder / name
        if file.is_file():
            return file
        if str(run) not in self._runs.index:
            raise self._refuse_run(str(run))
        if run.weights and not name.startswith(evaluation_folder(run)):
            raise UserError(
                f"{self.folder} has no {name}: this run scores given weights and trains nothing"
            )
        target = f"results/{self.folder.name}/{evaluation_folder(run)}/evaluation.json"
        raise UserError(
            f"{self.folder} has no {name}: only the results/<scale> in which it ran has this file; "
            f"./reproduce {target} runs it"
        )

    def _suggest_run(self, wrong_name: str) -> str:
        """Say which run of the same task may be meant, or else which tasks have runs."""
        runs_by_task: dict[str, list[str]] = defaultdict(list)
        for run in self._runs.index:
            runs_by_task[run.split("/")[0]].append(run)
        task = wrong_name.split("/")[0]
        if task in runs_by_task:
            return suggest_name(wrong_name, runs_by_task[task])
        return f"it has runs of the tasks {', '.join(sorted(runs_by_task))}"


def read_checkpoint(folder: str | Path) -> "Checkpoint":
    """Return the checkpoint of a folder of results/<scale>/runs.

    A folder that `export --checkpoints` wrote has one too. Raises UserError if a file is missing,
    or if a spec or a file differs from its digest in run.json.
    """
    from workflow_scripts.tasks.base import Checkpoint  # torch takes more than a second to import

    folder = Path(folder)
    run = read_run(folder)
    # `export --checkpoints` writes all files of a run to one folder.
    weights = evaluation = data = folder
    if (folder / "checkpoint").is_dir():
        weights = folder / "checkpoint"
        evaluation = folder / "eval"
        data = folder.absolute().parents[4] / data_folder(run.spec.task)
    _check_weights(weights, run.files, folder / "run.json")
    file = evaluation / "evaluation.json"
    content = read_mapping(file, "spec")["spec"]
    settings = parse_as(load_kind_settings(run.spec.kind).evaluation, content, file, "spec")
    labels = read_mapping(data / "dataset.json").get("labels")
    return Checkpoint(str(run.run), weights, run.spec, settings, labels)


def _check_weights(weights: Path, files: dict[str, str], manifest: Path) -> None:
    """Raise UserError unless the folder `weights` has the files of checkpoint/ of a run.json.

    files: name -> sha256, as in the file `manifest`.
    """
    what_to_do = "get the folder again, or train the run again"
    recorded = {}
    for name, sha256 in files.items():
        if "/" in name:
            recorded[name.removeprefix("checkpoint/")] = sha256
    if "model.safetensors" not in recorded:
        raise UserError(f"{manifest} was changed after training; {what_to_do}")
    for name, sha256 in recorded.items():
        file = weights / name
        if not file.is_file() or hash_file(file) != sha256:
            raise UserError(f"{file} is not the file of {manifest}; {what_to_do}")


def list_scored_runs(folder: Path) -> list[Path]:
    """Return the folders of the runs under results/<scale> that were scored, sorted by name."""
    return [file.parents[1] for file in sorted(folder.glob("runs/*/*/*/*/eval/evaluation.json"))]


def read_run_files(folder: Path) -> dict[str, Any]:
    """Read manifest and record of a training, or of the evaluation of given weights."""
    manifest = folder / "run.json"
    if not manifest.exists():
        manifest = folder / "eval/evaluation.json"
    return read_mapping(manifest, "run") | read_mapping(manifest.with_name("record.json"))


def _read_provenance(file: Path) -> list[dict[str, Any]]:
    runs = read_json(file)
    is_list_of_runs = isinstance(runs, list) and all(
        isinstance(run, dict) and "run" in run for run in runs
    )
    if not is_list_of_runs:
        raise UserError(f"{file} is not what export writes; restore it")
    return runs


def _read_parquet(file: Path, filters: list[tuple] | None = None) -> pd.DataFrame:
    """Read a Parquet file. Raises UserError if it is none, or differs from its sha256."""
    verify_checksum(file)
    try:
        return pq.read_table(file, filters=filters).to_pandas()
    except (pyarrow.ArrowException, ValueError) as error:
        raise UserError(
            f"{file} is no Parquet file ({error}); restore it, or run ./reproduce again"
        ) from error


def _select(frame: pd.DataFrame, selection: dict[str, Any]) -> pd.DataFrame:
    """Select the rows whose columns have one of the selected values; see `Results.scores`."""
    _check_columns(frame, selection)
    is_selected = pd.Series(True, index=frame.index)
    for column, value in selection.items():
        values = list(value) if pd.api.types.is_list_like(value) else [value]
        selects_missing = None in values
        values = [value for value in values if value is not None]
        if column in NAMES:
            _check_names(frame, column, values)
        has_value = frame[column].isin(values)
        if selects_missing:
            has_value |= frame[column].isna()
        is_selected &= has_value
    return frame.loc[is_selected].reset_index(drop=True)


def _check_names(frame: pd.DataFrame, column: str, values: list[Any]) -> None:
    """Raise UserError if no row has one of the values."""
    names = frame[column].dropna().unique()
    for value in values:
        if value not in names:
            raise UserError(f"no {column} is '{value}'; {suggest_name(value, names)}")


def _check_columns(frame: pd.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if name not in frame:
            raise UserError(f"there is no column {name}; {suggest_name(name, frame)}")

"""Results of one scale in Python: scores, claims, tables, provenance, predictions, curves and trained models.

    from workflow_scripts.results import Results
    Results("results/reference/small").scores(task="paws", metric="accuracy")

docs/python.md has more examples, docs/results.md the meaning of the columns.
"""

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
    "published",
    "published_std",
    "reproduced",
    "std",
    "ci_low",
    "ci_high",
    "difference",
    "published_effect",
}
FLOATS |= {
    "effect",
    "at_least",
    "smallest_effect",
    "quantile",
    "degrees_of_freedom",
    "p_value",
    "q_value",
    "value",
}
INTEGERS = {"n_seeds", "n_planned", "step", "seed"}
# Columns of names: to select by one that no row has is a mistake.
NAMES = {"paper", "claim", "cell", "task", "method", "variant", "metric"}


class Results:
    """The results of one scale, from one of three kinds of folder.

    `results/<scale>` is what ./reproduce writes, `results/reference/<scale>` what is under version control, and an
    unpacked crate what `python -m workflow_scripts crate` packs. The last two lack some files of a run. Every method
    raises UserError, in one line, for a file that is broken or that this folder does not have.
    """

    def __init__(self, folder: str | Path):
        """Raise UserError if the folder holds no results."""
        self.folder = Path(folder)
        if (self.folder / "ro-crate-metadata.json").exists():
            self.folder = next(
                (file.parent for file in self.folder.glob("results/*/config.json")), self.folder
            )
        if not any(
            (self.folder / name).exists()
            for name in ("claims.csv", "provenance.json", "runs", "tables")
        ):
            parent, fault = self.folder, "holds no results of a scale"
            if not self.folder.is_dir():
                parent, fault = self.folder.parent, "does not exist"
            here = ", ".join(str(file.parent) for file in sorted(parent.glob("*/claims.csv")))
            kinds = "results/<scale>, results/reference/<scale> or an unpacked crate"
            raise UserError(f"{folder} {fault}; give {kinds}; here: {here or 'none'}")

    def __repr__(self) -> str:
        return f"Results('{self.folder}')"

    @cached_property
    def _scores(self) -> pd.DataFrame:
        files = [self.folder / "scores.csv"]
        if not files[0].exists():
            files = sorted(self.folder.glob("runs/*/*/*/*/*/scores.csv"))
        if not files:
            raise UserError(f"{self.folder} has no scores; make some with ./reproduce")
        frame = pd.DataFrame([row for file in files for row in read_scores(file)])
        return frame.astype(
            {name: "Int64" if kind is int else float for name, kind in NUMBERS.items()}
        )

    def scores(self, **chosen: Any) -> pd.DataFrame:
        """Return the scores of all runs, one per row, with the columns of scores.csv.

        `chosen` selects rows by column, by one value or several: `scores(task="paws", seed=[21, 22])`. None selects
        rows without a value: `intervention=None` are scores of the unchanged model. Raises UserError for an unknown
        column, and for a name that no row has.
        """
        return _select(self._scores, chosen)

    def claims(self, **chosen: Any) -> pd.DataFrame:
        """Return the claims, one per row, with the columns of claims.csv, selected as in `scores`."""
        return _select(self._read_table("claims.csv", "paper", "claim", "verdict"), chosen)

    def sides(self, **chosen: Any) -> pd.DataFrame:
        """Return what claims compare: a row per claim, side, cell and seed, selected as in `scores`."""
        return _select(
            self._read_table("claim_sides.csv", "paper", "claim", "side", "cell", "seed", "value"),
            chosen,
        )

    def tables(self) -> list[str]:
        """Return the names of all tables, `<paper>/<table>`."""
        return [
            f"{file.parent.name}/{file.stem}" for file in sorted(self.folder.glob("tables/*/*.csv"))
        ]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table with one cell per row, indexed by row, column and metric.

        The columns are unit, published, published_std, reproduced, std, n_seeds, ci_low, ci_high, difference, protocol,
        status and note. Raises UserError for an unknown name.
        """
        if name not in self.tables():
            raise UserError(
                f"{self.folder} has no table {name}; {suggest_name(name, self.tables())}"
            )
        return self._read_table(f"tables/{name}.csv", "row", "column", "metric").set_index(
            ["row", "column", "metric"]
        )

    def wide(self, name: str, value: str | list[str] = "reproduced") -> pd.DataFrame:
        """Return one or several columns of a table as the paper prints it: rows by columns and metrics."""
        table = self.table(name)
        _check_columns(table, [value] if isinstance(value, str) else value)
        return pd.DataFrame(table[value].unstack(["column", "metric"], sort=False))

    @cached_property
    def _runs(self) -> pd.DataFrame:
        if (exported := self.folder / "provenance.json").exists():
            found = read_json(exported)
        else:
            found = [
                select_provenance(read_run_files(folder))
                for folder in list_scored_runs(self.folder)
            ]
        if not isinstance(found, list) or not all(
            isinstance(run, dict) and "run" in run for run in found
        ):
            raise UserError(f"{exported} is not what export writes; restore it")
        return pd.DataFrame(found, columns=None if found else ["run"]).set_index("run")

    def runs(self) -> pd.DataFrame:
        """Return how each scored run was made, indexed by run, `<task>/<method>/<variant>/seed-<n>`.

        The columns are those of `provenance.exported.PROVENANCE`, among them protocol, steps, best_step, parameters,
        started, seconds, device, commit, and the digests of spec, data and code. Committed results also have the runs
        that weights come from. `not_recorded` lists fields that an earlier export left out.
        """
        return self._runs.copy()

    def predictions(self, run: str) -> pd.DataFrame:
        """Return the predictions of a run, one example per row; the columns depend on the kind of task.

        Committed results have those of primary claims only, and crates have none. Raises UserError for other runs.
        """
        own, (variant, _, seed) = (
            f"{evaluation_folder(run)}/predictions.parquet",
            run.rpartition("/seed-"),
        )
        exported = self.folder / f"predictions/{variant}.parquet"
        file = (
            exported if exported.exists() and run in self._runs.index else self._find_file(run, own)
        )
        verify_checksum(file)
        try:
            frame = pq.read_table(
                file, filters=[("seed", "==", int(seed))] if file == exported else None
            ).to_pandas()
        except (pyarrow.ArrowException, ValueError) as error:
            raise UserError(
                f"{file} is no Parquet file ({error}); restore it, or run ./reproduce again"
            ) from error
        if frame.empty:  # a pilot: its variant has predictions of other seeds
            self._find_file(run, own)
        return frame.drop(columns="seed", errors="ignore")

    def curves(self, run: str) -> pd.DataFrame:
        """Return the values that a training logged: a row per step, a column per value, such as `loss`.

        Columns that begin with `valid_` are validation scores. Committed results have a part of the steps.
        """
        if run in self._runs.index and (self.folder / "curves.csv").exists():
            names = ("task", "method", "variant", "seed")
            *variant, seed = run.replace("/seed-", "/").split("/")
            frame = self._read_table("curves.csv", *names, "step", "name", "value")
            frame = _select(frame, dict(zip(names, (*variant, int(seed)), strict=True)))
        else:
            history = read_history(self._find_file(run, f"{run_folder(run)}/training.csv"))
            frame = pd.DataFrame(history, columns=["step", "name", "value"])
        return frame.pivot(index="step", columns="name", values="value").rename_axis(columns=None)

    def checkpoint(self, run: str) -> "Checkpoint":
        """Return the checkpoint of a run, checked against run.json; only `results/<scale>` has any.

        See `Checkpoint` for predictions. Raises UserError for other runs, and for files that were changed.
        """
        return read_checkpoint(
            self._find_file(run, f"{run_folder(run)}/checkpoint/model.safetensors").parents[1]
        )

    def load_model(self, run: str, device: str = "cpu") -> "torch.nn.Module":
        """Load the model of a run with the weights of its best validation, in eval mode, like `checkpoint`."""
        return self.checkpoint(run).load_model(device)

    def _read_table(self, name: str, *columns: str) -> pd.DataFrame:
        if not (self.folder / name).exists():
            raise UserError(f"{self.folder} has no {name}; ./reproduce writes it at its end")
        rows = read_csv(self.folder / name, columns)
        frame = pd.DataFrame(rows, columns=None if rows else columns).replace("", None)
        try:
            frame = frame.astype({column: float for column in frame if column in FLOATS | INTEGERS})
            return frame.astype({column: "Int64" for column in frame if column in INTEGERS})
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.folder / name}: {error}; restore it, or run ./reproduce again"
            ) from error

    def _find_file(self, run: str, name: str) -> Path:
        """Return a file of a run. Raises UserError if it does not exist, or if there is no such run."""
        if (file := self.folder / name).is_file():
            return file
        if run not in self._runs.index:
            of_task = [one for one in self._runs.index if one.split("/")[0] == run.split("/")[0]]
            known = f"it has runs of the tasks {', '.join(sorted({one.split('/')[0] for one in self._runs.index}))}"
            raise UserError(
                f"{self.folder} has no run {run}; {suggest_name(run, of_task) if of_task else known}"
            )
        target = f"results/{self.folder.name}/{evaluation_folder(run)}/evaluation.json"
        why = (
            f"only the results/<scale> in which it ran has this file; ./reproduce {target} runs it"
        )
        if "@" in run and not name.startswith(evaluation_folder(run)):
            why = "this run scores given weights and trains nothing"
        raise UserError(f"{self.folder} has no {name}: {why}")


def read_checkpoint(folder: str | Path) -> "Checkpoint":
    """Return the checkpoint of a folder of results/<scale>/runs, or of one that `export --checkpoints` wrote.

    Raises UserError if a file is missing, or if a spec or a file differs from its digest in run.json.
    """
    from workflow_scripts.tasks.base import Checkpoint  # torch takes more than a second to import

    folder = Path(folder)
    where, run = folder / "run.json", read_run(folder)
    recorded = {
        name.removeprefix("checkpoint/"): sha for name, sha in run.files.items() if "/" in name
    }
    if "model.safetensors" not in recorded:
        raise UserError(
            f"{where} was changed after training; get the folder again, or train the run again"
        )
    own = (folder / "checkpoint").is_dir()
    weights, evaluation = (folder / "checkpoint", folder / "eval") if own else (folder, folder)
    for name, sha in recorded.items():
        if not (weights / name).is_file() or hash_file(weights / name) != sha:
            raise UserError(
                f"{weights / name} is not the file of {where}; get the folder again, or train the run again"
            )
    content = read_mapping(evaluation / "evaluation.json", "spec")["spec"]
    settings = parse_as(
        load_kind_settings(run.spec.kind).evaluation,
        content,
        evaluation / "evaluation.json",
        "spec",
    )
    data = folder.absolute().parents[4] / data_folder(run.spec.task) if own else folder
    return Checkpoint(
        run.name, weights, run.spec, settings, read_mapping(data / "dataset.json").get("labels")
    )


def list_scored_runs(folder: Path) -> list[Path]:
    """Return the folders of the runs under results/<scale> that were scored, sorted by name."""
    return [file.parents[1] for file in sorted(folder.glob("runs/*/*/*/*/eval/evaluation.json"))]


def read_run_files(folder: Path) -> dict[str, Any]:
    """Read manifest and record of a training, or of the evaluation of given weights."""
    manifest = folder / "run.json"
    manifest = manifest if manifest.exists() else folder / "eval/evaluation.json"
    return read_mapping(manifest, "run") | read_mapping(manifest.with_name("record.json"))


def _select(frame: pd.DataFrame, chosen: dict[str, Any]) -> pd.DataFrame:
    _check_columns(frame, chosen)
    everything = frame
    for column, value in chosen.items():
        values = list(value) if pd.api.types.is_list_like(value) else [value]
        known = everything[column].dropna().unique() if column in NAMES else values
        if unknown := [value for value in values if value is not None and value not in known]:
            raise UserError(f"no {column} is '{unknown[0]}'; {suggest_name(unknown[0], known)}")
        found = frame[column].isin([value for value in values if value is not None])
        frame = frame.loc[found | (frame[column].isna() & (None in values))]
    return frame.reset_index(drop=True)


def _check_columns(frame: pd.DataFrame, names: Iterable[str]) -> None:
    if unknown := [name for name in names if name not in frame]:
        raise UserError(f"there is no column {unknown[0]}; {suggest_name(unknown[0], frame)}")

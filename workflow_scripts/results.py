"""Results of one scale in Python.

These are scores, claims, tables, provenance, predictions, curves and trained models:

    from workflow_scripts.results import Results
    Results("results/reference/small").scores(task="paws", metric="accuracy")

docs/python.md has more examples, docs/results.md the meaning of the columns.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    hash_file,
    read_csv,
    read_json,
    read_mapping,
)
from workflow_scripts.common.parquet_files import read_parquet
from workflow_scripts.common.result_folders import (
    RESULTS,
    CrateFolder,
    DataFolder,
    ExportFolder,
    ModelFolder,
    ResultsFolder,
    RunFolder,
    ScaleFolder,
    TableFiles,
)
from workflow_scripts.common.run_names import START, Run, VariantKey
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.data.prepared import digest_data, read_table
from workflow_scripts.evaluation.scores import NUMBERS, SCORE_COLUMNS, Score, read_scores
from workflow_scripts.provenance.exported import select_provenance
from workflow_scripts.reporting.claims.claim_rows import PLANNED, STATES, read_claim_rows
from workflow_scripts.reporting.tables.markdown_text import parse_table_text
from workflow_scripts.tasks.checkpoints import FinishedRun, read_run
from workflow_scripts.tasks.packages import load_kind_settings
from workflow_scripts.training.history import read_history

if TYPE_CHECKING:
    import torch

    from workflow_scripts.reporting.committed.cell_seeds import RestoredScores
    from workflow_scripts.reporting.tables.cells import Cell
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
RUN_COLUMNS = list(Run._fields)  # of scores.csv
# Columns with one of a few words, which a folder may have no row of.
WORDS = {
    "kind": ("paper", "control"),
    "protocol": ("paper", "reduced", "stand_in"),
    "role": ("primary", "exploratory"),
    "verdict": STATES,
}


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
        crate = CrateFolder(self.folder)
        if crate.metadata.exists():
            for scale in crate.results.list_complete_scales():
                self.folder = scale.path
                break
        # The files of each kind of folder. One of them may lack some.
        self._files = ScaleFolder(self.folder)
        self._exported = ExportFolder(self.folder)
        self._cells: dict[str, list[Cell]] = {}  # of tables, by their names
        self._restored: RestoredScores | None = None
        contents = (
            self._files.claims.table,
            self._exported.provenance,
            self._files.runs,
            self._files.tables,
        )
        if any(path.exists() for path in contents):
            return
        fault = "holds no results of a scale"
        parent = self.folder
        if not self.folder.is_dir():
            fault = "does not exist"
            parent = self.folder.parent
        siblings = ResultsFolder(parent).list_scales()
        scales = ", ".join(str(scale.path) for scale in siblings if scale.claims.table.exists())
        kinds = "results/<scale>, results/reference/<scale> or an unpacked crate"
        raise UserError(f"{folder} {fault}; give {kinds}; here: {scales or 'none'}")

    def __repr__(self) -> str:
        return f"Results('{self.folder}')"

    @cached_property
    def _scores(self) -> pd.DataFrame:
        files = [self._exported.scores]
        if not self._exported.scores.exists():
            files = self._files.list_score_files()
        if not files:
            raise UserError(f"{self.folder} has no scores; make some with ./reproduce")
        scores: list[Score] = []
        for file in files:
            scores += read_scores(file)
        types = {name: "Int64" if kind is int else float for name, kind in NUMBERS.items()}
        return pd.DataFrame(scores).reindex(columns=list(SCORE_COLUMNS)).astype(types)

    def scores(self, *, pilots: bool = False, **selection: Any) -> pd.DataFrame:
        """Return the scores of the runs, one per row, with the columns of scores.csv.

        `selection` selects rows by column, by one value or several:
        `scores(task="paws", seed=[101, 102])`. None selects rows without a value:
        `intervention=None` are scores of the unchanged model. Where a variant has pilots of an
        analysis plan and later seeds, the scores are of those that tables count, unless `pilots` or
        a `seed` asks for the others; `attrs["notes"]` says how many were left out. Raises UserError
        for an unknown column, and for a name that no row has.
        """
        selected = _select(self._scores, selection)
        if pilots or "seed" in selection:
            return selected
        uncounted = self._uncounted_seeds
        is_counted = []
        for task, method, variant, seed in selected[RUN_COLUMNS].itertuples(index=False):
            key = VariantKey(task, method, variant)
            is_counted.append(seed not in uncounted.get(key, ()))
        counted = selected.loc[is_counted].reset_index(drop=True)
        if len(counted) < len(selected):
            count = len(selected) - len(counted)
            left_out = f"{count} scores of seeds that tables do not count are left out"
            counted.attrs["notes"] = [f"{left_out}; pilots=True has them"]
        return counted

    @cached_property
    def _uncounted_seeds(self) -> Mapping[VariantKey, set[int]]:
        """The seeds of each variant that `scores` leaves out; none without a catalogue."""
        from workflow_scripts.config.loading import load_catalogue
        from workflow_scripts.reporting.committed.counted_seeds import find_uncounted_seeds

        root = self._find_checkout()
        if root is None:
            return {}
        columns = self._scores[RUN_COLUMNS].drop_duplicates()
        scored: dict[VariantKey, set[int]] = defaultdict(set)
        for task, method, variant, seed in columns.itertuples(index=False):
            scored[VariantKey(task, method, variant)].add(seed)
        return find_uncounted_seeds(load_catalogue(root), self._scale, scored)

    @cached_property
    def _scale(self) -> str:
        """The scale of the runs; the folder may have another name."""
        scales = {self.folder.resolve().name}
        if self._exported.provenance.exists():
            runs = _read_provenance(self._exported.provenance)
            scales = {str(run["scale"]) for run in runs if run.get("scale")} or scales
        if len(scales) > 1:
            raise UserError(f"{self.folder} has runs of the scales {', '.join(sorted(scales))}")
        return scales.pop()

    def _find_checkout(self) -> Path | None:
        """Return the folder with `catalogue/` and `papers/` that the results were made with.

        It is above them, or else it is that of this package; None for an installed package.
        """
        candidates = [*self.folder.resolve().parents, Path(__file__).resolve().parents[1]]
        for folder in candidates:
            if (folder / "catalogue").is_dir() and (folder / "papers").is_dir():
                return folder
        return None

    def claims(self, **selection: Any) -> pd.DataFrame:
        """Return the claims, one per row, with the columns of claims.csv.

        They are selected as in `scores`. A `claim` may also be `<paper>/<claim>`, as in the
        commands. `verdict` is that of claims.csv, where a planned claim has "no verdict".
        `verdict="planned"` selects the primary claims whose planned seeds are still to be run.
        """
        file = self._files.claims.table
        frame = self._read_table(file, "paper", "claim", "verdict")
        selection = {column: _list_values(value) for column, value in selection.items()}
        if PLANNED not in selection.get("verdict", ()):
            return _select_claims(frame, selection)
        verdicts = frame["verdict"]
        states = frame.assign(verdict=[row.state for row in read_claim_rows(file)])
        selected = _select_claims(states.assign(written=verdicts), selection)
        return selected.assign(verdict=selected["written"]).drop(columns="written")

    def sides(self, **selection: Any) -> pd.DataFrame:
        """Return what claims compare: a row per claim, side, cell and seed.

        They are selected as in `claims`.
        """
        columns = ("paper", "claim", "side", "cell", "seed", "value")
        frame = self._read_table(self._files.claims.sides, *columns)
        selection = {column: _list_values(value) for column, value in selection.items()}
        return _select_claims(frame, selection)

    def tables(self) -> list[str]:
        """Return the names of all tables, `<paper>/<table>`."""
        return [f"{table.folder.name}/{table.name}" for table in self._files.list_tables()]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table with one cell per row, indexed by row, column and metric.

        The columns are unit, published, published_std, reproduced, std, n_seeds, ci_low, ci_high,
        difference, protocol, status and note. `attrs` has the table's `title`, and its `notes`:
        what the numbers are, their unit and protocol. Raises UserError for an unknown name.
        """
        files = self._find_table(name)
        index = ["row", "column", "metric"]
        frame = self._read_table(files.csv, *index).set_index(index)
        if files.markdown.exists():
            frame.attrs |= parse_table_text(files.markdown.read_text(encoding="utf-8"))._asdict()
        return frame

    def _find_table(self, name: str) -> TableFiles:
        """Return the files of a table. Raises UserError for an unknown name."""
        if name not in self.tables():
            raise UserError(
                f"{self.folder} has no table '{name}'; {suggest_name(name, self.tables())}"
            )
        paper, _, table = name.partition("/")
        return self._files.table(paper, table)

    def latex(self, name: str, rows: str | Collection[str] = (), *, notes: bool = True) -> str:
        """Return a table as LaTeX, for the packages booktabs and xcolor.

        It has published and reproduced numbers, the seeds, and the notes: the file `.tex` of the
        table. With `rows`, one label of a row or several, it has these alone, in the order of the
        table. `notes=False` leaves out the notes. Raises UserError for an unknown name or row.
        """
        files = self._find_table(name)
        if files.latex.exists() and not rows and notes:
            return files.latex.read_text(encoding="utf-8")
        from workflow_scripts.reporting.tables.parsed_markdown import format_parsed_table

        labels = [rows] if isinstance(rows, str) else rows
        try:
            markdown = files.markdown.read_text(encoding="utf-8")
            return format_parsed_table(name, markdown, labels, notes)
        except (OSError, ValueError) as error:
            raise UserError(f"{files.markdown}: {error}; ./reproduce makes it again") from error

    def seeds(self, paper: str, display: str, row: str, column: str, metric: str) -> pd.Series:
        """Return the values by seed whose mean is a cell of a table, exactly those of the table.

        They are made from the scores as the table is; the first call for committed results takes a
        second or two. `attrs` has the unit. Raises UserError for a cell without seeds, and
        where the checkout's `catalogue/` and `papers/` are not at hand.
        """
        name = f"{paper}/{display}"
        table = self.table(name)
        place = (row, column, metric)
        if place not in table.index:
            names = [", ".join(map(str, known)) for known in table.index]
            raise UserError(
                f"{name} has no cell {row}, {column}, {metric}; "
                f"{suggest_name(', '.join(place), names)}"
            )
        shown = table.loc[place]
        cells = {(cell.row, cell.column, cell.metric): cell for cell in self._make_cells(name)}
        cell = cells.get(place)
        if cell is None or cell.status != "measured":
            reason = _describe_absence(shown["status"], shown["note"])
            raise UserError(f"{name}: cell {row}, {column}, {metric} is {reason}")
        if shown["status"] != "measured" or len(cell.seeds) != shown["n_seeds"]:
            raise UserError(f"{name} is older than the scores; ./reproduce makes it again")
        values = pd.Series(cell.seeds, name="value", dtype=float).rename_axis("seed")
        values.attrs["unit"] = cell.unit
        return values

    def _make_cells(self, name: str) -> "list[Cell]":
        """Make the cells of a table from the scores, once."""
        from workflow_scripts.config.loading import load_catalogue
        from workflow_scripts.reporting.committed.cell_seeds import RestoredScores, make_own_cells

        if name in self._cells:
            return self._cells[name]
        root = self._find_checkout()
        if root is None:
            raise UserError(f"{self.folder} is in no checkout, whose papers/ has the cells")
        catalogue = load_catalogue(root)
        paper, _, table = name.partition("/")
        if self._exported.scores.exists():
            if self._restored is None:
                self._restored = RestoredScores(catalogue, self._exported)
            cells = self._restored.make_table_cells(paper, table)
        else:
            cells = make_own_cells(catalogue, self._files, paper, table)
        self._cells[name] = cells
        return cells

    def wide(self, name: str, value: str | list[str] = "reproduced") -> pd.DataFrame:
        """Return one or several columns of a table as the paper prints it.

        The frame has rows by columns and metrics. Of a cell without a number `status` and `note`
        say why: `wide(name, "status")`.
        """
        table = self.table(name)
        _check_columns(table, [value] if isinstance(value, str) else value)
        frame = pd.DataFrame(table[value].unstack(["column", "metric"], sort=False))
        frame.attrs |= table.attrs
        return frame

    @cached_property
    def _runs(self) -> pd.DataFrame:
        if self._exported.provenance.exists():
            runs = _read_provenance(self._exported.provenance)
        else:
            folders = self._files.list_scored_runs()
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

    def predictions(self, run: str, *, texts: bool = False) -> pd.DataFrame:
        """Return the predictions of a run, one example per row.

        The columns depend on the kind of task. Committed results have those of primary claims only,
        and crates have none. With `texts` the inputs and right answers follow in columns of their
        own: those under version control, else those of the prepared data of the same scale. Raises
        UserError for other runs, and for texts that are not there or not those of the run.
        """
        parsed = self._parse_run(run)
        own_file = self._files.run(parsed).evaluation.predictions
        exported = self._exported.predictions_of(parsed.variant_key)
        if exported.exists() and run in self._runs.index:
            # It has the predictions of several seeds.
            table = read_parquet(exported, filters=[("seed", "==", parsed.seed)])
        else:
            table = read_parquet(self._require_file(parsed, own_file))
        if not table.num_rows:  # a pilot: its variant has predictions of other seeds
            self._require_file(parsed, own_file)
        predictions = table.to_pandas().drop(columns="seed", errors="ignore")
        if not texts:
            return predictions
        return _add_texts(predictions, self._find_texts(parsed))

    def _find_texts(self, run: Run) -> DataFolder:
        """Return the folder with inputs and right answers of a run's data.

        Raises UserError if there is none, or if the prepared data are not those of the run.
        """
        committed = self._exported.answers(run.task)
        if committed.path.is_dir():
            return committed
        scale = self._files
        if self.folder.resolve().parent.name == RESULTS.reference.name:
            scale = ResultsFolder(self.folder.resolve().parents[1]).scale(self._scale)
        data = scale.data(run.task)
        target = RESULTS.scale(self._scale).data(run.task).manifest
        if not data.manifest.exists():
            raise UserError(
                f"{self.folder} has no texts of {run.task}; ./reproduce {target} downloads and "
                "prepares them"
            )
        recorded = None
        if "data_digest" in self._runs and str(run) in self._runs.index:
            recorded = self._runs.loc[str(run), "data_digest"]
        if isinstance(recorded, str) and recorded != digest_data(data.path):
            raise UserError(f"{data.path} has other data than {run}; ./reproduce {target}")
        return data

    def curves(self, run: str) -> pd.DataFrame:
        """Return the values that a training logged.

        The frame has a row per step and a column per value, such as `loss`. Columns that begin with
        `valid_` are validation scores. Committed results have a part of the steps.
        """
        parsed = self._parse_run(run)
        if run in self._runs.index and self._exported.curves.exists():
            names = parsed._asdict()
            frame = self._read_table(self._exported.curves, *names, "step", "name", "value")
            frame = frame[(frame[list(names)] == pd.Series(names)).all(axis=1)]
            if frame.empty:
                self._require_file(parsed, self._files.run(parsed).curve)
        else:
            history = read_history(self._require_file(parsed, self._files.run(parsed).curve))
            frame = pd.DataFrame(history, columns=["step", "name", "value"])
        return frame.pivot(index="step", columns="name", values="value").rename_axis(columns=None)

    def checkpoint(self, run: str) -> "Checkpoint":
        """Return the checkpoint of a run, checked against run.json.

        `results/<scale>` has those of its trainings, and committed results have few: `models()`.
        See `Checkpoint` for predictions. Raises UserError for other runs, and for files that were
        changed.
        """
        parsed = self._parse_run(run)
        folder = self._files.run(parsed)
        committed = self._exported.model(parsed)
        if not folder.weights.is_file() and committed.run.is_file():
            return read_checkpoint(committed.path)
        self._require_file(parsed, folder.weights)
        return read_checkpoint(folder.path)

    def models(self) -> list[str]:
        """Return the names of the runs that have a checkpoint."""
        trained = [folder.name for folder in self._files.list_trained_runs()]
        committed = [folder.name for folder in self._exported.list_models()]
        return sorted({*trained, *committed})

    def load_model(self, run: str, device: str = "cpu") -> "torch.nn.Module":
        """Load the model of a run with the weights of its best validation, in eval mode.

        The files are checked as in `checkpoint`.
        """
        return self.checkpoint(run).load_model(device)

    def _read_table(self, file: Path, *columns: str) -> pd.DataFrame:
        if not file.exists():
            name = file.relative_to(self.folder).as_posix()
            raise UserError(f"{self.folder} has no {name}; ./reproduce writes it at its end")
        rows = read_csv(file, columns)
        frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(columns))
        frame = frame.replace("", None)
        numbers = [column for column in frame if column in FLOATS | INTEGERS]
        integers = [column for column in numbers if column in INTEGERS]
        try:
            # Integers by way of floats, because a text is no Int64.
            frame = frame.astype(dict.fromkeys(numbers, float))
            return frame.astype(dict.fromkeys(integers, "Int64"))
        except (TypeError, ValueError) as error:
            raise UserError(f"{file}: {error}; restore it, or run ./reproduce again") from error

    def _parse_run(self, name: str) -> Run:
        """Parse the name of a run. Raises UserError with the nearest name for another form."""
        try:
            return Run.parse(name)
        except UserError:
            raise self._refuse_run(name) from None

    def _refuse_run(self, name: str) -> UserError:
        """Return the error for a name of no run, with the nearest name."""
        return UserError(f"{self.folder} has no run {name}; {self._suggest_run(name)}")

    def _require_file(self, run: Run, file: Path) -> Path:
        """Return a file of a run.

        Raises UserError if it does not exist, or if there is no such run.
        """
        if file.is_file():
            return file
        name = file.relative_to(self.folder).as_posix()
        folder = self._files.run(run)
        if str(run) not in self._runs.index:
            raise self._refuse_run(str(run))
        if run.weights and not file.is_relative_to(folder.evaluation.path):
            raise UserError(
                f"{self.folder} has no {name}: this run scores given weights and trains nothing; "
                f"name {find_training(run)}"
            )
        target = RESULTS.scale(self._scale).run(run).evaluation.manifest
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


def _describe_absence(status: str, note: str | None) -> str:
    """Say why a cell has no seeds: its status, and the first part of its note if that says more.

    The other parts are about the published number.
    """
    reason = "it has no scores of runs"
    if isinstance(note, str):
        reason = note.split("; ")[0]
    if reason.startswith(status):
        return reason
    return f"{status}: {reason}"


def find_training(run: Run) -> Run:
    """Return the training whose weights, or start, a run with given weights scores."""
    if run.weights in (None, START):
        return run.training
    return run.training._replace(task=run.weights)


def read_checkpoint(folder: str | Path) -> "Checkpoint":
    """Return the checkpoint of a folder of results/<scale>/runs.

    A folder that `export --checkpoints` wrote has one too. Raises UserError if a file is missing,
    or if a spec or a file differs from its digest in run.json.
    """
    from workflow_scripts.tasks.base import Checkpoint  # torch takes more than a second to import

    run_folder = RunFolder(Path(folder))
    run = read_run(run_folder.path)
    if run_folder.checkpoint.is_dir():
        weights = run_folder.checkpoint
        file = run_folder.evaluation.manifest
        dataset = run_folder.scale.data(run.spec.task).manifest
    else:
        model = ModelFolder(run_folder.path)
        weights = model.path
        file = model.evaluation
        dataset = model.dataset
    _check_weights(weights, run, run_folder.manifest)
    content = read_mapping(file, "spec")["spec"]
    settings = parse_as(load_kind_settings(run.spec.kind).evaluation, content, file, "spec")
    labels = read_mapping(dataset).get("labels")
    return Checkpoint(str(run.run), weights, run.spec, settings, labels)


def _check_weights(weights: Path, run: FinishedRun, manifest: Path) -> None:
    """Raise UserError unless the folder `weights` has the files of the checkpoint of a run.

    manifest: the file that says so.
    """
    what_to_do = "get the folder again, or train the run again"
    if not run.has_weights:
        raise UserError(f"{manifest} was changed after training; {what_to_do}")
    # An export has the best weights once, where others that the training kept are the same.
    is_left_out = {
        name for name, sha256 in run.checkpoint_files.items() if sha256 == run.weights_sha256
    }
    is_left_out.discard(RunFolder(Path()).weights.name)
    for name, sha256 in run.checkpoint_files.items():
        file = weights / name
        if not file.exists() and name in is_left_out:
            continue
        if not file.is_file() or hash_file(file) != sha256:
            raise UserError(f"{file} is not the file of {manifest}; {what_to_do}")


def read_run_files(folder: RunFolder) -> dict[str, Any]:
    """Read manifest and record of a training, or of the evaluation of given weights."""
    if folder.manifest.exists():
        return read_mapping(folder.manifest, "run") | read_mapping(folder.record)
    evaluation = folder.evaluation
    return read_mapping(evaluation.manifest, "run") | read_mapping(evaluation.record)


def _read_provenance(file: Path) -> list[dict[str, Any]]:
    runs = read_json(file)
    is_list_of_runs = isinstance(runs, list) and all(
        isinstance(run, dict) and "run" in run for run in runs
    )
    if not is_list_of_runs:
        raise UserError(f"{file} is not what export writes; restore it")
    return runs


def _add_texts(predictions: pd.DataFrame, data: DataFolder) -> pd.DataFrame:
    """Add the columns of the data, but for lists of numbers, to the predictions of their rows.

    Raises UserError if a prediction is of no row of the data.
    """
    parts = []
    for split, part in predictions.groupby("split", sort=False):
        table = read_table(data.path, str(split))
        lists = [field.name for field in table.schema if pyarrow.types.is_list(field.type)]
        key = "row" if "row" in part else "item"
        texts = table.drop_columns(lists).to_pandas()
        if key == "row":
            texts.index = pd.RangeIndex(len(texts), name="row")
        else:
            texts = texts.set_index("item")
        texts = texts.drop(columns=[name for name in part if name in texts])
        if not texts.index.is_unique or not set(part[key]) <= set(texts.index):
            raise UserError(f"{data.split(str(split))} has not the rows of the predictions")
        parts.append(part.join(texts, on=key))
    return pd.concat(parts).sort_index()


def _select_claims(frame: pd.DataFrame, selection: dict[str, list[Any]]) -> pd.DataFrame:
    """Select rows of claims or sides, by claims with or without their paper."""
    if not any("/" in str(name) for name in selection.get("claim", ())):
        return _select(frame, selection)
    claims = frame["claim"]
    named = frame.assign(claim=frame["paper"] + "/" + claims, alone=claims)
    selected = _select(named, selection)
    return selected.assign(claim=selected["alone"]).drop(columns="alone")


def _list_values(value: Any) -> list[Any]:
    """List the values that a keyword selects."""
    return list(value) if pd.api.types.is_list_like(value) else [value]


def _select(frame: pd.DataFrame, selection: dict[str, Any]) -> pd.DataFrame:
    """Select the rows whose columns have one of the selected values; see `Results.scores`."""
    _check_columns(frame, selection)
    is_selected = pd.Series(True, index=frame.index)
    for column, value in selection.items():
        values = _list_values(value)
        selects_missing = None in values
        values = [value for value in values if value is not None]
        if column in WORDS:
            _check_names(column, values, WORDS[column])
        elif pd.api.types.is_numeric_dtype(frame[column]):
            _check_numbers(column, values)
        else:
            _check_names(column, values, list(frame[column].dropna().unique()))
        has_value = frame[column].isin(values)
        if selects_missing:
            has_value |= frame[column].isna()
        is_selected &= has_value
    return frame.loc[is_selected].reset_index(drop=True)


def _check_names(column: str, values: list[Any], known: Collection[str]) -> None:
    """Raise UserError if one of the values is not a known one."""
    for value in values:
        if value not in known:
            raise UserError(f"no {column} is '{value}'; {suggest_name(str(value), known)}")


def _check_numbers(column: str, values: list[Any]) -> None:
    """Raise UserError if one of the values is a text."""
    for value in values:
        if isinstance(value, str):
            raise UserError(f"{column} is a number; give one in place of the text '{value}'")


def _check_columns(frame: pd.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if name not in frame:
            raise UserError(f"there is no column '{name}'; {suggest_name(name, frame)}")

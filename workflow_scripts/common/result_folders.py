"""The files under results/, and what each of them is. Every other module asks these classes.

    RESULTS.scale("small").run("cogs/lrf/default/seed-21").evaluation.scores

is results/small/runs/cogs/lrf/default/seed-21/eval/scores.csv. The names may also be wildcards of
the rules, or patterns. Nothing here needs to exist, but for the methods `list_…`.

A manifest says what its job made, with the sha256 of the other files. A record says how it was
made: docs/results.md.
"""

from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping
from workflow_scripts.common.run_names import VariantKey


@dataclass(frozen=True)
class Folder:
    """A folder. Its subclasses say what is in it and add no field, so they need no decorator."""

    path: Path


class JobFolder(Folder):
    """A folder that one job makes."""

    @property
    def record(self) -> Path:
        """How the job made it."""
        return self.path / "record.json"


# Downloads


@dataclass(frozen=True)
class DownloadedFile:
    """A file of sources.yaml. Made by the rule fetch."""

    path: Path

    @property
    def manifest(self) -> Path:
        """Its checksum and origin."""
        return self.path.with_name(f"{self.path.name}.json")


class HubModelFolder(Folder):
    """A model of the hub, or of a wheel. Made by the rule fetch_model."""

    @property
    def manifest(self) -> Path:
        """Its revision, and the sha256 of the other files."""
        return self.path / "model.json"


class DownloadFolder(Folder):
    """All downloads, which the scales share."""

    def source(self, name: str) -> DownloadedFile:
        """Return the file `<dataset>/<file>` of sources.yaml."""
        return DownloadedFile(self.path / name)

    def model(self, name: str) -> HubModelFolder:
        """Return the folder of a model."""
        return HubModelFolder(self.path / "models" / name)

    def trained(self, scale: str, run: object) -> "ModelFolder":
        """Return the folder of a trained model of a release. run: a `Run`, or its name."""
        return ModelFolder(self.path / "trained" / scale / str(run))

    def list_trained(self) -> list["ModelFolder"]:
        """List the trained models of releases that are there, of all scales."""
        pattern = self.trained("*", ANY_RUN).run.relative_to(self.path)
        return [ModelFolder(file.parent) for file in sorted(self.path.glob(pattern.as_posix()))]

    @property
    def archives(self) -> Path:
        """The folder of the archives of releases."""
        return self.path / "trained" / "archives"


# Results of one scale, by job


class DataFolder(JobFolder):
    """The prepared data of a task. Made by the rule prepare."""

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.path.name

    @property
    def manifest(self) -> Path:
        """Splits, labels, protocol and notes, and the sha256 of the other files."""
        return self.path / "dataset.json"

    def split(self, name: str) -> Path:
        """Return the examples of a split."""
        return self.path / f"{name}.parquet"

    @property
    def vocabulary(self) -> Path:
        """The tokens by id, of source and target."""
        return self.path / "vocabulary.json"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer whose ids the examples have."""
        return self.path / "tokenizer.json"

    @property
    def lexicon(self) -> Path:
        """The translations of compounds."""
        return self.path / "lexicon.json"

    @property
    def sememe_names(self) -> Path:
        """The names of the sememes by id."""
        return self.path / "sememe_names.json"

    @property
    def names(self) -> set[str]:
        """The names of all files, as patterns; those with ids are mapped into memory."""
        return {self.split("*").name, "*.json", "*.mapped"}


class CandidateFolder(JobFolder):
    """The replacement words for the items of a task. Made by the rule candidates."""

    @property
    def words(self) -> Path:
        """The table of replacement words."""
        return self.path / "candidates.parquet"

    @property
    def manifest(self) -> Path:
        """The spec, and the sha256 of the words."""
        return self.path / "candidates.json"

    @property
    def names(self) -> set[str]:
        """The names of all files."""
        return {self.words.name, self.manifest.name, self.record.name}


class SearchFolder(JobFolder):
    """The search of learning rate and batch size of a variant. Made by the rule search."""

    @property
    def chosen(self) -> Path:
        """The best pair, and the sha256 of the table of all."""
        return self.path / "chosen.json"

    @property
    def pairs(self) -> Path:
        """The table of all pairs."""
        return self.path / "search.csv"

    @property
    def names(self) -> set[str]:
        """The names of all files."""
        return {self.chosen.name, self.pairs.name, self.record.name}


class EvaluationFolder(JobFolder):
    """The scores of a run. Made by the rule evaluate."""

    @property
    def predictions(self) -> Path:
        """The output for each example."""
        return self.path / "predictions.parquet"

    @property
    def scores(self) -> Path:
        """The scores."""
        return self.path / "scores.csv"

    @property
    def manifest(self) -> Path:
        """What was scored and how, and the sha256 of the other files."""
        return self.path / "evaluation.json"

    @property
    def names(self) -> set[str]:
        """The names of all files."""
        return {self.predictions.name, self.scores.name, self.manifest.name, self.record.name}


class InterventionFolder(JobFolder):
    """The scores of a run under interventions. Made by the rule intervene."""

    @property
    def scores(self) -> Path:
        """The scores."""
        return self.path / "scores.csv"

    @property
    def answers(self) -> Path:
        """Each answer under each intervention."""
        return self.path / "answers.parquet"

    @property
    def manifest(self) -> Path:
        """What was scored and how, and the sha256 of the other files."""
        return self.path / "intervention.json"

    @property
    def names(self) -> set[str]:
        """The names of all files."""
        return {self.scores.name, self.answers.name, self.manifest.name, self.record.name}


class RunFolder(JobFolder):
    """A run. Made by the rule train; of given weights it has the folders of scores alone."""

    @property
    def name(self) -> str:
        """The name of the run, `<task>/<method>/<variant>/seed-<n>`."""
        return "/".join(self.path.parts[-4:])

    @property
    def checkpoint(self) -> Path:
        """The folder of the trained model."""
        return self.path / "checkpoint"

    def weights_at(self, readout: str) -> Path:
        """Return the weights that the training kept for a readout."""
        return self.checkpoint / f"{readout}.safetensors"

    @property
    def weights(self) -> Path:
        """The weights that validation chose."""
        return self.weights_at("model")

    @property
    def curve(self) -> Path:
        """What the training logged, by step."""
        return self.path / "training.csv"

    @property
    def manifest(self) -> Path:
        """The spec and the steps, and the sha256 of the other files of the training."""
        return self.path / "run.json"

    @property
    def evaluation(self) -> EvaluationFolder:
        """The folder of its scores."""
        return EvaluationFolder(self.path / "eval")

    @property
    def interventions(self) -> InterventionFolder:
        """The folder of its scores under interventions."""
        return InterventionFolder(self.path / "interventions")

    @property
    def has_given_weights(self) -> bool:
        """Whether the run scores given weights and trains nothing, by its name."""
        return "@" in self.path.parent.name

    @property
    def first_manifest(self) -> Path:
        """The manifest of the training; of given weights, of their evaluation."""
        if self.has_given_weights:
            return self.evaluation.manifest
        return self.manifest

    @property
    def scale(self) -> "ScaleFolder":
        """The results that the run is of."""
        return ScaleFolder(self.path.absolute().parents[4])

    @property
    def names(self) -> set[str]:
        """The names of all files and folders."""
        files = (self.checkpoint, self.curve, self.manifest, self.record)
        folders = (self.evaluation.path, self.interventions.path)
        return {path.name for path in files + folders}

    def list_score_files(self) -> list[Path]:
        """List the scores that are there, without interventions first."""
        files = (self.evaluation.scores, self.interventions.scores)
        return [file for file in files if file.exists()]


class AnalysisFolder(JobFolder):
    """An analysis of a paper. Made by the rule analyse."""

    @property
    def paper(self) -> str:
        """The key of the paper."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """The name of the analysis there."""
        return self.path.name

    @property
    def scores(self) -> Path:
        """The scores."""
        return self.path / "scores.csv"

    def table(self, name: str) -> Path:
        """Return a further table, which a figure reads."""
        return self.path / f"{name}.csv"

    @property
    def manifest(self) -> Path:
        """What was analysed, and the sha256 of the other files."""
        return self.path / "analysis.json"

    @property
    def names(self) -> set[str]:
        """The names of all files; those of tables as a pattern."""
        return {self.table("*").name, self.manifest.name, self.record.name}


# Reports


@dataclass(frozen=True)
class DisplayFiles:
    """The files of a table or a figure, which have the same name and several endings."""

    folder: Path
    name: str

    def with_ending(self, ending: str) -> Path:
        """Return the file with an ending such as `csv`."""
        return self.folder / f"{self.name}.{ending}"

    @property
    def csv(self) -> Path:
        """The cells of a table, or the data of a figure."""
        return self.with_ending("csv")

    @property
    def record(self) -> Path:
        """How it was made."""
        return self.with_ending("json")


class TableFiles(DisplayFiles):
    """A table of a paper. Made by the rule table."""

    @property
    def markdown(self) -> Path:
        """The table as the paper prints it, next to the reproduced numbers."""
        return self.with_ending("md")

    @property
    def latex(self) -> Path:
        """The same for a paper."""
        return self.with_ending("tex")

    @property
    def html(self) -> Path:
        """The same for the report."""
        return self.with_ending("html")

    @property
    def files(self) -> list[Path]:
        """All files."""
        return [self.csv, self.markdown, self.latex, self.html, self.record]


class FigureFiles(DisplayFiles):
    """A figure of a paper. Made by the rule figure."""

    @property
    def svg(self) -> Path:
        """The figure for pages."""
        return self.with_ending("svg")

    @property
    def png(self) -> Path:
        """The figure in pixels."""
        return self.with_ending("png")

    @property
    def files(self) -> list[Path]:
        """All files."""
        return [self.csv, self.svg, self.png, self.record]


@dataclass(frozen=True)
class ClaimFiles:
    """The verdicts, and what goes with them. Made by the rules claims and claim."""

    table: Path

    @property
    def sides(self) -> Path:
        """The compared values, by seed."""
        return self.table.with_name("claim_sides.csv")

    @property
    def record(self) -> Path:
        """How the verdicts were made."""
        return self.table.with_suffix(".json")

    @property
    def overview(self) -> Path:
        """The first page of the report. Of all claims only."""
        return self.table.with_name("overview.rst")

    @property
    def files(self) -> list[Path]:
        """All files, without the overview."""
        return [self.table, self.sides, self.record]


class ReportFolder(Folder):
    """What results of a scale and their export have in common: tables, figures and claims."""

    @property
    def claims(self) -> ClaimFiles:
        """The verdicts."""
        return ClaimFiles(self.path / "claims.csv")

    @property
    def tables(self) -> Path:
        """The folder of the tables of all papers."""
        return self.path / "tables"

    @property
    def figures(self) -> Path:
        """The folder of the figures of all papers."""
        return self.path / "figures"

    def table(self, paper: str, name: str) -> TableFiles:
        """Return the files of a table."""
        return TableFiles(self.tables / paper, name)

    def figure(self, paper: str, name: str) -> FigureFiles:
        """Return the files of a figure."""
        return FigureFiles(self.figures / paper, name)

    def list_tables(self) -> list[TableFiles]:
        """List the tables that are there."""
        files = self._list_paths(self.table("*", "*").csv)
        return [self.table(file.parent.name, file.stem) for file in files]

    def list_figures(self) -> list[FigureFiles]:
        """List the figures that are there."""
        files = self._list_paths(self.figure("*", "*").csv)
        return [self.figure(file.parent.name, file.stem) for file in files]

    def _list_paths(self, pattern: Path) -> list[Path]:
        """List the files that match a pattern in this folder, sorted."""
        return sorted(self.path.glob(pattern.relative_to(self.path).as_posix()))


class SpecFolder(Folder):
    """What each job is given. Written when the workflow is planned."""

    def data(self, task: str) -> Path:
        """Return the data spec of a task."""
        return self.path / "data" / f"{task}.json"

    def candidates(self, task: str) -> Path:
        """Return the spec of the replacement words of a task."""
        return self.path / "candidates" / f"{task}.json"

    def search(self, variant: object) -> Path:
        """Return what the search before the trainings of a variant is given.

        variant: a `VariantKey`, or its name.
        """
        return self.path / str(variant) / "search.json"

    def run(self, run: object) -> Path:
        """Return what the jobs of a run are given. run: a `Run`, or its name."""
        return self.path / f"{run}.json"

    def analysis(self, paper: str, name: str) -> Path:
        """Return what the job of an analysis is given."""
        return self.path / "analyses" / paper / f"{name}.json"


class EarlierFolder(Folder):
    """A result of earlier settings or code. Kept by ./reproduce before it makes another."""

    @property
    def entry(self) -> Path:
        """Which job made it, of what, and Snakemake's records of it."""
        return self.path / "entry.json"

    @property
    def files(self) -> Path:
        """The files of the job's folder."""
        return self.path / "files"


ANY_RUN = "*/*/*/*"  # task, method, variant and seed


class ScaleFolder(ReportFolder):
    """The results of one scale, `results/<scale>`."""

    @property
    def config(self) -> Path:
        """The configuration of the last complete call."""
        return self.path / "config.json"

    @property
    def page(self) -> Path:
        """The page of all tables, figures and claims. Made by the rule page."""
        return self.path / "index.html"

    @property
    def report(self) -> Path:
        """Snakemake's report of the same. Made by the rule snakemake_report."""
        return self.path / "report.html"

    @property
    def unfinished(self) -> Path:
        """What was asked for and is not there, and why. Made by `show-finished`."""
        return self.path / "unfinished.json"

    @property
    def site(self) -> Path:
        """The folder of the pages of the results. Made by the rule site."""
        return self.path / "site"

    @property
    def specs(self) -> SpecFolder:
        """What the jobs are given."""
        return SpecFolder(self.path / "specs")

    @property
    def exported(self) -> "ScaleFolder":
        """The runs that `--finish-within` has copied, in the same layout."""
        return ScaleFolder(self.path / "exported")

    @property
    def earlier_results(self) -> Path:
        """The folder of all earlier results."""
        return self.path / "earlier"

    def earlier(self, key: str) -> EarlierFolder:
        """Return the folder of an earlier result. key: a digest of its job, settings and inputs."""
        return EarlierFolder(self.earlier_results / key)

    def data(self, task: str) -> DataFolder:
        """Return the folder of the prepared data of a task."""
        return DataFolder(self.path / "data" / task)

    def candidates(self, task: str) -> CandidateFolder:
        """Return the folder of the replacement words of a task."""
        return CandidateFolder(self.path / "candidates" / task)

    def search(self, variant: object) -> SearchFolder:
        """Return the folder of the search before `<task>/<method>/<variant>`."""
        return SearchFolder(self.path / "search" / str(variant))

    def search_state(self, variant: object, digest: str) -> Path:
        """Return the folder from which a killed search resumes. digest: of its inputs and code."""
        return self.path / "state" / str(variant) / "search" / digest

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.path / "runs"

    def run(self, run: object) -> RunFolder:
        """Return the folder of a run. run: a `Run`, or its name."""
        return RunFolder(self.path.joinpath("runs", str(run)))  # two joins take twice as long

    def training_state(self, run: object, digest: str) -> Path:
        """Return the folder from which a killed training resumes, as for a search."""
        return self.path / "state" / str(run) / digest

    def intervention_state(self, run: object) -> Path:
        """Return the folder of the answers from which killed interventions on a run continue."""
        return self.path / "state" / str(run) / "interventions"

    def analysis(self, paper: str, name: str) -> AnalysisFolder:
        """Return the folder of an analysis."""
        return AnalysisFolder(self.path / "analyses" / paper / name)

    def claim(self, paper: str, name: str) -> ClaimFiles:
        """Return the verdict on one claim, judged alone. Made by the rule claim."""
        return ClaimFiles(self.path / "claims" / paper / name / "claims.csv")

    def list_earlier(self) -> list[EarlierFolder]:
        """List the earlier results that are kept."""
        return [EarlierFolder(file.parent) for file in self._list_paths(self.earlier("*").entry)]

    def list_data(self) -> list[DataFolder]:
        """List the prepared data that are there."""
        return [DataFolder(file.parent) for file in self._list_paths(self.data("*").manifest)]

    def list_trained_runs(self) -> list[RunFolder]:
        """List the finished trainings."""
        return [RunFolder(file.parent) for file in self._list_paths(self.run(ANY_RUN).manifest)]

    def list_scored_runs(self) -> list[RunFolder]:
        """List the runs that were evaluated."""
        manifests = self._list_paths(self.run(ANY_RUN).evaluation.manifest)
        return [RunFolder(file.parents[1]) for file in manifests]

    def list_score_files(self) -> list[Path]:
        """List the scores of runs, with and without interventions."""
        run = self.run(ANY_RUN)
        evaluations = self._list_paths(run.evaluation.scores)
        return sorted(evaluations + self._list_paths(run.interventions.scores))

    def list_analyses(self) -> list[AnalysisFolder]:
        """List the finished analyses of all papers."""
        files = self._list_paths(self.analysis("*", "*").scores)
        return [AnalysisFolder(file.parent) for file in files]


# What leaves results/<scale>


class ExportFolder(ReportFolder):
    """What `export` writes of a scale, `results/reference/<scale>`. docs/results.md lists it."""

    @property
    def scores(self) -> Path:
        """The scores of all runs."""
        return self.path / "scores.csv"

    @property
    def draws(self) -> Path:
        """The scores of single draws of interventions."""
        return self.path / "draws.parquet"

    @property
    def curves(self) -> Path:
        """A part of what the trainings logged."""
        return self.path / "curves.csv"

    @property
    def analyses(self) -> Path:
        """The scores of all analyses."""
        return self.path / "analyses.csv"

    @property
    def datasets(self) -> Path:
        """What is reduced in the data that are not the paper's."""
        return self.path / "datasets.json"

    @property
    def provenance(self) -> Path:
        """How each run was made."""
        return self.path / "provenance.json"

    @property
    def devices(self) -> Path:
        """On which devices runs were made that have no record of it. Written by hand."""
        return self.path / "devices.csv"

    @property
    def predictions(self) -> Path:
        """The folder of the predictions for primary claims."""
        return self.path / "predictions"

    def predictions_of(self, variant: VariantKey) -> Path:
        """Return the predictions of all seeds of a variant."""
        return self.predictions / f"{variant}.parquet"

    @property
    def interventions(self) -> Path:
        """The folder of the answers under interventions for primary claims."""
        return self.path / "interventions"

    def interventions_of(self, variant: VariantKey) -> Path:
        """Return the answers under interventions of all seeds of a variant."""
        return self.interventions / f"{variant}.parquet"

    @property
    def answers_folder(self) -> Path:
        """The folder of right answers, of tasks whose data may be shared. Written by hand."""
        return self.path / "answers"

    def answers(self, task: str) -> DataFolder:
        """Return the right answers of a task: the columns of its data that scores are made of."""
        return DataFolder(self.answers_folder / task)

    @property
    def models(self) -> Path:
        """The folder of trained models. Written by hand, of at most 8 MB."""
        return self.path / "models"

    def model(self, run: object) -> "ModelFolder":
        """Return the trained model of a run. run: a `Run`, or its name."""
        return ModelFolder(self.models / str(run))

    def list_models(self) -> list["ModelFolder"]:
        """List the trained models that are there."""
        return [ModelFolder(file.parent) for file in self._list_paths(self.model(ANY_RUN).run)]

    @property
    def names(self) -> set[str]:
        """The names of all files and folders."""
        tables = (self.scores, self.draws, self.curves, self.analyses)
        origins = (self.datasets, self.provenance, self.devices)
        reports = (self.claims.table, self.claims.sides)
        items = (self.predictions, self.interventions, self.answers_folder)
        folders = (self.models, self.tables, self.figures)
        return {path.name for path in tables + origins + reports + items + folders}


class ModelFolder(Folder):
    """A trained model that loads on its own, as `export --checkpoints` writes it.

    The files of the checkpoint are next to those that say what it is.
    """

    @property
    def name(self) -> str:
        """The name of the run, `<task>/<method>/<variant>/seed-<n>`."""
        return "/".join(self.path.parts[-4:])

    @property
    def run(self) -> Path:
        """The manifest of the training."""
        return self.path / "run.json"

    @property
    def evaluation(self) -> Path:
        """The manifest of the evaluation."""
        return self.path / "evaluation.json"

    @property
    def dataset(self) -> Path:
        """The manifest of the data."""
        return self.path / "dataset.json"

    @property
    def record(self) -> Path:
        """How it was trained, as provenance.json has it: commit, device, versions."""
        return self.path / "record.json"

    @property
    def card(self) -> Path:
        """What the model is, and its scores."""
        return self.path / "README.md"

    @property
    def names(self) -> set[str]:
        """The names of all files, as patterns."""
        return {"*.safetensors", "*.json", self.card.name}


class ReleaseFolder(Folder):
    """Trained models as the files of a release: an archive of each, and what they are.

    All files are in one folder, because a release on GitHub has no others.
    """

    @property
    def manifest(self) -> Path:
        """Each archive with its run, scale, sha256, size and commit."""
        return self.path / "models.json"

    def archive(self, name: str) -> Path:
        """Return the archive of a model."""
        return self.path / name

    @property
    def names(self) -> set[str]:
        """The names of all files, as patterns."""
        return {self.manifest.name, "*.zip"}


class CrateFolder(Folder):
    """An unpacked crate: the workflow, and the results of one scale without weights."""

    @property
    def metadata(self) -> Path:
        """Each file with its sha256."""
        return self.path / "ro-crate-metadata.json"

    @property
    def results(self) -> "ResultsFolder":
        """The results. A crate has those of one scale."""
        return ResultsFolder(self.path / RESULTS.path)


# All results


class ResultsFolder(Folder):
    """The folder results/: of all scales, and what they share."""

    @property
    def downloads(self) -> DownloadFolder:
        """The downloads."""
        return DownloadFolder(self.path / "downloads")

    @property
    def code_digests(self) -> Path:
        """The digests of the modules of each code digest; `why` finds the changed ones there."""
        return self.path / "code"

    @property
    def site(self) -> Path:
        """The pages of the committed results."""
        return self.path / "site"

    @property
    def reference(self) -> Path:
        """The folder under version control, with an `ExportFolder` per scale."""
        return self.path / "reference"

    def scale(self, name: str) -> ScaleFolder:
        """Return the results of a scale."""
        return ScaleFolder(self.path / name)

    def export(self, name: str) -> ExportFolder:
        """Return the results of a scale under version control."""
        return ExportFolder(self.reference / name)

    def list_scales(self) -> list[ScaleFolder]:
        """List the folders that are there. Not each of them is of a scale."""
        return [ScaleFolder(folder) for folder in sorted(self.path.glob("*")) if folder.is_dir()]

    def list_complete_scales(self) -> list[ScaleFolder]:
        """List the scales of which all was made that a configuration asks for."""
        return [scale for scale in self.list_scales() if scale.config.exists()]


RESULTS = ResultsFolder(Path("results"))
DOWNLOADS = RESULTS.downloads
COMMITTED = RESULTS.export("small")  # whose verdicts README has


def verify_checksum(path: Path) -> None:
    """Raise UserError if a file differs from the sha256 in a manifest next to it.

    Nothing is verified if the file, its manifest, or an entry for the file is missing.
    """
    for manifest in list_manifests(path.parent):
        if manifest.exists() and path.exists():
            expected = read_mapping(manifest).get("files", {}).get(path.name)
            if expected and hash_file(path) != expected:
                raise UserError(
                    f"{path} does not match its checksum; "
                    f"delete {path.parent} and run ./reproduce again"
                )


def list_manifests(folder: Path) -> list[Path]:
    """Return where the manifest of a folder may be, of which there is one."""
    return [
        EvaluationFolder(folder).manifest,
        InterventionFolder(folder).manifest,
        AnalysisFolder(folder).manifest,
        CandidateFolder(folder).manifest,
        RunFolder(folder).manifest,
    ]

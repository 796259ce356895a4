"""Write trained models to folders that load on their own, and as the files of a release."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.result_folders import (
    ModelFolder,
    ReleaseFolder,
    RunFolder,
    ScaleFolder,
)
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.data.sources.model_release import (
    ReleasedModel,
    parse_release,
    write_archive,
    write_release_manifest,
)
from workflow_scripts.provenance.exported import select_provenance
from workflow_scripts.reporting.pages.model_card import (
    PublishedCells,
    collect_published_cells,
    make_model_card,
)
from workflow_scripts.tasks.checkpoints import FinishedRun, check_checkpoint, read_run


@dataclass(frozen=True)
class ModelExport:
    """What writes the models of a scale: its results, and the published numbers for their cards."""

    catalogue: Catalogue
    published: PublishedCells
    results: ScaleFolder

    def write_model(self, folder: RunFolder, out: Path) -> ModelFolder:
        """Write the model of a finished training to `out`/<run>, with a model card.

        Weights that the training kept besides the best ones, and that are the same, are left out.
        Raises UserError if a file was changed.
        """
        trained = read_run(folder.path)
        check_checkpoint(folder.path, trained)
        target = ModelFolder(out / folder.name)
        check_replaceable(target.path, target.names, target.run.name)
        with write_atomically(target.path) as temporary:
            model = ModelFolder(temporary)
            repeated = shutil.ignore_patterns(*list_repeated_weights(trained))
            shutil.copytree(folder.checkpoint, temporary, ignore=repeated)
            shutil.copyfile(folder.manifest, model.run)
            provenance = read_mapping(folder.manifest) | read_mapping(folder.record)
            write_json(model.record, select_provenance(provenance))
            shutil.copyfile(folder.evaluation.manifest, model.evaluation)
            shutil.copyfile(self.results.data(trained.spec.task).manifest, model.dataset)
            run = Run.parse(folder.name)
            card = make_model_card(self.catalogue, self.published, self.results.path, run)
            model.card.write_text(card, encoding="utf-8")
        return target


def list_repeated_weights(trained: FinishedRun) -> list[str]:
    """List the kept weights that are those of the best validation, too."""
    best = RunFolder(Path()).weights.name
    names = []
    for name, sha256 in trained.checkpoint_files.items():
        if name != best and sha256 == trained.weights_sha256:
            names.append(name)
    return names


def copy_models(
    catalogue: Catalogue, results: ScaleFolder, names: list[str] | None, out: Path
) -> list[ModelFolder]:
    """Write finished trainings to `out`/<run>: those with these names, or all.

    Raises UserError if there is none, or if a file of one was changed.
    """
    export = ModelExport(catalogue, collect_published_cells(catalogue), results)
    return [export.write_model(folder, out) for folder in select_trainings(results, names)]


def select_trainings(results: ScaleFolder, names: list[str] | None) -> list[RunFolder]:
    """Return the scored trainings with these names, or all. Raises UserError without any."""
    folders = [folder for folder in results.list_scored_runs() if folder.manifest.exists()]
    scale = results.path.name
    if not folders:
        raise UserError(
            f"{results.path} has no finished training; make one with ./reproduce --scale {scale}"
        )
    if names is None:
        return folders
    by_name = {folder.name: folder for folder in folders}
    for name in names:
        if name not in by_name:
            raise UserError(
                f"{results.path} has no finished training {name}; {suggest_name(name, by_name)}"
            )
    return [by_name[name] for name in names]


def write_release(models: Iterable[ModelFolder], out: ReleaseFolder) -> None:
    """Write an archive of each model, and models.json with their sha256.

    Other models that an earlier export has written there stay.
    """
    check_replaceable(out.path, out.names, out.manifest.name)
    earlier: list[ReleasedModel] = []
    if out.manifest.exists():
        earlier = parse_release(out.manifest, str(out.manifest)).models
    with write_atomically(out.path) as temporary:
        temporary.mkdir()
        release = ReleaseFolder(temporary)
        packed = []
        for model in models:
            scale = read_mapping(model.run, "scale")["scale"]
            packed.append(write_archive(model, Run.parse(model.name), scale, release))
        new_archives = {model.archive for model in packed}
        for model in earlier:
            if model.archive not in new_archives:
                shutil.copyfile(out.archive(model.archive), release.archive(model.archive))
                packed.append(model)
        write_release_manifest(packed, release)

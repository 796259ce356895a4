"""The content of a Workflow Run RO-Crate of a scale.

See https://www.researchobject.org/workflow-run-crate/.
"""

import mimetypes
from collections.abc import Iterable
from pathlib import Path

from rocrate.model.contextentity import ContextEntity
from rocrate.model.creativework import CreativeWork
from rocrate.model.file import File
from rocrate.rocrate import ROCrate

from workflow_scripts.common.files import hash_file, is_system_file, read_json
from workflow_scripts.common.result_folders import AnalysisFolder, ScaleFolder
from workflow_scripts.common.system import list_tracked_files
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.pages.verify import list_expected_results

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
LICENCE = "https://spdx.org/licenses/Apache-2.0"
# Files that made the results; `verify` recomputes the numbers from them.
WORKFLOW_FILES = (
    "rules/*.smk",
    "rules/captions/*.rst",
    "config.yaml",
    "catalogue/*.yaml",
    "catalogue/*/*.yaml",
    "catalogue/*.csv",
    "papers/*/experiments.yaml",
    "papers/*/displays.yaml",
    "papers/*/claims.yaml",
    "papers/*/analysis_plan.yaml",
    "papers/*/published.csv",
    "papers/*/captions/*.rst",
    "papers/*/plans/*.yaml",
    "envs/requirements.lock",
    "pyproject.toml",
    "trusted.csv",
)
# Files that explain them. Next to them are drafts, so that those alone are packed that git tracks,
# where there is git.
NOTES = ("papers/*/*",)
mimetypes.add_type("application/yaml", ".yaml")
mimetypes.add_type("text/markdown", ".md")


def make_crate(catalogue: Catalogue, config: Config, results: ScaleFolder) -> tuple[ROCrate, str]:
    """Make the crate of a configuration's results, and describe its content."""
    crate = ROCrate(version="1.1")  # which the run profiles are written for
    crate.metadata.extra_terms["sha256"] = "https://w3id.org/ro/terms/workflow-run#sha256"
    crate.name = f"Recompose: results at scale {config.scale}"
    crate.description = (
        "Published and reproduced numbers, verdicts on claims, scores and provenance of all runs"
    )
    crate.license = crate.add(CreativeWork(crate, LICENCE, {"name": "Apache License 2.0"}))
    profiles = []
    for url, name in PROFILES.items():
        version = url.rsplit("/", 1)[1]
        profile = CreativeWork(crate, url, {"name": name, "version": version})
        profiles.append(crate.add(profile))
    crate.root_dataset["conformsTo"] = profiles
    about = describe_file("Snakefile")
    workflow = crate.add_workflow(
        "Snakefile", "Snakefile", main=True, lang="snakemake", properties=about
    )
    assert isinstance(workflow, File)
    workflow["name"] = "Recompose"
    readme = describe_file("README.md") | {"about": crate.root_dataset}
    crate.add_file("README.md", properties=readme)
    for file in list_workflow_files():
        add_file(crate, file)
    configuration = add_file(crate, results.config)
    files = list_requested_files(results, catalogue, config)
    manifests = [read_json(file) for file in files if file.suffix == ".json"]
    records = [manifest for manifest in manifests if "started" in manifest]
    entities = [add_file(crate, file) for file in files]
    action = crate.add_action(workflow, object=configuration, result=entities)
    assert isinstance(action, ContextEntity)
    action["name"] = f"./reproduce --scale {config.scale}"
    action["description"] = f"{len(records)} commands, each with a JSON file next to its output"
    commits = sorted({record["commit"] for record in records if record["commit"]})
    workflow["version"] = ", ".join(commits) or "not from a git checkout"
    action["startTime"] = min(record["started"] for record in records)
    action["endTime"] = max(record["finished"] for record in records)
    crate.root_dataset["mentions"] = action
    return crate, f"{len(files)} files of tables, figures, claims, scores and provenance"


def list_workflow_files() -> list[Path]:
    """List the files of the workflow, in the current folder.

    Hidden files, and those of the operating system and of editors, are left out.
    """
    files = _list_matching_files(WORKFLOW_FILES)
    tracked = list_tracked_files(Path())
    for file in _list_matching_files(NOTES):
        if tracked is None or file.as_posix() in tracked:
            files.add(file)
    return sorted(files)


def _list_matching_files(patterns: Iterable[str]) -> set[Path]:
    """List the files that match a pattern, without those that are hidden or of an editor."""
    files: set[Path] = set()
    for pattern in patterns:
        for file in Path().glob(pattern):
            is_hidden = any(part.startswith(".") for part in file.parts)
            if file.is_file() and not is_hidden and not is_system_file(file):
                files.add(file)
    return files


def list_requested_files(results: ScaleFolder, catalogue: Catalogue, config: Config) -> list[Path]:
    """List the existing files of the scale that the configuration asks for, but not config.json.

    All files of an analysis count.
    """
    expected = {*list_expected_results(catalogue, config, results), results.page, results.report}
    for file in list(expected):
        if file == AnalysisFolder(file.parent).manifest:
            expected |= set(file.parent.glob("*"))  # its tables may have any name
    expected.remove(results.config)
    return sorted(file for file in expected if file.is_file())


def add_file(crate: ROCrate, file: Path) -> File:
    """Add a file to the crate under its path."""
    entity = crate.add_file(file, file.as_posix(), properties=describe_file(file))
    assert isinstance(entity, File)
    return entity


def describe_file(file: str | Path) -> dict[str, str]:
    """Return name, size, type and checksum of a file."""
    path = Path(file)
    kind, _ = mimetypes.guess_type(file)
    return {
        "name": path.as_posix(),
        "contentSize": str(path.stat().st_size),
        "sha256": hash_file(path),
        "encodingFormat": kind or "text/plain",
    }

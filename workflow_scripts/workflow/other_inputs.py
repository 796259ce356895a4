"""Find results that were made from other files than those that are there.

A result has the digests of what its job has read: data, initial weights, the weights that were
scored, scores. The manifests of these have their digests now. Only these manifests are read; what
was deleted, and what an earlier version did not record, is not compared.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, hash_file, read_mapping
from workflow_scripts.common.result_folders import (
    DOWNLOADS,
    RESULTS,
    DataFolder,
    RunFolder,
    ScaleFolder,
    list_manifests,
)
from workflow_scripts.data.sources.declared import load_sources
from workflow_scripts.workflow.changes import join_first
from workflow_scripts.workflow.damaged_files import locate_manifest
from workflow_scripts.workflow.expected_downloads import list_expected_sha256
from workflow_scripts.workflow.result_patterns import locate_record

HASHED_DATA = (".parquet", ".json", ".npy")  # the files that a digest of data is over


class Input(NamedTuple):
    """What a job has read. recorded: its digest then. now: those that it may have; empty: unknown.

    place: the file that has the digest of now.
    """

    place: Path
    recorded: Any
    now: list[str]

    @property
    def is_other(self) -> bool:
        """Whether it differs from what the job has read."""
        return bool(self.now) and isinstance(self.recorded, str) and self.recorded not in self.now


class InputComparison:
    """Compares results with their inputs. Each manifest is read once."""

    def __init__(self) -> None:
        self._contents: dict[Path, dict[str, Any]] = {}
        self._data_digests: dict[Path, list[str]] = {}

    def find_other_inputs(self, rule: str, wildcards: dict[str, str]) -> list[str]:
        """Return a sentence about the inputs of a result that are others now, or none.

        A file that cannot be read is passed over: `find_damaged_files` names it.
        """
        others: dict[str, None] = {}
        for given in self._list_inputs(rule, wildcards):
            if given.is_other:
                others[str(given.place)] = None
        if not others:
            return []
        return [f"was made from other files than those of {join_first(list(others), ', ')}"]

    def _list_inputs(self, rule: str, wildcards: dict[str, str]) -> Iterator[Input]:
        """Yield what the job of a result has read, as far as it has recorded it."""
        if rule in ("fetch", "fetch_model"):
            return
        results = RESULTS.scale(wildcards["scale"])
        record = self._read(locate_record(rule, wildcards))
        if rule in ("table", "figure", "claims", "claim"):
            yield from self._list_scores(results, record)
            return
        manifest = self._read(locate_manifest(rule, wildcards))
        if rule == "prepare":
            yield from _list_downloads(record)
        elif rule == "candidates":
            yield self._make_data_input(results.data(wildcards["task"]), manifest)
            yield from _list_downloads(record)
        elif rule in ("search", "train"):
            yield from self._list_inputs_of_training(results, wildcards, manifest)
        elif rule in ("evaluate", "intervene"):
            yield from self._list_inputs_of_scoring(results, wildcards, manifest)
        else:
            yield from self._list_inputs_of_analysis(results, manifest, record)

    def _list_scores(self, results: ScaleFolder, record: dict[str, Any]) -> Iterator[Input]:
        """Yield the scores and curves that a table, a figure or claims were made of."""
        for name, recorded in _get_mapping(record, "data_digest").items():
            file = results.path / name
            yield Input(file, recorded, self._list_digests(file))

    def _list_inputs_of_training(
        self, results: ScaleFolder, wildcards: dict[str, str], manifest: dict[str, Any]
    ) -> Iterator[Input]:
        """Yield data, initial weights and the search of a training, or of a search."""
        yield self._make_data_input(results.data(wildcards["task"]), manifest)
        origin = _get_mapping(_get_mapping(manifest, "spec"), "init")
        if origin:
            yield self._make_weights_input(results, origin, manifest.get("init_digest"))
        search = results.search("/".join(wildcards[key] for key in ("task", "method", "variant")))
        chosen = self._read(search.chosen).get("chosen")
        if chosen is not None:
            yield Input(search.chosen, manifest.get("search_digest"), [digest(chosen)])

    def _list_inputs_of_scoring(
        self, results: ScaleFolder, wildcards: dict[str, str], manifest: dict[str, Any]
    ) -> Iterator[Input]:
        """Yield data, weights and replacement words of an evaluation or of interventions."""
        task = wildcards["task"]
        yield self._make_data_input(results.data(task), manifest)
        run = results.run("/".join(wildcards[key] for key in ("task", "method", "variant", "seed")))
        sha256 = manifest.get("checkpoint_sha256")
        if run.has_given_weights:
            yield self._make_weights_input(results, _get_mapping(manifest, "weights"), sha256)
        else:
            yield Input(run.manifest, sha256, self._list_digests(run.weights, run.manifest))
            trained = self._read(run.manifest).get("data_digest")
            if isinstance(trained, str):
                yield Input(run.manifest, manifest.get("data_digest"), [trained])
        for name, recorded in _get_mapping(manifest, "kept_sha256").items():
            kept = self._list_digests(run.weights_at(name), run.manifest)
            yield Input(run.manifest, recorded, kept)
        words = results.candidates(task).words
        yield Input(words, manifest.get("candidates_sha256"), self._list_digests(words))

    def _list_inputs_of_analysis(
        self, results: ScaleFolder, manifest: dict[str, Any], record: dict[str, Any]
    ) -> Iterator[Input]:
        """Yield downloads, data and weights of an analysis."""
        yield from _list_downloads(record)
        for name, recorded in _get_mapping(record, "data_digest").items():
            if name not in load_sources():
                data = results.data(name)
                yield Input(data.manifest, recorded, self.digest_data(data))
        for name, recorded in _get_mapping(manifest, "checkpoints_sha256").items():
            run = results.run(name)
            if run.has_given_weights:
                scored = self._read(run.evaluation.manifest).get("checkpoint_sha256")
                now = [scored] if isinstance(scored, str) else []
                yield Input(run.evaluation.manifest, recorded, now)
            else:
                now = []
                for readout in _list_readouts(record, name):
                    kept = self._list_digests(run.weights_at(readout), run.manifest)
                    now += kept or self._list_digests(run.weights, run.manifest)
                yield Input(run.manifest, recorded, now)

    def _make_data_input(self, data: DataFolder, manifest: dict[str, Any]) -> Input:
        """Return the data of a job, of whose result this is the manifest."""
        return Input(data.manifest, manifest.get("data_digest"), self.digest_data(data))

    def _make_weights_input(
        self, results: ScaleFolder, origin: dict[str, Any], recorded: Any
    ) -> Input:
        """Return the weights of another run or of the hub. origin: as in a spec."""
        if "hub" in origin:
            model = DOWNLOADS.model(str(origin["hub"]))
            files = _get_mapping(self._read(model.manifest), "files")
            return Input(model.manifest, recorded, combine_weights(files))
        parent = results.run(origin.get("run", ""))
        return Input(parent.manifest, recorded, self._list_digests(parent.weights, parent.manifest))

    def digest_data(self, data: DataFolder) -> list[str]:
        """Return the digest that `digest_data` gives of data as their manifest lists them."""
        if data.path not in self._data_digests:
            self._data_digests[data.path] = list(self._compute_data_digest(data))
        return self._data_digests[data.path]

    def _compute_data_digest(self, data: DataFolder) -> Iterator[str]:
        """Yield the digest of data; none without a manifest that lists files."""
        files = _get_mapping(self._read(data.manifest), "files")
        if not files:
            return
        hashed = {name: str(sha256) for name, sha256 in files.items()}
        hashed[data.manifest.name] = hash_file(data.manifest)
        lines = ""
        for name in sorted(hashed, key=Path):
            if Path(name).suffix in HASHED_DATA:
                lines += f"{hashed[name]}  {name}\n"
        yield hashlib.sha256(lines.encode()).hexdigest()

    def _list_digests(self, file: Path, manifest: Path | None = None) -> list[str]:
        """Return the sha256 that a manifest has of a file; without one, the manifest next to it."""
        manifests = [manifest] if manifest else list_manifests(file.parent)
        digests = []
        for candidate in manifests:
            name = file.relative_to(candidate.parent).as_posix()
            sha256 = _get_mapping(self._read(candidate), "files").get(name)
            if isinstance(sha256, str):
                digests.append(sha256)
        return digests

    def _read(self, file: Path) -> dict[str, Any]:
        """Return the content of a manifest or a record; empty if there is none to be read."""
        if file not in self._contents:
            try:
                self._contents[file] = read_mapping(file)
            except UserError:
                self._contents[file] = {}
        return self._contents[file]


def _list_downloads(record: dict[str, Any]) -> Iterator[Input]:
    """Yield the downloads that a job has read, with the sha256 that they may have."""
    sources = load_sources()
    for name, recorded in _get_mapping(record, "data_digest").items():
        if name in sources:
            yield Input(DOWNLOADS.source(name).path, recorded, list_expected_sha256(sources[name]))


def combine_weights(files: dict[str, Any]) -> list[str]:
    """Return the digest that `hash_weights` gives of a model with these files; none if unknown."""
    sha256_of_name = {}
    for name, entry in sorted(files.items()):
        sha256 = entry.get("sha256") if isinstance(entry, dict) else entry
        if Path(name).suffix == ".safetensors":
            sha256_of_name[name] = str(sha256)
    if RunFolder(Path()).weights.name in sha256_of_name:
        return [sha256_of_name[RunFolder(Path()).weights.name]]
    if len(sha256_of_name) < 2:
        return list(sha256_of_name.values())
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sha256_of_name.items())
    return [hashlib.sha256(lines.encode()).hexdigest()]


def _list_readouts(record: dict[str, Any], run: str) -> list[str]:
    """Return the readouts of a run that the record of an analysis names; `model` without one."""
    spec = _get_mapping(record, "spec")
    entries = _get_mapping(spec, "entry").get("runs") or spec.get("runs") or []
    readouts = []
    for entry in entries:
        variant = "/".join(str(entry.get(key)) for key in ("task", "method", "variant"))
        if run.startswith(f"{variant}/"):
            readouts.append(str(entry.get("readout") or RunFolder(Path()).weights.stem))
    return readouts or [RunFolder(Path()).weights.stem]


def _get_mapping(content: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a mapping in a JSON file; empty if there is none under this key."""
    value = content.get(key)
    return value if isinstance(value, dict) else {}

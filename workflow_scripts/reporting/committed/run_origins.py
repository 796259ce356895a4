"""How the runs of a committed claim were made, in a line each: commits, devices, versions."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.system import find_file_version

RunEntry = Mapping[str, Any]  # a row of provenance.json
NOT_RECORDED = "not recorded"
SHORT_COMMIT = 9


@dataclass(frozen=True)
class RunOrigins:
    """What provenance.json says of runs: each fact with its values and how often each occurs.

    compared: number of runs whose scores are compared. parents: number of further runs whose
    weights these have, or started from. plan: whether the commits have the analysis plan of the
    claim as it is now, empty for an exploratory claim.
    """

    compared: int
    parents: int
    plan: str
    commits: str
    devices: str
    torch_versions: str
    starts: str

    @property
    def is_incomplete(self) -> bool:
        """Whether something is not recorded of a run."""
        facts = (self.commits, self.devices, self.torch_versions, self.starts)
        return any(NOT_RECORDED in fact for fact in facts)


def read_run_origins(
    provenance: Path, runs: list[Run], parents: list[Run], plan: str
) -> RunOrigins:
    """Summarise the rows of provenance.json of some runs and of those that their weights come from.

    A run without a row counts as well. plan: file of the analysis plan of the claim, or empty.
    """
    recorded: dict[str, RunEntry] = {}
    if provenance.exists():
        recorded = {entry["run"]: entry for entry in read_json(provenance)}
    entries = [recorded.get(str(run), {}) for run in runs + parents]
    return RunOrigins(
        compared=len(runs),
        parents=len(parents),
        plan=describe_plan_versions(plan, entries[: len(runs)]),
        commits=count_values(entries, _get_commit),
        devices=count_values(entries, _get_device),
        torch_versions=count_values(entries, _get_torch_version),
        starts=_describe_starts(entries),
    )


def count_values(entries: list[RunEntry], get_value: Callable[[RunEntry], str | None]) -> str:
    """Format `3de6015a2 (27), 824bdd844 (9)`, most frequent first; one value has no number."""
    counts = Counter(get_value(entry) or NOT_RECORDED for entry in entries)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({count})" for value, count in counts.most_common())


def describe_plan_versions(plan: str, entries: list[RunEntry]) -> str:
    """Say at the commits of how many runs the analysis plan is the same file as now.

    Where it is, the plan was written before these runs. Empty without a plan.
    """
    if not plan or not entries:
        return ""
    now = find_file_version("HEAD", plan)
    if now is None:
        return f"{plan}; git, or its history, is not here"
    commits = Counter(entry.get("commit") for entry in entries)
    same = other = 0
    for commit, count in commits.items():
        version = find_file_version(commit, plan) if commit else None
        if version == now:
            same += count
        elif version is not None:
            other += count
    text = f"{plan}: the same at the commits of {same} of {len(entries)} compared runs"
    if other:
        text += f", in another version at those of {other}"
    return text


def _get_commit(entry: RunEntry) -> str | None:
    """Return the first digits of the commit, with `changed code` if files differed from it."""
    commit = entry.get("commit")
    if not commit:
        return None
    changed = " with changed code" if entry.get("dirty") else ""
    return f"{commit[:SHORT_COMMIT]}{changed}"


def _get_device(entry: RunEntry) -> str | None:
    """Return the device's name and the precision."""
    name = entry.get("device_name") or entry.get("device")
    if not name:
        return None
    return f"{name}, {entry.get('precision') or 'precision not recorded'}"


def _get_torch_version(entry: RunEntry) -> str | None:
    """Return the version of torch."""
    version: str | None = entry.get("versions", {}).get("torch")
    return version


def _describe_starts(entries: list[RunEntry]) -> str:
    """Return the days between which the runs began, and of how many none is recorded."""
    days = sorted(str(entry["started"])[:10] for entry in entries if entry.get("started"))
    if not days:
        return NOT_RECORDED
    text = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    missing = len(entries) - len(days)
    return f"{text}, {NOT_RECORDED} of {missing}" if missing else text


def read_data_notes(datasets: Path, tasks: set[str]) -> dict[str, list[str]]:
    """Read task -> how its data differ from the paper's; tasks with the paper's data are absent."""
    notes: dict[str, list[str]] = {}
    if datasets.exists():
        for task, dataset in read_json(datasets).items():
            if task in tasks:
                notes[task] = dataset["notes"]
    return notes

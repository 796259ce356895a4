"""Prepare data by options and specs as they are in JSON files."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from workflow_scripts.common.validation import parse_as
from workflow_scripts.data import prepared
from workflow_scripts.data.data_spec import DataSpec, read_data_spec
from workflow_scripts.data.datasets.sentences import SentenceOptions
from workflow_scripts.data.splits import SplitOptions


class PairOptions(SplitOptions):
    """The options of a toy of pairs of texts."""

    def list_splits(self) -> list[str]:
        return ["train", "valid", "test"]


class ToyOptions(SentenceOptions):
    """The options of a toy of sentences."""

    def list_splits(self) -> list[str]:
        return ["train", "valid", "test"]


def prepare_data(module: ModuleType, options: dict, sources: dict[str, Path]) -> prepared.Dataset:
    parsed = parse_as(module.Options, options, f"options of {module.__name__}")
    return prepared.prepare_data(module, parsed, sources)


def write_data(made: prepared.Dataset, spec: dict, out: Path) -> None:
    """Write what the module of the spec has made, or a toy that has splits of its own."""
    parsed = read_data_spec(spec, "spec")
    if isinstance(made, prepared.Seq2SeqDataset):
        parsed = with_splits(parsed, made.splits)
    if isinstance(made, prepared.TableDataset):
        parsed = with_splits(parsed, made.tables)
    prepared.write_data(made, parsed, out)


def with_splits(spec: DataSpec, splits: Collection[str]) -> DataSpec:
    """A spec whose options state these splits."""

    class Options(type(spec.options)):
        def list_splits(self) -> list[str]:
            return list(splits)

    content = spec.options.model_dump(by_alias=True, exclude_unset=True)
    return replace(spec, options=Options.model_validate(content))

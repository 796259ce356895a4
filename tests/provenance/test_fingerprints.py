"""What a job is given and the code that it reaches, in short and in long."""

import json
from pathlib import Path

import pytest

from tests.config.as_json import resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.displays import select_published_rows
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.evaluation.published_numbers import PUBLISHED_COLUMNS
from workflow_scripts.provenance.spec_fingerprints import (
    FINGERPRINT_PATTERN,
    Fingerprint,
    fingerprint_training,
    load_modules,
    store_modules,
)
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job

ROOT = Path(__file__).parents[2]
RUN = {
    "scale": "demo",
    "task": "cogs",
    "method": "transformer",
    "variant": "default",
    "seed": "seed-1",
}


def of(rule: str, **wildcards: str) -> Fingerprint | None:
    return fingerprint_workflow_job(
        load_catalogue(ROOT), load_config(root=ROOT), rule, {"scale": "demo", **wildcards}
    )


def test_the_short_form_is_two_digests():
    assert FINGERPRINT_PATTERN.match(str(of("train", **RUN)))
    assert of("record_config") is None


def test_a_command_and_the_workflow_mean_the_same_facts():
    """`train` writes them to run.json from its spec; Snakemake has them from the wildcards."""
    spec = resolve_run(load_catalogue(ROOT), "cogs/transformer/default/seed-1", "demo")
    assert str(fingerprint_training(read_run_spec(json.loads(json.dumps(spec)), "spec"))) == str(
        of("train", **RUN)
    )


def test_a_seed_and_a_scale_make_other_facts():
    others = [of("train", **RUN | {"seed": "seed-2"}), of("train", **RUN | {"scale": "small"})]
    assert len({str(of("train", **RUN)), *map(str, others)}) == 3


def test_a_table_is_given_its_own_published_numbers_only():
    given = of("table", paper="sq_transformer", display="table1").spec["published"]
    assert given and all(cell.startswith("table1/") for cell in given)
    assert {tuple(number) for number in given.values()} == {PUBLISHED_COLUMNS[4:]}


def test_a_paper_without_published_numbers_is_told_what_it_needs(tmp_path):
    (tmp_path / "papers/mine").mkdir(parents=True)
    with pytest.raises(
        UserError, match=r"papers/mine/published\.csv does not exist; copy the header line"
    ):
        select_published_rows(Catalogue(tmp_path, {}, {}, {}), "mine", ["table1"])


def test_what_is_fetched_is_given_by_its_checksum_or_commit():
    name, source = next((name, source) for name, source in load_sources().items() if source.sha256)
    assert of("fetch", source=name).spec == {"sha256": source.sha256}
    model, entry = next(
        (name, entry) for name, entry in load_repositories().items() if entry.kind == "model"
    )
    assert of("fetch_model", model=model).spec == {"revision": entry.revision}


def test_what_is_written_on_a_page_is_given_with_its_titles_and_caption():
    """A table names its paper and the data of its tasks, the report's first page the papers."""
    catalogue, paper = load_catalogue(ROOT), "sq_transformer"
    title = catalogue.papers[paper].experiments.title
    table = of("table", paper=paper, display="table1").spec
    assert table["paper"] == title and table["titles"]["cogs"] == catalogue.tasks["cogs"].title
    assert table["caption"] == (ROOT / f"papers/{paper}/captions/table1.rst").read_text().strip()
    assert of("claims").spec["titles"][paper] == title


@pytest.mark.parametrize("shown", ["table5", "table6"])
def test_a_figure_is_given_the_numbers_that_it_shows(monkeypatch, shown):
    options = load_catalogue(ROOT).papers["sq_transformer"].displays["table5"].options
    monkeypatch.setitem(options, "published", f"{shown}/{{word}}/Closest words/neighbours")
    given = of("figure", paper="sq_transformer", display="table5").spec["published"]
    assert {cell.split("/")[0] for cell in given} == {"table5", shown}


def test_the_modules_of_the_code_are_stored(tmp_path):
    train = of("train", **RUN)
    store_modules([train, of("table", paper="sq_transformer", display="table1")], tmp_path)
    assert "workflow_scripts.training.loop" in load_modules(train.code, tmp_path)
    assert load_modules("0" * 16, tmp_path) is None

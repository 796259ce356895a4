"""`only: paper`: what the papers have, without what is ours."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from tests.config.copies import ROOT, edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.display_schema import TableDisplay
from workflow_scripts.config.loading import load_catalogue, load_config, read_catalogue
from workflow_scripts.config.requested import list_paper_runs, list_requested_runs

PAPERS = ("carma", "cat", "lrf", "sq_transformer")
SCALES = ("demo", "small", "full")


def requested(paper: str, scale: str, **settings) -> set[Run]:
    content = {"scale": scale, "papers": [paper], "extra": True} | settings
    return set(list_requested_runs(load_catalogue(ROOT), load_config(content, ROOT)))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("paper", PAPERS)
def test_a_row_with_published_numbers_is_run(paper: str, scale: str):
    """Of such a row, whatever is run of its cells with a published number."""
    everything = {run.variant_key for run in requested(paper, scale)}
    of_the_paper = {run.variant_key for run in requested(paper, scale, only="paper")}
    with open(ROOT / f"papers/{paper}/published.csv", newline="") as stream:
        keys = ("display", "row", "column", "metric")
        published = {"/".join(line[key] for key in keys) for line in csv.DictReader(stream)}
    cells = load_catalogue(ROOT).papers[paper].cells
    assert len(published & cells.keys()) > 20
    left_out = defaultdict(set)
    for key in published & cells.keys():
        for variant in cells[key].list_variants():
            if variant in everything - of_the_paper:
                left_out[key].add(str(variant))
    assert not left_out


@pytest.mark.parametrize("scale", ["small", "full"])
@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_left_out_is_shown_in_no_figure_of_the_paper(paper: str, scale: str):
    left_out = {
        run.variant_key for run in requested(paper, scale) - requested(paper, scale, only="paper")
    }
    content = load_catalogue(ROOT).papers[paper]
    for name, display in content.displays.items():
        if not isinstance(display, TableDisplay) and display.source.startswith("Figure"):
            assert not display.variants & left_out, name


def test_what_is_left_out_is_what_the_notes_call_ours():
    """Numbers and names by hand, from papers/*/NOTES.md."""

    def list_left_out(paper: str, scale: str = "full") -> set[tuple[str, str, str]]:
        runs = requested(paper, scale) - requested(paper, scale, only="paper")
        return {run.variant_key for run in runs}

    pretrained = [name for name in list_left_out("cat") if name[0] == "wikipedia-bookcorpus"]
    kept = {run.variant_key for run in requested("cat", "full", only="paper")}
    assert len(pretrained) == 7
    assert sum(name[0] == "wikipedia-bookcorpus" for name in kept) == 2
    assert {name[1] for name in kept} == {"bert", "roberta-first-4", "distilbert-first-4", "cat"}
    lrf = {run.variant_key for run in requested("lrf", "full", only="paper")}
    cfq = [f"cfq-mcd{number}" for number in (1, 2, 3)]
    assert lrf == {
        ("cognition", "lrf", "default"),
        ("cognition", "lrf", "plain"),
        ("cognition", "sq-transformer", "srl"),
        *((task, "roberta", variant) for task in cfq for variant in ("plain", "lrf")),
    }
    carma = list_left_out("carma", "small")
    assert {name[1] for name in carma} == {"gpt2-small", "gpt2-small-fine", "smollm"}
    assert not {name[2] for name in carma if name[1] == "gpt2-small"} & {"ft", "carma"}
    sq_transformer = list_left_out("sq_transformer")
    assert {name[0] for name in sq_transformer} == {
        *("scan-jump-x2", "scan-around-right", "cogs"),
        *("scan-jump-x2-clean", "scan-around-right-clean", "cogs-clean"),
    }
    assert not requested("recompose", "full", only="paper")


def test_the_default_is_everything():
    assert load_config(root=ROOT).only is None
    content = yaml.safe_load((ROOT / "config.yaml").read_text())
    assert content["only"] is None
    for paper in PAPERS:
        assert requested(paper, "small", only="paper") < requested(paper, "small", only=None)


def test_a_parent_that_is_ours_comes_where_a_run_of_the_paper_starts_from_it(copy: Path):
    file = copy / "papers/cat/experiments.yaml"

    def mark_pretrainings(content: dict) -> None:
        for experiment in content["experiments"]:
            if experiment["task"] in ("pairs-wordpiece", "wikipedia-bookcorpus"):
                experiment["ours"] = experiment.get("ours", {}) | experiment.pop("methods", {})

    edit(file, mark_pretrainings)
    read_catalogue.cache_clear()
    catalogue = load_catalogue(copy)
    config = load_config({"scale": "small", "papers": ["cat"], "only": "paper"}, copy)
    runs = list_paper_runs(catalogue, config, "cat", "small")
    assert Run("pairs-wordpiece", "cat", "pretrain", 101) in runs
    assert Run("pairs-wordpiece", "bert-matched", "pretrain", 101) not in runs


def test_a_claim_on_what_is_ours_is_refused_alone():
    claims = ["lrf/lrf-over-matched-cter-aggregate"]
    config = load_config({"scale": "small", "claims": claims, "only": "paper"}, ROOT)
    with pytest.raises(UserError) as caught:
        list_requested_runs(load_catalogue(ROOT), config)
    assert str(caught.value) == (
        f"claim {claims[0]} needs runs that `only: paper` leaves out; remove it"
    )


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        ({"task": "cogs", "seeds": {"small": [1]}}, "an experiment needs `methods`, or `ours`"),
        (
            {"task": "cogs", "ours": {"lfr": ["default"]}},
            "no method 'lfr' in catalogue/methods/; did you mean 'lrf'?",
        ),
        ({"task": "cogs", "ours": {"lrf": ["defalt"]}}, "names 'defalt'; did you mean 'default'?"),
    ],
)
def test_what_is_ours_is_checked_like_the_rest(copy: Path, experiment: dict, message: str):
    file = copy / "papers/lrf/experiments.yaml"
    edit(file, lambda content: content["experiments"].append(experiment))
    read_catalogue.cache_clear()
    with pytest.raises(UserError) as caught:
        load_catalogue(copy)
    assert message in str(caught.value) and f"{file}:" in str(caught.value)


def test_another_value_is_one_line():
    with pytest.raises(UserError, match=r"key 'only' is 'papers'; "):
        load_config({"only": "papers"}, ROOT)

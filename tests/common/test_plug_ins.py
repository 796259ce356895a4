"""Configurations, such as those of a crate, cannot name foreign code."""

from pathlib import Path

import pytest

from tests.config.copies import edit
from tests.training.toy import assert_one_error
from workflow_scripts.__main__ import main
from workflow_scripts.analyses.options import audit
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import (
    ANALYSES,
    NoOptions,
    import_function,
    load_options_class,
    parse_options,
)
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.measures import parse_measure_options
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.figures.figure import draw_figure


@pytest.fixture
def hostile(copy_here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the configuration whose displays name a module next to it, which could be
    imported.
    """
    (copy_here / "hostile.py").write_text(
        f"open({str(copy_here / 'it-ran')!r}, 'w')\nanalyse = draw = print\n"
    )

    def name_module(content: dict) -> None:
        content["analyses"]["head-agreement-cognition"]["module"] = content["displays"]["figure4"][
            "module"
        ] = "hostile"

    edit(copy_here / "papers/sq_transformer/displays.yaml", name_module)
    monkeypatch.syspath_prepend(copy_here)
    return copy_here


def test_an_analysis_of_a_hostile_configuration_names_no_code(hostile, capsys):
    where = ["--scale", "demo", "--results", "results", "--out", "results/out", "--runs"]
    assert (
        main(
            [
                "analyse",
                "--paper",
                "sq_transformer",
                "--analysis",
                "head-agreement-cognition",
                *where,
            ]
        )
        == 1
    )
    assert_one_error(capsys.readouterr().err, "no module 'hostile' in workflow_scripts.analyses")
    assert not (hostile / "it-ran").exists()


def test_a_figure_of_a_hostile_crate_names_no_code(hostile):
    """`verify` draws the figures of a crate by this function."""
    catalogue = load_catalogue(hostile)
    results = PaperResults(catalogue, "sq_transformer", "demo", ScaleFolder(hostile))
    with pytest.raises(UserError, match="no module 'hostile' in"):
        draw_figure(results, "figure4", [])
    assert not (hostile / "it-ran").exists()


@pytest.mark.parametrize(
    "name",
    ["os.system", "workflow_scripts.commands.train", "workflow_scripts.evaluation..bleu", ""],
)
def test_only_modules_of_the_folder_are_imported(name):
    with pytest.raises(UserError, match="no module"):
        import_function(name, "score_outputs", "workflow_scripts.evaluation")
    with pytest.raises(UserError, match="has no function score_outputs"):
        import_function("scores", "score_outputs", "workflow_scripts.evaluation")


@pytest.mark.parametrize(
    "name", ["hostile", "os.system", "options.audit", "../hostile", "__init__", ""]
)
def test_options_are_those_of_a_module_of_the_folder(name):
    with pytest.raises(UserError, match=r"no module '.*' in workflow_scripts\.analyses; "):
        load_options_class(name, ANALYSES)


def test_a_module_without_a_file_of_options_takes_none():
    assert load_options_class("set_up", ANALYSES) is NoOptions
    with pytest.raises(UserError) as error:
        parse_options("set_up", ANALYSES, {"words": []}, "d.yaml", ("options",))
    assert str(error.value) == "d.yaml: unknown key 'options.words'; none are known here"


@pytest.mark.parametrize("name", ["scores", "measures", "bleuu"])
def test_a_measure_states_its_metrics(name):
    with pytest.raises(UserError, match=f"module '{name}'"):
        parse_measure_options(name, {}, "evaluation.measures")


def test_a_file_of_options_without_the_class_is_named(monkeypatch):
    monkeypatch.delattr(audit, "Options")
    with pytest.raises(UserError, match=r"analyses/options/audit\.py has no class `Options`"):
        load_options_class("audit", ANALYSES)

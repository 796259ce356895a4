"""Configurations, such as those of a crate, cannot name foreign code."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.training.toy import ROOT, assert_one_error
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import import_function
from workflow_scripts.config.loading import load_catalogue, read_catalogue
from workflow_scripts.reporting.figures.figure import draw_figure


@pytest.fixture
def hostile(tmp_path, monkeypatch, request) -> Path:
    """Return a copy of the configuration whose displays name a module next to it, which could be imported."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    (tmp_path / "hostile.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'w')\nanalyse = draw = print\n")
    displays = tmp_path / "papers/sq_transformer/displays.yaml"
    content = yaml.safe_load(displays.read_text())
    content["analyses"]["head-agreement"]["module"] = content["displays"]["figure4"]["module"] = "hostile"
    displays.write_text(yaml.safe_dump(content))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    read_catalogue.cache_clear()
    request.addfinalizer(read_catalogue.cache_clear)
    return tmp_path


def test_an_analysis_of_a_hostile_configuration_names_no_code(hostile, capsys):
    where = ["--scale", "demo", "--results", "results", "--out", "results/out", "--runs"]
    assert main(["analyse", "--paper", "sq_transformer", "--analysis", "head-agreement", *where]) == 1
    assert_one_error(capsys.readouterr().err, "no module 'hostile' in workflow_scripts.analyses")
    assert not (hostile / "it-ran").exists()


def test_a_figure_of_a_hostile_crate_names_no_code(hostile):
    """`verify` draws the figures of a crate by this function."""
    with pytest.raises(UserError, match="no module 'hostile' in"):
        draw_figure(load_catalogue(hostile), "sq_transformer", "figure4", "demo", [], hostile)
    assert not (hostile / "it-ran").exists()


@pytest.mark.parametrize(
    "name", ["os.system", "workflow_scripts.commands.train", "workflow_scripts.evaluation..bleu", ""]
)
def test_only_modules_of_the_folder_are_imported(name):
    with pytest.raises(UserError, match="no module"):
        import_function(name, "score_outputs", "workflow_scripts.evaluation")
    with pytest.raises(UserError, match="has no function score_outputs"):
        import_function("scores", "score_outputs", "workflow_scripts.evaluation")

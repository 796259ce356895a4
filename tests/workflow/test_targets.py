import re
from pathlib import Path

import pytest

from tests.config.copies import edit
from tests.workflow.projects import SCORES, Project
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.checker import find_problems
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.workflow.targets import Targets


def test_an_experiment_without_seeds_at_the_chosen_scale_is_refused(copy: Path, monkeypatch):
    edit(copy / "papers/lrf/experiments.yaml", lambda paper: paper["seeds"].pop("full"))
    monkeypatch.chdir(copy)
    catalogue, chosen = load_catalogue(copy), {"papers": ["lrf"], "scale": "full"}
    with pytest.raises(UserError) as error:
        Targets(load_config(chosen, copy), catalogue).list_runs([], [], [])
    said = r"\S*papers/lrf/experiments\.yaml:\d+: experiments\.0 has no seeds at full; "
    assert re.match(said + "name them in `seeds`, or its scales in `at`$", str(error.value))
    assert list(find_problems(copy)) == [str(error.value)]
    Targets(load_config(chosen | {"seeds": [1]}, copy), catalogue).list_runs([], [], [])


def test_snakemake_prints_that_as_one_line(project: Project):
    with project.edited("papers/lrf/experiments.yaml") as paper:
        paper["seeds"].pop("full")
    done = project.reproduce("-n", "--papers", "lrf", "--scale", "full")
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if "error" in line or "Wildcards" in line]
    assert len(said) == 1 and said[0].startswith("error: papers/lrf/experiments.yaml:"), done.stderr
    planned = project.command("plan", "--papers", "lrf", "--scale", "full")
    assert (planned.returncode, planned.stderr) == (1, said[0] + "\n")


@pytest.mark.slow
def test_the_folder_of_a_scale_may_be_a_link(project: Project, tmp_path: Path):
    """As docs/cluster.md says: jobs write where it leads, and a second call finds it."""
    elsewhere = tmp_path / "scratch/demo"
    elsewhere.mkdir(parents=True)
    link = project.root / "results/demo"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    project.set_demo_steps(3)
    project.make(SCORES)
    assert link.is_symlink()
    assert (elsewhere / Path(SCORES).relative_to("results/demo")).is_file()
    assert not project.planned(SCORES)

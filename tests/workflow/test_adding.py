"""What docs/adding.md says: new files are enough, and they run at once."""

import csv

from tests.workflow.projects import Project


def test_a_new_paper_makes_its_table_at_once(project: Project):
    project.edit("catalogue/tasks/kinds.yaml", "max_steps: 100,", "max_steps: 4,")
    said = project.command("new-paper", "mine")
    assert said.returncode == 0, said.stderr
    done = project.make("--papers", "mine")
    with open(project.root / "results/demo/tables/mine/table1.csv") as stream:
        (cell,) = csv.DictReader(stream)
    assert (cell["row"], cell["column"], cell["status"]) == ("Transformer", "ADDJUMP 2x", "measured")
    with open(project.root / "results/demo/claims.csv") as stream:
        (claim,) = csv.DictReader(stream)
    assert (claim["paper"], claim["verdict"]) == ("mine", "no verdict")
    assert done.stdout.splitlines()[-1] == "Report: results/demo/report.html"

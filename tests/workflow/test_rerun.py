"""After a finished demo, each change makes Snakemake redo exactly what it reaches: the sets of jobs, by name."""

import re

import yaml

from tests.workflow.projects import Project

# Every display, analysis and verdict that a change reaches ends in the record of the configuration.
END = {("record_config", "")}


def named(planned: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """(rule, name of the job) of (rule, output file): a run, an analysis or a display."""
    forms = {
        "prepare": r"results/demo/data/([^/]+)$",
        "train": r"results/demo/runs/(.+/seed-\d+)/",
        "evaluate": r"results/demo/runs/(.+/seed-\d+)/",
        "analyse": r"results/demo/analyses/sq_transformer/([^/]+)$",
        "table": r"results/demo/tables/sq_transformer/(.+)\.\w+$",
        "figure": r"results/demo/figures/sq_transformer/(.+)\.\w+$",
    }
    return {(rule, re.match(forms[rule], output)[1] if rule in forms else "") for rule, output in planned}


def judged_displays(project: Project) -> set[str]:
    claims = yaml.safe_load((project.root / "papers/sq_transformer/claims.yaml").read_text())
    return {claim[side].split("/")[0] for claim in claims for side in ("left", "right")}


def readers(project: Project, runs: set[str]) -> set[tuple[str, str]]:
    """Analyses, tables, figures and claims that show one of `runs`, read from displays.yaml without the package."""
    content = yaml.safe_load((project.root / "papers/sq_transformer/displays.yaml").read_text())
    changed = {tuple(run.split("/")[:3]) for run in runs}

    def named_runs(entry: dict) -> set[tuple[str, str, str]]:
        found = {(run["task"], run["method"], run["variant"]) for run in entry.get("runs", ())}
        for cell in (column | row for row in entry.get("rows", ()) for column in entry["columns"]):
            variant = cell.get("variant")
            if isinstance(variant, dict):
                variant = variant.get(cell.get("task"))
            if "analysis" not in cell and {"task", "method"} <= cell.keys() and variant:
                found.add((cell["task"], cell["method"], variant))
        return found

    analyses = {name for name, entry in content["analyses"].items() if named_runs(entry) & changed}
    shown = set()
    for name, display in content["displays"].items():
        cells = [*display.get("rows", ()), *display.get("columns", ())]
        uses = {*display.get("analyses", ()), *(cell["analysis"] for cell in cells if "analysis" in cell)}
        if uses & analyses or named_runs(display) & changed:
            shown.add((display["kind"], name))
    verdicts = {("claims", "")} if judged_displays(project) & {name for _, name in shown} else set()
    return {("analyse", name) for name in analyses} | shown | verdicts


def retrained(project: Project, runs: set[str]) -> set[tuple[str, str]]:
    return {(rule, run) for rule in ("train", "evaluate") for run in runs} | readers(project, runs) | END


def made(project: Project, part: str) -> set[str]:
    """The runs of the demo whose name holds `part`."""
    folder = project.root / "results/demo/runs"
    runs = {str(file.parent.relative_to(folder)) for file in folder.rglob("run.json")}
    return {run for run in runs if part in f"{run}/"}


def test_nothing_changed(demo):
    assert demo.planned() == set()
    done = demo.reproduce()
    assert (done.returncode, "Nothing to be done" in done.stderr) == (0, True)


def test_touched_and_commented_code_reruns_nothing(demo):
    for file in (demo.root / "workflow_scripts").rglob("*.py"):
        file.write_text(file.read_text() + "\n# A comment at the end.\n")
    assert demo.planned() == set()


def test_learning_rate_of_one_variant(demo):
    with demo.edited("catalogue/methods.yaml") as methods:
        settings = methods["sq-transformer"]["variants"]["codes-12"].setdefault("settings", {})
        settings.setdefault("training", {})["learning_rate"] = 0.00123
    runs = made(demo, "/sq-transformer/codes-12/")
    assert runs
    assert named(demo.planned()) == retrained(demo, runs)


def test_added_seed_adds_that_seed_only(demo):
    with demo.edited("papers/sq_transformer/requests.yaml") as content:
        request = next(request for request in content["requests"] if "scan-around-right" in request["tasks"])
        request["seeds"]["demo"].append(77)
    runs = {
        f"{task}/{method}/{variant}/seed-77"
        for task in request["tasks"]
        for method, variants in request["methods"].items()
        for variant in variants
    }
    assert named(demo.planned()) == retrained(demo, runs)


def test_code_of_one_model_reruns_its_runs(demo):
    file = demo.root / "workflow_scripts/models/sq_transformer.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    runs = made(demo, "/sq-transformer/")
    assert runs and runs < made(demo, "/")
    assert named(demo.planned()) == retrained(demo, runs)


def test_code_of_the_loop_reruns_every_training_but_no_data(demo):
    file = demo.root / "workflow_scripts/training/loop.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    planned = named(demo.planned())
    assert {name for rule, name in planned if rule == "train"} == made(demo, "/")
    assert "prepare" not in {rule for rule, _ in planned}


def test_title_of_one_table(demo):
    judged = judged_displays(demo)
    with demo.edited("papers/sq_transformer/displays.yaml") as content:
        name = next(
            name for name, display in content["displays"].items() if display["kind"] == "table" and name not in judged
        )
        content["displays"][name]["title"] = "Another title"
    assert named(demo.planned()) == {("table", name)} | END


def test_code_of_one_figure(demo):
    displays = yaml.safe_load((demo.root / "papers/sq_transformer/displays.yaml").read_text())["displays"]
    module = displays["learning-curves"]["module"]
    file = demo.root / f"{module.replace('.', '/')}.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    same = {name for name, display in displays.items() if display.get("module") == module}
    assert named(demo.planned()) == {("figure", name) for name in same} | END


def test_options_of_one_data_set(demo):
    """Its runs follow, and what shows them; no other task is touched."""
    with demo.edited("catalogue/scales.yaml") as content:
        content["demo"]["data"]["scan-around-right"]["options"]["limit"]["train"] = 500
    runs = made(demo, "scan-around-right/")
    assert runs
    assert named(demo.planned()) == retrained(demo, runs) | {("prepare", "scan-around-right")}

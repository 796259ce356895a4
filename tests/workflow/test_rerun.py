"""After a finished demo, each change makes Snakemake redo exactly what it reaches: the sets of
jobs, by name.
"""

import json
import os
import random
import re
import resource
import shutil
from hashlib import sha256

import pytest
import yaml

from tests.workflow.projects import Project, pretend, record_as_made
from workflow_scripts.config.catalogue import Paper
from workflow_scripts.config.loading import load_catalogue, read_catalogue
from workflow_scripts.tasks.run_spec import read_run_spec

PAPER = "sq_transformer"
# Every display, analysis and verdict that a change reaches ends in the record of the configuration.
END = {("record_config", ""), ("page", "")}


def named(planned: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """(rule, name of the job) of (rule, output file): a run, or an analysis or display with its
    paper.
    """
    forms = {
        "fetch": r"results/downloads/(.+?)(?:\.json)?$",
        "fetch_again": r"results/downloads/(.+).json$",
        "fetch_model": r"results/downloads/models/(.+)/model.json",
        "prepare": r"results/\w+/data/([^/]+)/",
        "candidates": r"results/\w+/candidates/([^/]+)/",
        "search": r"results/\w+/search/(.+)/",
        "train": r"results/\w+/runs/(.+/seed-\d+)/",
        "evaluate": r"results/\w+/runs/(.+/seed-\d+)/",
        "intervene": r"results/\w+/runs/(.+/seed-\d+)/",
        "analyse": r"results/\w+/analyses/([^/]+/[^/]+)/",
        "table": r"results/\w+/tables/(.+)\.\w+$",
        "figure": r"results/\w+/figures/(.+)\.\w+$",
    }
    return {
        (rule, re.match(forms[rule], output)[1] if rule in forms else "")
        for rule, output in planned
    }


def read_paper(project: Project, paper: str = PAPER) -> Paper:
    """The files of a paper as they are now, with axes written out."""
    read_catalogue.cache_clear()
    return load_catalogue(project.root).papers[paper]


def judged_displays(project: Project, paper: str = PAPER) -> set[str]:
    sides = [
        side for claim in read_paper(project, paper).claims for side in (claim.left, claim.right)
    ]
    return {side.split("/")[0] for side in sides if isinstance(side, str)}


def requested(project: Project, paper: str) -> set[str]:
    """The runs of the demo that a paper asks for, read without the package."""
    content = yaml.safe_load((project.root / f"papers/{paper}/experiments.yaml").read_text())
    return {
        f"{task}/{method}/{'@'.join(filter(None, (variant, experiment.get('weights'))))}/seed-{seed}"
        for experiment in content["demo"]
        for task in (
            [experiment["task"]] if isinstance(experiment["task"], str) else experiment["task"]
        )
        for key in ("methods", "ours")
        for method, variants in experiment.get(key, {}).items()
        for variant in variants
        for seed in experiment.get("seeds", content["seeds"])["demo"]
    }


def readers(
    project: Project, runs: set[str], papers: set[str] | None = None
) -> set[tuple[str, str]]:
    """Analyses, tables, figures and claims that show one of `runs`: of `papers`, if not of those
    that ask for it.
    """
    asking = papers or {
        file.parent.name for file in (project.root / "papers").glob("*/experiments.yaml")
    }
    found = set()
    for paper in asking:
        found |= readers_of_paper(
            project, paper, runs if papers else runs & requested(project, paper)
        )
    return found


def readers_of_paper(project: Project, paper: str, runs: set[str]) -> set[tuple[str, str]]:
    """The same for one paper, found without the package."""
    content = read_paper(project, paper)
    changed = {tuple(run.split("/")[:3]) for run in runs}

    def named_runs(entry: dict) -> set[tuple[str, str, str]]:
        found = set()
        for run in entry.get("runs", ()):
            tasks = [run["task"]] if isinstance(run["task"], str) else run["task"]
            variant = "@".join(filter(None, (run["variant"], run.get("weights"))))
            found |= {(task, run["method"], variant) for task in tasks}
        for cell in (column | row for row in entry.get("rows", ()) for column in entry["columns"]):
            variant = cell.get("variant")
            if isinstance(variant, dict):
                variant = variant.get(cell.get("task"))
            if "analysis" not in cell and {"task", "method"} <= cell.keys() and variant:
                found.add((cell["task"], cell["method"], variant))
        return found

    analyses = {
        name for name, entry in content.analyses.items() if named_runs(entry.make_json()) & changed
    }
    shown = set()
    for name, display in (
        (name, display.make_json()) for name, display in content.displays.items()
    ):
        cells = [*display.get("rows", ()), *display.get("columns", ())]
        uses = {
            *display.get("analyses", ()),
            *(cell["analysis"] for cell in cells if "analysis" in cell),
        }
        if uses & analyses or named_runs(display) & changed:
            shown.add((display["kind"], name))
    verdicts = {("claims", "")} if runs else set()
    return {
        (rule, f"{paper}/{name}") for rule, name in {("analyse", name) for name in analyses} | shown
    } | verdicts


def retrained(project: Project, runs: set[str]) -> set[tuple[str, str]]:
    return (
        {(rule, run) for rule in ("train", "evaluate") for run in runs}
        | readers(project, runs)
        | END
    )


def made(project: Project, part: str) -> set[str]:
    """The runs of the demo whose name holds `part`."""
    folder = project.root / "results/demo/runs"
    runs = {str(file.parent.relative_to(folder)) for file in folder.rglob("run.json")}
    return {run for run in runs if part in f"{run}/"}


def weighed(project: Project, part: str) -> set[str]:
    """The evaluations of given weights, `<variant>@<weights>`, whose name holds `part`."""
    folder = project.root / "results/demo/runs"
    names = {
        str(file.parents[1].relative_to(folder))
        for file in folder.glob("*/*/*@*/*/eval/evaluation.json")
    }
    return {name for name in names if part in f"{name}/"}


def test_nothing_changed(demo):
    """A second call has nothing to do, and takes seconds: not time on the clock, which other work
    lengthens.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = demo.reproduce()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, "Nothing to be done" in done.stderr) == (0, True)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10


def reversed_keys(content):
    """The same content with the keys of every mapping the other way round, except axes: their order
    is that of rows.
    """
    if isinstance(content, dict):
        return {
            k: v if k in ("axes", "each") else reversed_keys(v)
            for k, v in reversed(content.items())
        }
    return [reversed_keys(item) for item in content] if isinstance(content, list) else content


def test_what_changes_no_result_reruns_nothing(demo, monkeypatch):
    """All at once: comments, the order of keys, another mirror or device, other versions and times
    of all files.
    """
    for file in (demo.root / "workflow_scripts").rglob("*.py"):
        file.write_text(file.read_text() + "\n# A comment at the end.\n")
    documented = demo.root / "workflow_scripts/training/machine.py"
    first, rest = documented.read_text().split("\n", 1)
    documented.write_text(f'"""Another docstring."""\n{rest}')
    assert first.startswith('"""')

    with demo.edited("config.yaml") as config:
        config["device"], config["data"]["mirror"], config["models"]["local"] = (
            "cuda",
            "/mirror",
            "/models",
        )
    monkeypatch.setenv("RECOMPOSE_MIRROR", "/another")

    files = [*(demo.root / "catalogue").rglob("*.yaml"), *(demo.root / "papers").glob("*/*.yaml")]
    for file in [*files, demo.root / "config.yaml"]:
        content = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump(reversed_keys(content), sort_keys=False))

    for name in ("requirements.lock", "environment.yaml"):
        file = demo.root / "envs" / name
        changed = re.sub(r"\b(torch|snakemake)==[\w.]+", r"\1==1.2.3", file.read_text())
        assert changed != file.read_text()
        file.write_text(changed)

    draw = random.Random(0)
    for file in sorted((demo.root / "results").rglob("*")):
        seconds = 1_700_000_000 + draw.randrange(1_000_000)
        os.utime(file, (seconds, seconds))
    assert demo.planned() == set()


def test_added_seed_adds_that_seed_only(demo):
    with demo.edited("papers/sq_transformer/experiments.yaml") as content:
        cogs = next(one for one in content["demo"] if "cogs" in one["task"])
        content["demo"].append(cogs | {"seeds": {"demo": [77]}})
    runs = {
        f"{task}/{method}/{variant}/seed-77"
        for task in cogs["task"]
        for method, variants in cogs["methods"].items()
        for variant in variants
    }
    assert named(demo.planned()) == retrained(demo, runs)


def test_code_that_one_model_imports_reruns_its_runs(demo):
    demo.change_code("models/sq_transformer/quantisation.py")
    runs = made(demo, "/sq-transformer/")
    assert runs and runs < made(demo, "/")
    assert named(demo.planned()) == retrained(demo, runs)


def test_code_of_the_loop_reruns_every_training_but_no_data(demo):
    demo.change_code("training/loop.py")
    planned, runs = named(demo.planned()), made(demo, "/")
    # It shows runs that others start from, which no request names.
    beside = {("intervene", run) for run in intervened(demo)} | {
        ("table", "carma/table-pretrained")
    }
    beside |= {("search", variant) for variant in searched(demo)}
    beside |= {("evaluate", run) for run in weighed(demo, "@")} | readers(demo, weighed(demo, "@"))
    assert planned == retrained(demo, runs) | beside


def searched(project: Project) -> set[str]:
    """The variants of the demo with a search."""
    folder = project.root / "results/demo/search"
    return {str(file.parent.relative_to(folder)) for file in folder.rglob("chosen.json")}


def intervened(project: Project) -> set[str]:
    """The runs of the demo that interventions were made on."""
    folder = project.root / "results/demo/runs"
    return {
        str(file.parents[1].relative_to(folder))
        for file in folder.glob("*/*/*/*/interventions/intervention.json")
    }


def test_title_of_one_table_code_of_one_figure_and_text_of_one_claim(demo):
    """Of a table that no claim is about: each of the three reruns itself alone."""
    judged, displays = judged_displays(demo), read_paper(demo).displays
    table = next(
        name for name, display in displays.items() if display.kind == "table" and name not in judged
    )
    with demo.edited("papers/sq_transformer/displays.yaml") as content:
        content["displays"][table]["title"] = "Another title"
    module = displays["learning-curves"].module
    demo.change_code(f"reporting/figures/{module}.py")
    figures = {
        name
        for name, display in displays.items()
        if display.kind == "figure" and display.module == module
    }
    with demo.edited("papers/sq_transformer/claims.yaml") as content:
        content["claims"][1]["statement"] = "Said otherwise"
    own = {
        ("table", f"{PAPER}/{table}"),
        ("claims", ""),
        *(("figure", f"{PAPER}/{name}") for name in figures),
    }
    assert named(demo.planned()) == own | END


@pytest.mark.slow
def test_options_of_one_data_set(demo):
    """Its runs follow, and what shows them; no other task is touched."""
    with demo.edited("catalogue/tasks/cogs.yaml") as tasks:
        tasks["cogs"]["when"][0]["options"]["limit"]["train"] = 500
    runs = made(demo, "cogs/")
    assert runs
    assert named(demo.planned()) == retrained(demo, runs) | {("prepare", "cogs")}


@pytest.mark.slow
def test_two_values_swapped(demo):
    """Snakemake compares values without their names: the keys must be part of what it is shown."""
    file = next(demo.root.glob("results/demo/runs/scan-jump-x2/sq-transformer/sal/*/run.json"))
    weights = read_run_spec(json.loads(file.read_text())["spec"], file).objective.settings
    first, second = weights.cluster_source, weights.next_code_source
    assert first != second
    with demo.edited("catalogue/methods/seq2seq.yaml") as methods:
        swapped = {"cluster_source": second, "next_code_source": first}
        methods["sq-transformer"]["variants"]["sal"]["objective"] = swapped
    runs = made(demo, "/sq-transformer/sal/")
    assert runs and named(demo.planned()) == retrained(demo, runs)


@pytest.mark.slow
def test_removed_seed_reruns_what_showed_it(demo):
    removed = made(demo, "/seed-2/") & requested(demo, PAPER)
    with demo.edited("papers/sq_transformer/experiments.yaml") as content:
        content["demo"][0]["seeds"]["demo"].remove(2)
    assert removed
    assert named(demo.planned()) == readers(demo, removed, {PAPER}) | {("claims", "")} | END


@pytest.mark.slow
def test_other_curves_with_the_same_scores(project):
    """As after `./reproduce runs`, by which a run was trained again and scored as before, with 0%."""
    figure = "results/demo/figures/sq_transformer/learning-curves.svg"
    pretend(project, figure)
    (curves, *_) = sorted((project.root / "results/demo/runs").glob("cogs/*/*/*/training.csv"))
    curves.write_text("step,name,value\n")
    assert named(project.planned(figure)) == {("figure", f"{PAPER}/learning-curves")}


@pytest.mark.slow
def test_one_published_number(demo):
    """The table that prints it, and the claims if they judge the table."""
    file, name = demo.root / "papers/sq_transformer/published.csv", "table1"
    lines = file.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith(f"{name},"))
    # the note may be in quotes
    lines[number] = re.sub('"?$', r" corrected\g<0>", lines[number], count=1)
    file.write_text("\n".join(lines) + "\n")
    assert name in judged_displays(demo)
    assert named(demo.planned()) == {("table", f"{PAPER}/{name}"), ("claims", "")} | END


@pytest.mark.slow
def test_results_of_one_run_deleted(demo):
    run = "cogs/sq-transformer/srl/seed-1"
    shutil.rmtree(demo.root / "results/demo/runs" / run)
    assert named(demo.planned()) == retrained(demo, {run})


@pytest.mark.faults
def test_a_training_that_failed_when_it_was_made_again(demo):
    """Snakemake has deleted its files, the scores of the first training are still there: `all`
    names the former too.
    """
    run = "cogs/sq-transformer/srl/seed-1"
    for file in ("run.json", "training.csv", "checkpoint/model.safetensors"):
        (demo.root / "results/demo/runs" / run / file).unlink()
    assert named(demo.planned()) == retrained(demo, {run})


def test_data_and_weights_deleted_to_save_room(demo):
    shutil.rmtree(demo.root / "results/demo/data/scan-jump-x2")
    for file in demo.root.glob("results/demo/runs/*/*/*/*/checkpoint/*"):
        file.unlink()
    assert demo.planned() == set()


@pytest.mark.parametrize(
    "file",
    [
        "runs/*/*/*/*/interventions/answers",
        pytest.param("analyses/*/*/analysis", marks=pytest.mark.slow),
        pytest.param("analyses/*/*/scores", marks=pytest.mark.slow),
    ],
)
def test_a_deleted_file_that_no_finished_job_reads(demo, file):
    """Answers that only an analysis reads, a manifest and scores whose tables are there."""
    deleted = sorted(demo.root.glob(f"results/demo/{file}.*"))[0]
    deleted.unlink()
    assert str(deleted.relative_to(demo.root)) in {name for _, name in demo.planned()}


@pytest.mark.slow
def test_an_output_that_a_rule_declares_since_then(demo):
    latex = "        latex=TABLE.latex,\n"
    added = '        text="results/{scale}/tables/{paper}/{display}.txt",\n'
    demo.edit("rules/report.smk", latex, latex + added)
    planned = demo.planned()
    assert {rule for rule, _ in planned} == {"table", "record_config", "page"}
    assert ("table", "results/demo/tables/sq_transformer/table1.txt") in planned


@pytest.mark.slow
def test_one_table_deleted(demo):
    (demo.root / "results/demo/tables/sq_transformer/table1.csv").unlink()
    assert named(demo.planned()) == {("table", f"{PAPER}/table1")} | END


def of_rule(planned: set[tuple[str, str]], *rules: str) -> set[str]:
    return {name for rule, name in planned if rule in rules}


@pytest.mark.slow
def test_setting_of_one_fine_tuning(demo):
    """The other methods extend this one, with its variants."""
    with demo.edited("catalogue/methods/causal.yaml") as methods:
        methods["gpt2-small"]["variants"]["carma"]["objective"] = {"mi": 0.9}
    planned, runs = named(demo.planned()), made(demo, "-small/carma/")
    assert made(demo, "/gpt2-small/carma/") < runs and of_rule(planned, "train", "evaluate") == runs
    assert of_rule(planned, "prepare", "candidates") == set()


def test_pre_training_reruns_what_starts_from_it(demo):
    """And what is done to that, but nothing of other papers."""
    demo.change_code("tasks/language_modelling/training_setup.py")
    planned = named(demo.planned())
    methods = ("gpt2-small", "llama-small", "gemma", "qwen-small")
    causal = {run for method in methods for run in made(demo, f"/{method}/")}
    given = {run for method in methods for run in weighed(demo, f"/{method}/")}
    assert of_rule(planned, "train") == causal and of_rule(planned, "evaluate") == causal | given
    assert of_rule(planned, "intervene") == {
        run for run in causal | given if "/pretrain/" not in run
    }
    assert of_rule(planned, "prepare", "candidates") == set()


def test_options_of_an_intervention_rerun_no_training(demo):
    with demo.edited("catalogue/tasks/prompts.yaml") as tasks:
        tasks["idm"]["when"].append({"task": "idm", "intervention": {"rates": [0.25, 0.3, 0.4]}})
    planned = named(demo.planned())
    assert of_rule(planned, "train", "evaluate", "candidates") == set()
    assert of_rule(planned, "intervene") and all(
        run.startswith("idm/") for run in of_rule(planned, "intervene")
    )


ONE_SEED = ("--config", "seeds=[1]")
SMALL = {
    "results/small/tables/lrf/table-cogs.csv": {"cogs"},
    "results/small/tables/sq_transformer/table-structure.csv": {
        "cogs",
        "scan-around-right",
        "scan-jump-x2",
    },
    "results/small/tables/sq_transformer/table-variants.csv": {"scan-jump-x2"},
}


@pytest.mark.slow
def test_another_revision_reruns_what_is_made_from_it_alone(project):
    """Two of the tables show runs on COGS, one of them runs on other tasks too."""
    pretend(project, *SMALL, *ONE_SEED)
    folder = project.root / "results/small/runs"
    runs = {str(file.parent.relative_to(folder)) for file in folder.rglob("run.json")}
    assert {run.split("/")[0] for run in runs} == set.union(*SMALL.values())
    assert project.planned(*SMALL, *ONE_SEED) == set()
    with project.edited("workflow_scripts/data/sources/sources.yaml") as content:
        content["datasets"]["cogs"]["files"]["gen.tsv"]["sha256"] = "0" * 64
    again = {
        (rule, run) for rule in ("train", "evaluate") for run in runs if run.startswith("cogs/")
    }
    tables = {("table", "lrf/table-cogs"), ("table", "sq_transformer/table-structure")}
    found = named(project.planned(*SMALL, *ONE_SEED))
    assert found == again | tables | {("fetch_again", "cogs/gen.tsv"), ("prepare", "cogs")}


@pytest.mark.slow
def test_touched_source_files_rerun_nothing_however_large(project):
    """Snakemake forms no checksums of files as large as the archives of CFQ and WMT."""
    target = "results/small/data/cogs/dataset.json"
    pretend(project, target)
    archive = project.root / "results/downloads/cogs/train.tsv"
    limit = yaml.safe_load((project.root / "profiles/default/profile.yaml").read_text())[
        "max-checksum-file-size"
    ]
    os.truncate(archive, limit + 1)  # it takes no space
    record_as_made(project, target)
    for file in archive.parents[1].glob("*/*.t*"):
        os.utime(file)
    assert project.planned(target) == set()


@pytest.mark.slow
def test_another_revision_of_a_source_file(project, tmp_path, monkeypatch):
    """The file is fetched and its task prepared again; the task's other file stays."""
    names = [f"tasks_{split}_template_around_right.txt" for split in ("train", "test")]
    mirror, target = tmp_path / "mirror/scan", "results/small/data/scan-around-right/dataset.json"
    mirror.mkdir(parents=True)
    monkeypatch.setenv("RECOMPOSE_MIRROR", str(mirror.parent))

    def publish(name: str, lines: int) -> None:
        text = "IN: walk OUT: I_WALK\nIN: run twice OUT: I_RUN I_RUN\n" * lines
        (mirror / name).write_text(text)
        with project.edited("workflow_scripts/data/sources/sources.yaml") as content:
            found = {"sha256": sha256(text.encode()).hexdigest(), "bytes": len(text)}
            content["datasets"]["scan"]["files"][name] |= found

    for name in names:
        publish(name, 10)
    project.make(target)
    assert project.planned(target) == set()
    publish(names[0], 20)
    fetched = f"results/downloads/scan/{names[0]}"
    assert project.planned(target) == {
        ("fetch_again", f"{fetched}.json"),
        ("prepare", target),
    }
    project.make(target)
    assert json.loads((project.root / target).read_text())["splits"]["train"]["rows"] == 40

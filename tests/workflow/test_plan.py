"""What Snakemake plans to run, against what the catalogue asks for."""

import re
from collections import Counter

import pytest
import yaml

from tests.workflow.projects import Project
from tests.workflow.test_rerun import readers
from workflow_scripts.config.loading import load_catalogue


def names(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def planned_seeds(task: str, variant: str) -> range:
    """Those of the three analysis plans of the paper at small."""
    if variant.endswith("long"):
        return range(201, 213)
    if task == "cognition-compounds":
        return range(201, 207)
    return range(101, 106) if task == "scan-around-right" else range(101, 109)


def requested(project: Project, scale: str, extra: bool) -> set[str]:
    """The runs of papers/sq_transformer/experiments.yaml, read without the package."""
    content = yaml.safe_load((project.root / "papers/sq_transformer/experiments.yaml").read_text())
    runs = set()
    for experiment in content["demo" if scale == "demo" else "experiments"]:
        if scale not in experiment.get("at", scale) or (experiment.get("extra") and not extra):
            continue
        written = (content["seeds"] | experiment.get("seeds", {}))[scale]
        for task in names(experiment["task"]):
            asked = [*experiment.get("methods", {}).items(), *experiment.get("ours", {}).items()]
            for method, variants in asked:
                for variant in variants:
                    seeds = planned_seeds(task, variant) if written == "planned" else written
                    runs |= {f"{task}/{method}/{variant}/seed-{seed}" for seed in seeds}
    return runs


ONE_PAPER = ("--config", "papers=[sq_transformer]")


def jobs(project: Project, *arguments: str) -> Counter[str]:
    """How many jobs of each rule ./reproduce -n names, in the last line that it prints."""
    return counted(project.make("-n", *arguments).stdout.splitlines()[-1])


def counted(last: str) -> Counter[str]:
    return Counter({rule: int(count) for count, rule in re.findall(r"(\d+) (\w+)(?=,| \()", last)})


def test_a_first_run_makes_everything_that_is_asked_for(project):
    runs = requested(project, "demo", extra=True)
    planned = jobs(project, *ONE_PAPER)
    assert planned["train"] == planned["evaluate"] == len(runs)
    assert planned["prepare"] == len({run.split("/")[0] for run in runs})
    shown = Counter(kind for kind, _ in readers(project, runs, {"sq_transformer"}))
    assert (planned["table"], planned["figure"]) == (shown["table"], shown["figure"])
    assert (planned["claims"], planned["record_config"], planned["fetch"]) == (1, 1, 0)
    assert (planned["page"], planned["snakemake_report"]) == (1, 0)


@pytest.mark.slow
def test_config_of_one_call_chooses_scale_and_extra_runs(project):
    scale = (*ONE_PAPER, "scale=small")
    planned, runs = jobs(project, *scale), requested(project, "small", extra=False)
    assert planned["train"] == len(runs)
    assert planned["fetch"] == len(sources(project, runs)) > 0
    assert jobs(project, "--papers", "sq_transformer", "--scale", "small") == planned
    assert jobs(project, *scale, "extra=true")["train"] == len(
        requested(project, "small", extra=True)
    )
    variants = {run.rsplit("/", 1)[0] for run in requested(project, "demo", extra=True)}
    assert jobs(project, *ONE_PAPER, "seeds=[7,8,9]")["train"] == 3 * len(variants)


def sources(project: Project, runs: set[str]) -> set[str]:
    """The files that the real data of some runs are made from, and those that the paper's analyses
    read.
    """
    entries = {}
    for file in (project.root / "catalogue/tasks").glob("*.yaml"):
        entries |= yaml.safe_load(file.read_text())

    def sources(task: str) -> list[str]:
        """Of the entry and those that it extends; a rule for the small scale wins."""
        chain = [entries[task]]
        while "extends" in chain[-1]:
            chain.append(entries[chain[-1]["extends"]])
        rules = [
            rule
            for entry in chain
            for rule in entry.get("when", [])
            if rule.get("scale") == "small"
        ]
        return next(found["sources"] for found in (*rules, *chain) if "sources" in found)

    found = {source for task in {run.split("/")[0] for run in runs} for source in sources(task)}
    analyses = load_catalogue(project.root).papers["sq_transformer"].analyses
    return found | {source for analysis in analyses.values() for source in analysis.sources}


def test_a_target_of_another_scale_needs_no_config(project):
    """Its runs are those of its own scale, whatever config.yaml says."""
    planned = project.planned("results/small/tables/sq_transformer/table1.csv")
    trained = {
        output for rule, output in planned if rule == "train" and output.endswith("run.json")
    }
    tasks = ("scan-jump-x2/", "scan-around-right/", "cogs/")
    methods = (
        "transformer/default",
        "sq-transformer/sal",
        "sq-transformer/sal-entropy-3",
        "sq-transformer/srl",
    )
    expected = {
        f"results/small/runs/{run}/run.json"
        for run in requested(project, "small", extra=False)
        if run.startswith(tasks) and any(f"/{method}/" in run for method in methods)
    }
    assert trained == expected


def test_every_job_can_be_typed(project):
    """Each rule is one command of the package (or printf, for the record of the configuration)."""
    listed = project.reproduce("-n", "--printshellcmds").stdout.splitlines()
    commands = [line for line in listed if line.startswith(("python", "printf"))]
    assert len(commands) == counted(listed[-1]).total() > 100
    assert all(
        command.startswith(("python -m workflow_scripts ", "printf ")) for command in commands
    )


def test_unknown_config_key_is_one_line_with_the_nearest(project):
    done = project.reproduce("--config", "scal=small")
    assert done.returncode == 1
    assert "error: --config: unknown key 'scal'; did you mean 'scale'?" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert not (project.root / "results").exists()


@pytest.mark.parametrize("word", ["learning_rate=0.001", "training.learning_rate=0.001"])
def test_a_setting_of_trainings_is_answered_with_where_these_are(project, word):
    done = project.reproduce("--config", word)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and errors[0].startswith(
        f"error: --config: unknown key '{word.removesuffix('=0.001')}'; settings of trainings are "
        "in catalogue/, a variant of your own: docs/adding.md#a-method; known: claims, data, "
    )
    assert "Traceback" not in done.stderr
    assert not (project.root / "results").exists()


def test_a_wrong_resource_is_one_line(project):
    done = project.reproduce("-n", "--set-resources", "train:mem_mb=64G")
    assert done.returncode == 1
    assert done.stderr == (
        "error: --set-resources train:mem_mb=64G: mem_mb takes a number of MB, mem a size with a "
        "unit, as mem=64G\n"
    )


def test_unknown_target_and_unknown_run_are_one_line(project):
    done = project.reproduce("results/demo/tables/sq_transformer/table99.csv")
    assert done.returncode == 1
    assert "error: no rule makes results/demo/tables/sq_transformer/table99.csv" in done.stderr
    done = project.reproduce("results/demo/runs/cogs/transformer/srl/seed-1/run.json")
    assert done.returncode == 1
    assert "error: run 'cogs/transformer/srl/" in done.stderr
    assert "Traceback" not in done.stderr


def test_broken_catalogue_is_said_before_any_job(project):
    project.edit("catalogue/tasks/kinds.yaml", "max_steps: 100,", "max_steps: many,")
    done = project.reproduce()
    assert done.returncode == 1
    assert "max_steps" in done.stderr and "many" in done.stderr
    assert not (project.root / "results").exists()


def test_a_configuration_that_snakemake_would_misread_is_refused_in_one_line(project):
    for arguments in (("--config", "scale"), ("--config", "scale=demo", "downloads")):
        done = project.reproduce("-n", *arguments)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("error: Invalid config definition: ") and repr(arguments[-1]) in last
    with open(project.root / "config.yaml", "a") as stream:
        stream.write("scale: small\n")
    done = project.reproduce("-n")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.fullmatch(
        r"error: config\.yaml:\d+: .*'scale' is listed twice.*", done.stderr.splitlines()[-1]
    )


def test_fine_tuning_waits_for_what_it_starts_from(project):
    """A run brings along its parent, and the parent's data, which no paper names."""
    target = "results/demo/runs/idm/gpt2-small/carma/seed-1/interventions/scores.csv"
    planned = project.planned(target)
    trained = {
        output for rule, output in planned if rule == "train" and output.endswith("run.json")
    }
    folder = "results/demo/runs"
    parent = f"{folder}/text-bpe-4k/gpt2-small/pretrain/seed-1/run.json"
    assert trained == {f"{folder}/idm/gpt2-small/carma/seed-1/run.json", parent}
    prepared = {output for rule, output in planned if rule in ("prepare", "candidates")}
    assert prepared == {
        "results/demo/data/idm/dataset.json",
        "results/demo/data/text-bpe-4k/dataset.json",
        "results/demo/candidates/idm/candidates.json",
    }


@pytest.mark.slow
def test_the_target_downloads_fetches_all_that_a_whole_run_fetches_and_nothing_else(project):
    scale = ("--config", "scale=full", "papers=[carma,sq_transformer]")
    wanted = {(rule, file) for rule, file in project.planned(*scale) if rule.startswith("fetch")}
    assert {rule for rule, _ in wanted} == {"fetch", "fetch_model"}
    assert project.planned("downloads", *scale) == wanted


def test_large_data_are_prepared_in_jobs_of_their_own_and_stand_ins_where_snakemake_runs(project):
    made = "results/{}/data/wmt17-en-de/dataset.json"
    planned = {rule for rule, file in project.planned(made.format("demo"), made.format("full"))}
    assert planned == {"fetch", "prepare", "prepare_large"}
    local = (project.root / "rules/data.smk").read_text().split("localrules:")[1].split("\n\n\n")[0]
    assert re.findall(r"\w+", local) == ["fetch", "fetch_again", "fetch_model", "prepare"]


@pytest.mark.parametrize(
    "words",
    [
        ("--scale", "small", "--papers", "cat"),
        ("--scale", "small", "--papers", "carma", "recompose"),
        ("--scale", "small", "--claim", "cat/comp-over-bert-bird", "carma/cv-six"),
        ("--scale", "full", "--papers", "cat"),
        ("--scale", "full", "--papers", "lrf", "--budget", "40"),
    ],
)
def test_plan_and_a_dry_run_count_the_same_jobs_and_hours(project, words):
    """Of all jobs: on cores at small, on GPUs at full."""
    device = "cpu" if "small" in words else "cuda"
    plan = project.command("plan", *words).stdout.splitlines()
    done = project.make("-n", *words, "--config", f"device={device}")
    *_, last = done.stdout.splitlines()
    if "--budget" not in words:
        (jobs,) = [line for line in plan if line.startswith("  jobs       ")][-1:]
        of_plan = {rule: int(count) for count, rule in re.findall(r"(\d+) ([a-z_]+)", jobs)}
        assert of_plan == dict(counted(last))
    (hours,) = [line for line in plan if line.startswith("  hours      of all jobs: ")][-1:]
    (said,) = [line for line in done.stderr.splitlines() if " for the first time: about " in line]
    time = re.search(r"all jobs: (.+?)(; or on a GPU: .+)?$", hours)
    assert time and "-hours" in time[1]
    assert time[1] == re.sub(r" of an NVIDIA H100", "", re.search(r": about (.+);", said)[1])
    trained, others = re.search(r"^(\d+) trainings and (\d+) other jobs ", said).groups()
    assert int(trained) == counted(last)["train"]
    assert int(trained) + int(others) == counted(last).total()

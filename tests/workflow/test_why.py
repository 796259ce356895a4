"""`why` names, for each stale job, what changed, from what to what."""

import json
import re
import shutil

import pytest

from tests.training.toy import ROOT
from tests.workflow.projects import DATA, RUN, SCORES, TRAINED, Project, pretend
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.workflow.rerun_reasons import find_rerun_reasons, locate_setting
from workflow_scripts.workflow.snakemake_job import SnakemakeJob


def why(project: Project, *arguments: str) -> list[str]:
    done = project.command("why", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_nothing_is_stale(made: Project):
    assert why(made, SCORES, "--papers", "sq_transformer", "--scale", "demo") == [
        "Nothing would run at scale demo"
    ]


def test_a_key_of_one_variant_with_its_place(made: Project):
    with made.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["transformer"]["variants"]["default"]["training"] = {"learning_rate": 0.00123}
    train, evaluate, last = why(made, SCORES)
    before = json.loads((made.root / TRAINED).read_text())["spec"]["training"]["learning_rate"]
    place = r"catalogue/methods/seq2seq\.yaml:\d+: transformer\.variants\.default"
    assert re.fullmatch(
        rf"train {RUN}: training\.learning_rate was {before} and is 0\.00123 \({place}\)", train
    )
    assert evaluate.startswith(f"evaluate {RUN}: reads {TRAINED}, ") and evaluate.endswith(
        "which are rerun too"
    )
    assert last == "2 jobs would run at scale demo, 1 of them for a reason of their own"


def test_the_rule_for_right_answers_of_interventions_is_a_setting_of_the_evaluation():
    wildcards = {"scale": "small", "task": "sst", "method": "gpt2-small", "variant": "ft"}
    job = SnakemakeJob("intervene", wildcards | {"seed": "seed-101"})
    place = locate_setting(load_catalogue(ROOT), job, "evaluation.match")
    assert re.fullmatch(
        r" \(catalogue/tasks/prompts\.yaml:\d+: sst\)", place.replace(f"{ROOT}/", "")
    )


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Updated input files: a.csv", ["a.csv changed after it was read"]),
        ("Finished (was: Updated input files: a.csv)", ["a.csv changed after it was read"]),
        ("Finished (was: Input files updated by another job: a.csv)", []),
        (
            "Finished (was: Code has changed; Updated input files: a.csv)",
            ["Code has changed", "a.csv changed after it was read"],
        ),
        ("Set of input files has changed since last execution", ["reads other files than before"]),
        (
            "Set of input files has changed since last execution; Params have changed since last "
            "execution: before: ['a'] now: ['a', 'b']",
            ["shows b too"],
        ),
        (
            "Params have changed since last execution: "
            "before: 'spec c4bf, code 1e0c','results/demo/state/a' "
            "now: 'spec c4bf, code 18ec','results/demo/state/b'",
            ["settings or code changed during the call that made it"],
        ),
        ("Forced execution", ["was stopped before its result was recorded, or is forced"]),
    ],
)
def test_reasons_of_snakemake_are_said_in_our_words(tmp_path, reason, said):
    """A dry run, which has counted its jobs as done, gives them in brackets."""
    (tmp_path / "page.html").touch()
    job = SnakemakeJob("page", {"scale": "small"}, ["a.csv"], [f"{tmp_path}/page.html"], reason)
    catalogue, config = load_catalogue(ROOT), load_config(root=ROOT)
    assert list(find_rerun_reasons(catalogue, config, job, set())) == said


@pytest.mark.slow
def test_a_module_of_the_code(made: Project):
    file = made.root / "workflow_scripts/tasks/seq2seq/decoding.py"
    file.write_text(file.read_text() + "\n\ndef added():\n    return 1\n")
    own = f"evaluate {RUN}: workflow_scripts/tasks/seq2seq/decoding.py changed"
    (sentence,) = [sentence for sentence in why(made, SCORES) if sentence.startswith("evaluate")]
    assert sentence == own
    # Without the stored digests, as after a copy of the results alone.
    shutil.rmtree(made.root / "results/code")
    assert f"evaluate {RUN}: its code has changed" in why(made, SCORES)


@pytest.mark.slow
def test_code_of_the_data_reruns_the_training_as_well(made: Project):
    """The name of the state folder, a parameter of the training, changes with the code of its data."""
    made.change_code("data/datasets/scan.py")
    prepare, train, evaluate, last = why(made, SCORES)
    assert prepare == "prepare scan-jump-x2: workflow_scripts/data/datasets/scan.py changed"
    assert train == f"train {RUN}: reads {DATA}/dataset.json, which is rerun too"
    assert evaluate.startswith(f"evaluate {RUN}: reads ")
    assert last == "3 jobs would run at scale demo, 1 of them for a reason of their own"
    jobs = [f"prepare {DATA.split('/')[-1]} its settings or code changed"]
    jobs += [f"{rule} {RUN} reads a result that is rerun" for rule in ("train", "evaluate")]
    command = ".venv/bin/python -m workflow_scripts why"
    listed = made.make("-n", SCORES).stdout.splitlines()
    assert [" ".join(line.split()) for line in listed] == [
        *jobs,
        f"3 jobs: 1 prepare, 1 train, 1 evaluate (not run: -n; {command} says what changed)",
    ]


def test_a_seed_that_was_not_trained_and_files_that_are_gone(made: Project):
    new = SCORES.replace("seed-1", "seed-77")
    (made.root / SCORES).unlink()
    train, again, evaluate, last = why(made, new, SCORES)
    assert train == f"train {RUN.replace('seed-1', 'seed-77')}: no results yet"
    assert again == f"evaluate {RUN.replace('seed-1', 'seed-77')}: no results yet"
    assert evaluate == f"evaluate {RUN}: {SCORES} is missing"
    assert last == "3 jobs would run at scale demo"


def test_a_result_without_a_record(made: Project):
    (made.root / TRAINED).unlink()
    (made.root / TRAINED).with_name("record.json").unlink()
    (made.root / SCORES).with_name("record.json").write_text("{}")
    train, evaluate, _ = why(made, SCORES, TRAINED)
    assert train.startswith(f"train {RUN}: {TRAINED} is missing; its record cannot be read (")
    assert (
        evaluate
        == f"evaluate {RUN}: {SCORES.replace('scores.csv', 'record.json')} has no fingerprint and spec"
    )


def test_changed_contents_of_an_input(made: Project):
    file = made.root / DATA / "dataset.json"
    file.write_text(file.read_text().replace("{", "{ ", 1))
    sentences = why(made, TRAINED)
    assert sentences == [
        f"train {RUN}: {DATA}/dataset.json changed after it was read",
        "1 job would run at scale demo",
    ]


@pytest.mark.slow
def test_another_command(made: Project):
    made.edit("rules/evaluate.smk", "m workflow_scripts evaluate ", "m workflow_scripts  evaluate ")
    own, _ = why(made, SCORES)
    assert own == f"evaluate {RUN}: Code has changed since last execution"


@pytest.mark.slow
def test_the_same_configuration_by_the_command_line(made: Project):
    lines = why(made, SCORES, "--config", "precision=bf16")
    assert any(
        'training.precision was "fp32" (the default) and is "bf16"' in line for line in lines
    )


def test_many_jobs_with_one_reason_are_counted(project: Project):
    """They are named with --all, or where they are at most ten."""
    words = ("--claim", "lrf/lrf-over-matched-addjump", "--scale", "small")
    counted, last = why(project, *words)
    count = r"(\d+) trainings, (\d+) evaluations"
    found = re.fullmatch(rf"no results yet: \d+ downloads, 1 data set, {count}, 1 claim", counted)
    assert found and found[1] == found[2]
    assert re.fullmatch(r"\d+ jobs would run at scale small; --all names each", last)
    *named, total = why(project, *words, "--all")
    assert total == last.removesuffix("; --all names each")
    assert len(named) == int(last.split()[0])
    assert all(line.endswith(": no results yet") for line in named)


def test_the_scale_is_that_of_the_targets(project: Project):
    """Whatever config.yaml says, as in a call of ./reproduce."""
    *_, last = why(project, "results/small/data/scan-jump-x2/dataset.json")
    assert re.fullmatch(r"\d+ jobs would run at scale small", last)
    *_, last = why(project, "results/demo/data/scan-jump-x2/dataset.json", "--scale", "small")
    assert last == "1 job would run at scale demo"


@pytest.mark.slow
def test_another_choice_of_papers(demo: Project):
    """As after ./reproduce with all papers, for one of them."""
    (claims,) = [line for line in why(demo, "--papers", "lrf") if line.startswith("claims: ")]
    assert claims == "claims: papers carma, cat, recompose, sq_transformer are no longer chosen"


def test_a_claim_and_a_display(demo):
    with demo.edited("papers/sq_transformer/claims.yaml") as content:
        claim = next(
            claim for claim in content["claims"] if claim["claim"] == "sal-over-srl-addjump"
        )
        name, before = claim["claim"], claim["at_least"]
        claim["at_least"] = before + 7.5
    with demo.edited("papers/sq_transformer/displays.yaml") as content:
        content["displays"]["table5"]["title"] = "Another title"
    sentences = why(demo)
    (verdicts,) = [sentence for sentence in sentences if sentence.startswith("claims: ")]
    assert f"claims.sq_transformer.{name}.at_least was {before} and is {before + 7.5}" in verdicts
    assert any(s.startswith("figure sq_transformer/table5: entry.title was ") for s in sentences)


@pytest.mark.slow
def test_another_set_of_runs(demo):
    with demo.edited("papers/sq_transformer/experiments.yaml") as content:
        cogs = next(one for one in content["demo"] if "cogs" in one["task"])
        content["demo"].append(cogs | {"task": "cogs", "seeds": {"demo": [77]}})
    sentences = why(demo)
    assert "train cogs/transformer/default/seed-77: no results yet" in sentences
    (table,) = [
        sentence for sentence in sentences if sentence.startswith("table sq_transformer/table1: ")
    ]
    assert table.endswith(
        "shows cogs/sq-transformer/srl/seed-77, cogs/transformer/default/seed-77 too"
    )
    with demo.edited("papers/sq_transformer/experiments.yaml") as content:
        content["demo"] = [one for one in content["demo"] if one.get("seeds") != {"demo": [77]}]
        content["demo"][0]["seeds"]["demo"].remove(2)
    (table,) = [
        sentence for sentence in why(demo) if sentence.startswith("table sq_transformer/table1: ")
    ]
    assert table.endswith("/seed-2 no more") and " too" not in table


@pytest.mark.slow
def test_a_source_file_and_a_model_of_the_hub(project):
    """Both commits, or both checksums, and where they are set."""
    source, model = "cogs/gen.tsv", "openai-community/gpt2"
    targets = [
        "results/small/data/cogs/dataset.json",
        f"results/downloads/models/{model}/model.json",
    ]
    pretend(project, *targets)
    assert why(project, *targets) == ["Nothing would run at scale small"]
    with project.edited("workflow_scripts/data/sources/sources.yaml") as content:
        entry = content["datasets"]["cogs"]["files"]["gen.tsv"]
        checksum, entry["sha256"] = entry["sha256"], "0" * 64
        commit, content["hugging_face"][model]["revision"] = (
            content["hugging_face"][model]["revision"],
            "a" * 40,
        )
    project.edit("catalogue/methods/causal.yaml", commit, "a" * 40)  # lint compares the two files
    (project.root / f"results/downloads/{source}.json").write_text(json.dumps({"sha256": checksum}))
    (project.root / targets[1]).write_text(json.dumps({"revision": commit}))
    fetched, repository, prepared, last = why(project, *targets)
    file = "workflow_scripts/data/sources/sources.yaml"
    place = f"{file} datasets.cogs.files.gen.tsv.sha256"
    assert fetched == f'fetch_again {source}: sha256 was "{checksum}" and is "{"0" * 64}" ({place})'
    place = f"{file} hugging_face.{model}.revision"
    assert (
        repository == f'fetch_model {model}: revision was "{commit}" and is "{"a" * 40}" ({place})'
    )
    assert prepared.startswith("prepare cogs: its record cannot be read (")  # not made for real
    assert last == "3 jobs would run at scale small"


@pytest.mark.slow
def test_a_published_number(demo):
    """By its cell and its column."""
    table = "results/demo/tables/sq_transformer/table1.csv"
    line = "table1,Transformer,JUMP,exact_match,40.04±17.3,40.04,percent,"
    demo.edit("papers/sq_transformer/published.csv", f"{line}17.3,", f"{line}17.4,")
    own, last = why(demo, table)
    key, file = (
        "published.table1/Transformer/JUMP/exact_match.std",
        "papers/sq_transformer/published.csv",
    )
    assert own == f'table sq_transformer/table1: {key} was "17.3" and is "17.4" ({file})'
    assert last == "1 job would run at scale demo"


@pytest.mark.slow
def test_a_caption(demo):
    file = demo.root / "papers/sq_transformer/captions/table1.rst"
    before = file.read_text().strip()
    file.write_text("Another caption.\n")
    own, *following, last = why(demo)
    assert own.startswith(f'table sq_transformer/table1: caption was "{before[:40]}')
    assert own.endswith('and is "Another caption." (papers/sq_transformer/captions/table1.rst)')
    rules = ("record_config", "page")
    assert [line.split(": reads ")[0] for line in following] == list(rules)
    assert last == "3 jobs would run at scale demo, 1 of them for a reason of their own"


@pytest.mark.slow
def test_the_site(demo):
    """It is made when it is asked for, by a rule without a record."""
    *_, site, last = why(demo, "site")
    assert site.startswith("site: ")
    assert last.startswith("1 job would run at scale demo")

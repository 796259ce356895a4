"""`check` lists the results that differ from the current configuration, and Snakemake can accept
them.
"""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.shared_folders import make_once
from tests.workflow.four_rows import PAPER
from tests.workflow.projects import (
    DATA,
    ROOT,
    RUN,
    SCORES,
    TRAINED,
    Project,
    copied,
    plain_environment,
    whole_copy,
)
from workflow_scripts.commands.inputs import hash_weights
from workflow_scripts.common.files import hash_file, hash_files, write_json
from workflow_scripts.common.result_folders import DOWNLOADS, RESULTS, DataFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_paper_runs
from workflow_scripts.data.prepared import digest_data
from workflow_scripts.provenance.fingerprints import fingerprint_claims
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.workflow.other_inputs import InputComparison, combine_weights

pytestmark = pytest.mark.quick_faults
RECORD, EVALUATION = (
    TRAINED.replace("run.json", "record.json"),
    SCORES.replace("scores.csv", "record.json"),
)
RECORDS_OF_DISPLAYS = [
    f"results/demo/{name}.json"
    for name in ("tables/mine/table1", "tables/mine/table2", "figures/mine/figure1", "claims")
]
OTHER_CURVE = """\
      - {panel: SCAN, series: crashes, task: scan-jump-x2, method: lrf, variant: default}
"""
# One run, with an analysis of its scores.
ONE_RUN = PAPER | {
    "experiments.yaml": """
title: One run
citation: A paper of one run
seeds: {demo: [1], small: [1], full: [1]}
demo:
  - {task: scan-jump-x2, methods: {transformer: [default]}}
experiments:
  - {task: [scan-jump-x2, cogs], methods: {transformer: [default], sq-transformer: [srl]}}
""",
    "displays.yaml": PAPER["displays.yaml"].replace(OTHER_CURVE, "")
    + """
  table2:
    source: Table 2
    title: Means
    group: Results
    rows:
      - {row: Mean, analysis: means, task: scan-jump-x2, item_set: SCAN, metric: mean}
    columns:
      - {column: works, method: transformer, variant: default}
analyses:
  means:
    module: mean_scores
    scored: true
    runs:
      - {series: works, task: scan-jump-x2, method: transformer, variant: default}
    options:
      means:
        SCAN: [{task: scan-jump-x2, split: test, subset: all, metric: exact_match}]
""",
}


def check(project: Project, *arguments: str) -> list[str]:
    """The lines that `check` prints; the last of them is its error if something differs."""
    done = project.command("check", *arguments)
    said = done.stdout.splitlines() + done.stderr.splitlines()
    assert done.returncode == said[-1].startswith("error: "), said
    return said


def change_learning_rate(project: Project) -> str:
    """Give the run another learning rate; returns what `check` says of it."""
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["transformer"]["variants"]["default"]["training"] = {"learning_rate": 0.00123}
    before = json.loads((project.root / TRAINED).read_text())["spec"]["training"]["learning_rate"]
    return f"{RECORD}: training.learning_rate was {before} and is 0.00123"


def planned(project: Project) -> set[str]:
    return {rule for rule, _ in project.planned(SCORES)}


def copy_results(made: Project, target: Path, *folders: str) -> Project:
    """A fresh copy of the project with some folders of another one, all files with other times."""
    project = copied(target)
    shutil.copytree(made.root / "catalogue", project.root / "catalogue", dirs_exist_ok=True)
    for folder in folders:
        shutil.copytree(made.root / folder, project.root / folder)
    draw = random.Random(1)
    for file in sorted((project.root / "results").rglob("*")):
        seconds = 1_700_000_000 + draw.randrange(1_000_000)
        os.utime(file, (seconds, seconds))
    return project


def state_of(folder: Path) -> dict[Path, tuple[int, bytes]]:
    files = [
        file
        for part in ("results", ".snakemake")
        for file in (folder / part).rglob("*")
        if file.is_file()
    ]
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def test_what_differs_is_named_and_nothing_is_touched(made: Project):
    assert check(made) == ["3 results agree with the current configuration"]
    changed = change_learning_rate(made)
    decoding = made.root / "workflow_scripts/tasks/seq2seq/decoding.py"
    decoding.write_text(decoding.read_text() + "\n\ndef added():\n    return 1\n")
    before = state_of(made.root)
    train, evaluate, error = check(made)
    assert train.startswith(changed)
    assert evaluate == f"{EVALUATION}: workflow_scripts/tasks/seq2seq/decoding.py changed"
    assert error.startswith("error: 2 of 3 results differ from the current configuration; ")
    assert state_of(made.root) == before


def test_a_changed_bit_of_any_file_of_a_result_is_found_and_a_deleted_one_is_not_missed(
    made: Project,
):
    agree = "3 results agree with the current configuration"
    assert check(made, "--deep") == [f"{agree}, and their files with the recorded sha256"]
    results = made.root / "results"
    weights = made.root / TRAINED.replace("run.json", "checkpoint/model.safetensors")
    damaged = [weights, results / "demo/data/scan-jump-x2/test.parquet", made.root / SCORES]
    for file in damaged:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    assert check(made) == [agree]
    data, train, evaluate, error = check(made, "--deep")
    assert data == f"{DATA}/test.parquet differs from the sha256 in dataset.json"
    assert train == f"{weights.relative_to(made.root)} differs from the sha256 in run.json"
    assert evaluate == f"{SCORES} differs from the sha256 in evaluation.json"
    assert error == (
        "error: 3 files have changed; delete them with the manifest, or with the folder if it is a "
        "record.json, and run ./reproduce again"
    )
    for file in damaged[:2]:
        file.unlink()
    (evaluate, _) = check(made, "--deep")
    assert evaluate.startswith(SCORES)


@pytest.fixture(scope="session")
def reported_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of three steps with an analysis, a table, a figure and a claim."""
    return Project(make_once(tmp_path_factory, "reported", make_reported_run))


def make_reported_run(folder: Path) -> None:
    project = copied(folder)
    project.set_demo_steps(3)
    project.add_paper(ONE_RUN)
    with plain_environment():
        project.make()


@pytest.fixture
def reported(reported_once: Project, tmp_path: Path) -> Project:
    """A copy of it, with the times of its files and Snakemake's records."""
    return whole_copy(reported_once, tmp_path)


def give_other_content(project: Project, file: str, *manifests: str) -> None:
    """Change a file, and the sha256 that its manifest has, and so on to the last record.

    So are the files of another machine, of which all belong together.
    """
    path = project.root / file
    change_digit(path)
    for name in manifests:
        above = project.root / name
        content = json.loads(above.read_text())
        if "output_sha256" in content:
            del content["record_digest"]
            write_json(above, content)
            add_output_digests(above, [path])
        else:
            content["files"][path.relative_to(above.parent).as_posix()] = hash_file(path)
            write_json(above, content)
        path = above


MADE_FROM = "was made from other files than those of"


def test_scores_of_other_weights_are_named(reported: Project):
    """All files agree with their sha256; the scores are those of a run that was here before."""
    weights = TRAINED.replace("run.json", "checkpoint/model.safetensors")
    give_other_content(reported, weights, TRAINED, RECORD)
    evaluation, analysis, error = check(reported, "--deep")
    assert evaluation == f"{EVALUATION}: {MADE_FROM} {TRAINED}"
    assert analysis == f"results/demo/analyses/mine/means/record.json: {MADE_FROM} {TRAINED}"
    assert error.startswith("error: 2 results were made from other files than those that are there")
    assert check(reported) == [evaluation, analysis, error]


def test_a_run_on_other_data_is_named(reported: Project):
    give_other_content(
        reported, f"{DATA}/test.parquet", f"{DATA}/dataset.json", f"{DATA}/record.json"
    )
    train, evaluate, analyse, _ = check(reported)
    of_data = f"{MADE_FROM} {DATA}/dataset.json"
    assert [train, evaluate] == [f"{RECORD}: {of_data}", f"{EVALUATION}: {of_data}"]
    assert analyse == f"results/demo/analyses/mine/means/record.json: {of_data}"


def test_tables_and_claims_of_other_scores_are_named(reported: Project):
    give_other_content(
        reported, SCORES, SCORES.replace("scores.csv", "evaluation.json"), EVALUATION
    )
    *named, error = check(reported, "--deep")
    shown = ("tables/mine/table1", "figures/mine/figure1", "claims")
    assert named == [f"results/demo/{name}.json: {MADE_FROM} {SCORES}" for name in shown]
    assert error.startswith("error: 3 results were made from other files than those")


@pytest.mark.slow
def test_a_citation_is_on_the_page_alone(reported: Project):
    assert reported.planned() == set()
    with reported.edited("papers/mine/experiments.yaml") as content:
        content["citation"] = "Cited otherwise"
    assert {rule for rule, _ in reported.planned()} == {"page"}


def test_what_was_deleted_to_save_room_is_not_compared(reported: Project):
    shutil.rmtree((reported.root / TRAINED).parent / "checkpoint")
    shutil.rmtree(reported.root / "results/demo/data")
    (said,) = check(reported, "--deep")
    assert said.endswith("with the recorded sha256")


def test_a_digest_of_data_follows_from_their_manifest(reported: Project):
    folder = reported.root / DATA
    recorded = json.loads((reported.root / TRAINED).read_text())["data_digest"]
    assert InputComparison().digest_data(DataFolder(folder)) == [recorded] == [digest_data(folder)]


@pytest.mark.parametrize("names", [["model"], ["part-1"], ["part-1", "part-2"]])
def test_a_digest_of_weights_follows_from_their_manifest(tmp_path: Path, names: list[str]):
    for name in names:
        (tmp_path / f"{name}.safetensors").write_text(name)
    (tmp_path / "config.json").write_text("{}")
    files = {name: {"sha256": sha256} for name, sha256 in hash_files(tmp_path).items()}
    assert combine_weights(files) == [hash_weights(tmp_path)]


def test_a_run_of_other_first_weights_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of another run, of the hub, and scores of given weights."""
    monkeypatch.chdir(tmp_path)
    names = {"scale": "demo", "task": "bird", "method": "bert", "variant": "ft", "seed": "seed-1"}
    parent = RESULTS.scale("demo").run("paws/bert/ft/seed-1")
    write_json(parent.manifest, {"files": {"checkpoint/model.safetensors": "a" * 64}})
    hub = DOWNLOADS.model("org/bert")
    write_json(hub.manifest, {"files": {"model.safetensors": {"sha256": "a" * 64}}})
    run = RESULTS.scale("demo").run("bird/bert/ft/seed-1")
    given = RESULTS.scale("demo").run("bird/bert/ft@paws/seed-1")
    for origin, place in (
        ({"run": parent.name, "spec": "0"}, parent.manifest),
        ({"hub": "org/bert", "revision": "0"}, hub.manifest),
    ):
        for sha256, expected in (("a" * 64, []), ("b" * 64, [f"{MADE_FROM} {place}"])):
            write_json(run.manifest, {"spec": {"init": origin}, "init_digest": sha256})
            scored = {"weights": origin, "checkpoint_sha256": sha256}
            write_json(given.evaluation.manifest, scored)
            comparison = InputComparison()
            assert comparison.find_other_inputs("train", names) == expected
            of_given = names | {"variant": "ft@paws"}
            assert comparison.find_other_inputs("evaluate", of_given) == expected


def change_digit(file: Path) -> None:
    """Add one to the last digit of a text file, or to its last byte; JSON stays valid."""
    content = bytearray(file.read_bytes())
    is_text = file.suffix not in (".parquet", ".png", ".safetensors")
    digits = [place for place, byte in enumerate(content) if chr(byte) in "012345678"]
    place = digits[-1] if is_text else len(content) - 1
    content[place] += 1 if content[place] < 255 else -1
    file.write_bytes(content)


def list_result_files(project: Project) -> list[str]:
    """Every file that a job has made, except the page and its configuration."""
    results = project.root / "results/demo"
    folders = [results / name for name in ("analyses", "data", "figures", "runs", "tables")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += [*results.glob("claim*.*"), results / "overview.rst"]
    return sorted(str(file.relative_to(project.root)) for file in files)


def test_a_changed_digit_of_each_file_of_a_result_is_found(reported: Project):
    agree = (
        "8 results agree with the current configuration, and their files with the recorded sha256"
    )
    assert check(reported, "--deep") == [agree]
    files = list_result_files(reported)
    endings = {"/".join(file.split("/")[-2:]) for file in files}
    assert endings > {
        *("mine/table1.md", "mine/table1.csv", "mine/table1.tex", "mine/table1.html"),
        *("mine/table1.json", "mine/figure1.csv", "mine/figure1.svg", "mine/figure1.png"),
        *("demo/claims.csv", "demo/claim_sides.csv", "demo/claims.json", "demo/overview.rst"),
        *("means/analysis.json", "means/record.json", "means/scores.csv", "seed-1/run.json"),
        *("seed-1/record.json", "eval/evaluation.json", "eval/record.json"),
        *("scan-jump-x2/dataset.json", "scan-jump-x2/record.json", "checkpoint/config.json"),
    }
    records = {
        name for name in files if name.endswith("record.json") or name in RECORDS_OF_DISPLAYS
    }
    contents = {name: (reported.root / name).read_bytes() for name in files}
    # A record that has changed names no other file, so they change apart.
    for changed in (records, set(files) - records):
        for name in changed:
            change_digit(reported.root / name)
        said = check(reported, "--deep")
        named = [line.partition(" differs from ")[0] for line in said if " differs from " in line]
        assert sorted(named) == sorted(changed)
        error = f"error: {len(changed)} files have changed; delete them with the manifest, "
        assert any(line.startswith(error) for line in said)
        for name in changed:
            (reported.root / name).write_bytes(contents[name])
    assert check(reported, "--deep") == [agree]


@pytest.mark.slow
def test_a_changed_table_is_made_again_once_it_is_deleted(reported: Project):
    table = reported.root / "results/demo/tables/mine/table1.md"
    content = table.read_bytes()
    change_digit(table)
    line, _ = check(reported, "--deep")
    assert line == "results/demo/tables/mine/table1.md differs from the sha256 in table1.json"
    table.unlink()
    reported.make()
    assert table.read_bytes() == content
    assert check(reported, "--deep")[0].startswith("8 results agree")


def test_records_of_earlier_versions_are_current_and_counted(reported: Project):
    for record in [*RECORDS_OF_DISPLAYS, RECORD]:
        file = reported.root / record
        content = json.loads(file.read_text())
        del content["output_sha256"], content["record_digest"]
        file.write_text(json.dumps(content))
    change_digit(reported.root / "results/demo/claims.csv")
    assert check(reported, "--deep") == [
        "5 of 8 results are of an earlier version, which recorded no sha256 of tables, figures, "
        "claims, manifests and records: these were not compared",
        "8 results agree with the current configuration, and their files with the recorded sha256",
    ]


def test_missing_files_are_named_but_for_those_that_may_be_deleted(reported: Project):
    results = reported.root / "results/demo"
    shutil.rmtree(results / "data")
    shutil.rmtree(results / f"runs/{RUN}/checkpoint")
    assert check(reported) == ["7 results agree with the current configuration"]
    missing = [
        TRAINED,
        f"{RECORD} is missing; delete results/demo/runs/{RUN} to make this result again",
        f"results/demo/runs/{RUN}/training.csv",
        SCORES,
        "results/demo/analyses/mine/means/scores.csv",
        "results/demo/tables/mine/table1.csv",
        "results/demo/figures/mine/figure1.json",
        "results/demo/overview.rst",
    ]
    for line in missing:
        (reported.root / line.split()[0]).unlink()
    # A training without both files is none.
    (results / f"runs/{RUN}/training.csv").touch()
    *said, error = check(reported)
    assert sorted(line.removesuffix(" is missing") for line in said) == sorted(
        line for line in missing if not line.endswith("training.csv")
    )
    assert error == (
        "error: 7 files are missing; `./reproduce -n` with the same options lists what it will make "
        "again"
    )


def test_what_tables_figures_and_analyses_show_counts(reported: Project):
    other = RUN.replace("seed-1", "seed-2")
    change = f"shows {other} too; shows {RUN} no more"
    *said, claims, error = check(reported, "--config", "seeds=[2]")
    assert said == [
        f"results/demo/analyses/mine/means/record.json: {change}",
        f"results/demo/tables/mine/table1.json: {change}",
        f"results/demo/figures/mine/figure1.json: {change}",
    ]
    assert claims.startswith("results/demo/claims.json: runs was ")
    assert error.startswith("error: 4 of 8 results differ from the current configuration; ")
    why = reported.command("why", "--config", "seeds=[2]").stdout
    assert f"table mine/table1: {change}\n" in why
    # It shows the analysis alone, which is rerun, too.
    assert "table mine/table2: reads results/demo/analyses/mine/means/analysis.json, which" in why


def test_settings_of_the_command_line_count(made: Project):
    train, error = check(made, "--config", "precision=bf16")
    assert train.startswith(f'{RECORD}: training.precision was "fp32" (the default) and is "bf16"')
    assert error.startswith("error: 1 of 3 results differ")


def test_results_that_are_damaged_unknown_or_without_a_record(made: Project):
    (made.root / RECORD).write_text("{")
    (made.root / EVALUATION).write_text("{}")
    (made.root / DATA).rename(made.root / DATA.replace("jump", "hop"))
    other = made.root / "results/demo.old/data/cogs/record.json"  # no scale: somebody's own copy
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    data, train, evaluate, error = check(made)
    assert (
        data.startswith("results/demo/data/scan-hop-x2/record.json: ")
        and "scan-hop-x2" in data.split(": ", 1)[1]
    )
    assert train.startswith(f"{RECORD}: {RECORD}:1: not valid JSON")
    assert evaluate == f"{EVALUATION}: {EVALUATION} has no fingerprint and spec"
    assert error.startswith("error: 3 of 3 results differ")


def test_a_source_file_with_another_checksum(made: Project):
    manifest = made.root / "results/downloads/cogs/gen.tsv.json"
    manifest.parent.mkdir(parents=True)
    with made.edited("workflow_scripts/data/sources/sources.yaml") as content:
        checksum = content["datasets"]["cogs"]["files"]["gen.tsv"]["sha256"]
    manifest.write_text(json.dumps({"sha256": checksum}))
    assert check(made) == ["4 results agree with the current configuration"]
    manifest.with_suffix("").write_text("cut")
    damaged, _ = check(made, "--deep")
    assert damaged == "results/downloads/cogs/gen.tsv differs from the sha256 in gen.tsv.json"
    manifest.write_text(json.dumps({"sha256": "0" * 64}))
    fetched, _ = check(made)
    assert (
        fetched
        == f'results/downloads/cogs/gen.tsv.json: sha256 was "{"0" * 64}" and is "{checksum}"'
    )


def test_a_download_that_differs_from_trusted_csv(made: Project):
    """As after a pull, by who has downloaded before. A call fetches it again, which is refused."""
    with made.edited("workflow_scripts/data/sources/sources.yaml") as content:
        datasets = content["datasets"]
        name = next(
            f"{dataset}/{file}"
            for dataset, entry in datasets.items()
            for file, properties in entry["files"].items()
            if properties["sha256"] is None and not properties.get("packings")
        )
    manifest = made.root / f"results/downloads/{name}.json"
    manifest.parent.mkdir(parents=True)
    write_json(manifest, {"sha256": "a" * 64})
    trusted = made.root / "trusted.csv"
    head = "source,sha256,bytes,date\n"
    trusted.write_text(f"{head}{name},{'a' * 64},1,2026-11-30\n")
    assert check(made) == ["4 results agree with the current configuration"]
    trusted.write_text(f"{head}{name},{'b' * 64},1,2026-11-30\n")
    line, _ = check(made)
    change = f'sha256 was "{"a" * 64}" and is "{"b" * 64}"'
    assert line == f"results/downloads/{name}.json: {change}"


def test_claims_of_another_choice_of_papers_are_no_fault(made: Project):
    record = made.root / "results/demo/claims.json"
    for name in ("claims.csv", "claim_sides.csv", "overview.rst"):
        record.with_name(name).touch()
    record.write_text(json.dumps({"fingerprint": "none", "spec": {"claims": {"mine": {}}}}))
    note, line, _ = check(made)
    other = "another choice of papers, --papers mine"
    assert note == f"results/demo/claims.json: checked as that of {other}"
    assert line == "results/demo/claims.json: 'mine' is not in catalogue/ or papers/"
    now = fingerprint_claims(load_catalogue(ROOT), ["lrf"], "demo", list_runs_of_lrf())
    record.write_text(json.dumps({"fingerprint": str(now), "spec": now.spec}))
    assert check(made) == [
        "results/demo/claims.json: checked as that of another choice of papers, --papers lrf",
        "4 results agree with the current configuration",
    ]
    assert check(made, "--papers", "sq_transformer") == [
        "results/demo/claims.json: not checked; it is of another choice of papers, --papers lrf",
        "3 results agree with the current configuration",
    ]


def list_runs_of_lrf() -> list[Run]:
    config = load_config({"scale": "demo", "papers": ["lrf"]}, ROOT)
    return list(list_paper_runs(load_catalogue(ROOT), config, "lrf", "demo"))


def test_papers_and_scale_choose_what_is_checked(made: Project):
    change_learning_rate(made)
    assert check(made, "--papers", "sq_transformer")[-1].startswith("error: 1 of 3 results differ")
    assert check(made, "--papers", "carma") == ["no result that these options choose is there"]
    assert check(made, "--scale", "small") == ["no result that these options choose is there"]
    assert check(made, "--config", "papers=[carma]") == [
        "no result that these options choose is there"
    ]


def test_any_packing_of_a_source_file_is_right(made: Project):
    name = "wordnet-3.0-dict.tar.xz"
    manifest = made.root / f"results/downloads/wordnet/{name}.json"
    manifest.parent.mkdir(parents=True)
    with made.edited("workflow_scripts/data/sources/sources.yaml") as content:
        (packing,) = content["datasets"]["wordnet"]["files"][name]["packings"]
    manifest.write_text(json.dumps({"sha256": packing["sha256"]}))
    assert check(made) == ["4 results agree with the current configuration"]


@pytest.mark.slow
def test_results_with_snakemakes_records_are_current_in_another_folder(
    made_once: Project, tmp_path: Path
):
    project = copy_results(made_once, tmp_path, "results", ".snakemake/metadata")
    done = project.reproduce(SCORES)
    assert (done.returncode, "Nothing to be done" in done.stderr) == (0, True), done.stderr
    change_learning_rate(project)
    assert planned(project) == {"train", "evaluate"}


def test_results_alone_are_checked_and_then_recorded_by_touch(made_once: Project, tmp_path: Path):
    project = copy_results(made_once, tmp_path, "results")
    weights = {
        file: file.read_bytes() for file in (project.root / "results").rglob("*.safetensors")
    }
    assert weights and check(project) == ["3 results agree with the current configuration"]
    said = project.make("--touch", "--forceall", SCORES).stderr.splitlines()
    assert said[-1] == "3 jobs recorded as current; none was run"
    assert planned(project) == set()
    assert {file: file.read_bytes() for file in weights} == weights
    change_learning_rate(project)
    assert planned(project) == {"train", "evaluate"}


@pytest.mark.slow
def test_touch_takes_whatever_is_there_for_current_and_makes_nothing_that_is_missing(made: Project):
    changed = change_learning_rate(made)
    missing = SCORES.replace("seed-1", "seed-77")
    made.make("--touch", SCORES, missing)
    assert planned(made) == set() and not (made.root / missing).exists()
    assert check(made)[0].startswith(changed)

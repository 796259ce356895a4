"""What a job is given and the code that it reaches, in short and in long."""

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.config.as_json import resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.displays import select_published_rows
from workflow_scripts.config.loading import load_catalogue, load_config, read_catalogue
from workflow_scripts.config.requested import list_paper_runs
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.evaluation.published_numbers import PUBLISHED_COLUMNS
from workflow_scripts.provenance.code import digest_code, find_closure
from workflow_scripts.provenance.fingerprints import digest_page_texts, fingerprint_display
from workflow_scripts.provenance.spec_fingerprints import (
    FINGERPRINT_PATTERN,
    Fingerprint,
    fingerprint_evaluation,
    fingerprint_training,
    load_modules,
    store_modules,
)
from workflow_scripts.tasks.packages import list_packages, load_kind_settings
from workflow_scripts.tasks.run_spec import read_given_weights_spec, read_run_spec
from workflow_scripts.workflow.job_fingerprints import fingerprint_job
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job

ROOT = Path(__file__).parents[2]
RUN = {
    "scale": "demo",
    "task": "cogs",
    "method": "transformer",
    "variant": "default",
    "seed": "seed-1",
}


def of(rule: str, **wildcards: str) -> Fingerprint | None:
    return fingerprint_workflow_job(
        load_catalogue(ROOT), load_config(root=ROOT), rule, {"scale": "demo"} | wildcards
    )


def test_the_short_form_is_two_digests():
    assert FINGERPRINT_PATTERN.match(str(of("train", **RUN)))
    assert of("record_config") is None


def test_a_command_and_the_workflow_mean_the_same_facts():
    """`train` writes them to run.json from its spec; Snakemake has them from the wildcards."""
    spec = resolve_run(load_catalogue(ROOT), "cogs/transformer/default/seed-1", "demo")
    assert str(fingerprint_training(read_run_spec(json.loads(json.dumps(spec)), "spec"))) == str(
        of("train", **RUN)
    )


def test_a_seed_and_a_scale_make_other_facts():
    others = [of("train", **RUN | {"seed": "seed-2"}), of("train", **RUN | {"scale": "small"})]
    assert len({str(of("train", **RUN)), *map(str, others)}) == 3


def test_a_table_is_given_its_own_published_numbers_only():
    given = of("table", paper="sq_transformer", display="table1").spec["published"]
    assert given and all(cell.startswith("table1/") for cell in given)
    assert {tuple(number) for number in given.values()} == {PUBLISHED_COLUMNS[4:]}


def test_a_paper_without_published_numbers_is_told_what_it_needs(tmp_path):
    (tmp_path / "papers/mine").mkdir(parents=True)
    with pytest.raises(
        UserError, match=r"papers/mine/published\.csv does not exist; copy the header line"
    ):
        select_published_rows(Catalogue(tmp_path, {}, {}, {}), "mine", ["table1"])


def test_what_is_fetched_is_given_by_its_checksum_or_commit():
    name, source = next((name, source) for name, source in load_sources().items() if source.sha256)
    assert of("fetch", source=name).spec == {"sha256": source.sha256}
    model, entry = next(
        (name, entry) for name, entry in load_repositories().items() if entry.kind == "model"
    )
    assert of("fetch_model", model=model).spec == {"revision": entry.revision}


def test_what_is_written_on_a_page_is_given_with_its_titles_and_caption():
    """A table names its paper and the data of its tasks, the report's first page the papers."""
    catalogue, paper = load_catalogue(ROOT), "sq_transformer"
    title = catalogue.papers[paper].experiments.title
    table = of("table", paper=paper, display="table1").spec
    assert table["paper"] == title and table["titles"]["cogs"] == catalogue.tasks["cogs"].title
    assert table["caption"] == (ROOT / f"papers/{paper}/captions/table1.rst").read_text().strip()
    assert of("claims").spec["titles"][paper] == title


def test_a_table_is_given_the_titles_of_the_data_of_pre_trainings():
    """Its notes name them."""
    tasks = load_catalogue(ROOT).tasks
    titles = of("table", scale="small", paper="carma", display="table-accuracy").spec["titles"]
    assert titles["text-bpe-4k"] == tasks["text-bpe-4k"].title


def test_a_table_is_given_the_planned_seeds_that_it_may_withhold():
    """Of its variants alone, and only where it shows a planned seed."""
    catalogue, paper, sal = (
        load_catalogue(ROOT),
        "sq_transformer",
        "scan-jump-x2/sq-transformer/sal",
    )
    for seed, expected in ((101, {sal: list(range(101, 109))}), (61, None)):
        runs = [Run.parse(f"{sal}/seed-{seed}")]
        spec = fingerprint_display(catalogue, paper, "table1", runs, "small").spec
        assert spec.get("planned_seeds") == expected
    assert "planned_seeds" not in of("table", paper=paper, display="table1").spec  # demo: no plan


def test_plans_of_other_papers_count():
    """LRF's claims and tables compare a variant that SQ-Transformer has planned."""
    variant, seeds = "cognition/sq-transformer/srl", list(range(101, 109))
    assert of("claims", scale="small").spec["seeds_of_other_plans"]["lrf"][variant] == seeds
    table = of("table", scale="small", paper="lrf", display="table-cognition")
    assert table.spec["planned_seeds"][variant] == seeds


def test_the_page_is_given_the_texts_that_it_prints():
    catalogue, config = load_catalogue(ROOT), load_config(root=ROOT)
    paper = catalogue.papers["lrf"]
    cited = paper.experiments.model_copy(update={"citation": "Another citation."})
    changed = replace(
        catalogue, papers=catalogue.papers | {"lrf": replace(paper, experiments=cited)}
    )
    meant = replace(catalogue, meanings=catalogue.meanings | {"exact_match": "other words"})
    digests = {digest_page_texts(entry, config) for entry in (catalogue, changed, meant)}
    assert len(digests) == 3 and digest_page_texts(replace(catalogue), config) in digests


def test_scoring_is_given_the_code_that_sets_seeds_and_draws_random_weights():
    machine = "workflow_scripts.training.machine"
    assert machine in find_closure(of("evaluate", **RUN).modules)
    prompts = RUN | {"task": "idm", "method": "gpt2-small", "variant": "ft"}
    assert machine in find_closure(of("intervene", **prompts).modules)
    trained = resolve_run(load_catalogue(ROOT), "cogs/transformer/default/seed-1", "demo")
    given = {"variant": "default@start", "weights": "start", "objective": {}}
    start = read_given_weights_spec(trained | given | {"training": {"torch_threads": 1}}, "spec")
    evaluation = load_kind_settings("seq2seq").evaluation
    settings = evaluation.model_validate({"splits": ["test"], "batch_tokens": 100})
    modules = fingerprint_evaluation(settings, start).modules
    assert "workflow_scripts.training.run" in modules
    assert "workflow_scripts.tasks.seq2seq.training_setup" in modules


@pytest.mark.parametrize("known", [False, True])
def test_a_download_with_another_sha256_than_trusted_csv_is_fetched_again(
    tmp_path, monkeypatch, known
):
    name = next(name for name, source in load_sources().items() if source.sha256 is None)
    monkeypatch.chdir(tmp_path)
    here, trusted = "a" * 64, "b" * 64
    sha256 = here if known else trusted
    write_json(Path(f"results/downloads/{name}.json"), {"sha256": here})
    job = ("fetch", {"source": name})
    assert fingerprint_job(None, *job).spec == {"sha256": None}
    Path("trusted.csv").write_text(f"source,sha256,bytes,date\n{name},{sha256},1,2026-11-30\n")
    assert fingerprint_job(None, *job).spec == {"sha256": None if known else trusted}


@pytest.mark.parametrize("shown", ["table5", "table6"])
def test_a_figure_is_given_the_numbers_that_it_shows(monkeypatch, shown):
    options = load_catalogue(ROOT).papers["sq_transformer"].displays["table5"].options
    monkeypatch.setitem(options, "published", f"{shown}/{{word}}/Closest words/neighbours")
    given = of("figure", paper="sq_transformer", display="table5").spec["published"]
    assert {cell.split("/")[0] for cell in given} == {"table5", shown}


def test_the_modules_of_the_code_are_stored(tmp_path):
    train = of("train", **RUN)
    store_modules([train, of("table", paper="sq_transformer", display="table1")], tmp_path)
    assert "workflow_scripts.training.loop" in load_modules(train.code, tmp_path)
    assert load_modules("0" * 16, tmp_path) is None


# Kind of task -> a default in its settings, and another one.
CHANGED_DEFAULTS = {
    "language_modelling": ("Settings):\n", "Settings):\n    label_smoothing: float = 0.1\n"),
    "masked_lm": ("= 128", "= 64"),
    "prompt": ('"token",\n', '"text",\n'),
    "question_answering": ("stride: AtLeastOne = 128", "stride: AtLeastOne = 64"),
    "sentence_prediction": ("head_width: AtLeastOne = 768", "head_width: AtLeastOne = 512"),
    "seq2seq": ("max_length: int = Field(200", "max_length: int = Field(100"),
}


@pytest.fixture(scope="module")
def run_by_kind() -> dict[str, dict[str, str]]:
    """Kind of task -> the wildcards of one of its trainings."""
    catalogue, config = load_catalogue(ROOT), load_config(root=ROOT)
    found = {}
    for paper, scale in product(catalogue.papers, ("small", "full")):
        for run in list_paper_runs(catalogue, config, paper, scale):
            if "@" in run.variant:
                continue
            found[catalogue.tasks[run.task].kind] = {
                "scale": scale,
                "task": run.task,
                "method": run.method,
                "variant": run.variant,
                "seed": f"seed-{run.seed}",
            }
    return found


def copy_with_changed_default(folder: Path, kind: str) -> tuple[Path, Path]:
    """Two copies of the package, one with another default in the settings of a kind of task."""
    default, other = CHANGED_DEFAULTS[kind]
    as_is, changed = folder / "as_is", folder / "changed"
    for root in (as_is, changed):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "workflow_scripts", root / "workflow_scripts", ignore=ignored)
    settings = changed / f"workflow_scripts/tasks/{kind}/settings.py"
    text = settings.read_text()
    assert text.count(default) == 1
    settings.write_text(text.replace(default, other))
    return as_is, changed


@pytest.mark.parametrize("kind", CHANGED_DEFAULTS)
def test_a_changed_default_of_a_kind_of_task_reruns_its_trainings_alone(
    run_by_kind, tmp_path, kind
):
    assert run_by_kind.keys() == CHANGED_DEFAULTS.keys() == set(list_packages("tasks"))
    as_is, changed = copy_with_changed_default(tmp_path, kind)
    stale = set()
    for name, wildcards in run_by_kind.items():
        modules = of("train", **wildcards).modules
        if digest_code(modules, as_is) != digest_code(modules, changed):
            stale.add(name)
    assert stale == {kind}


@pytest.mark.parametrize(
    ("kind", "task", "method", "variant"),
    [
        ("prompt", "idm", "gemma", "ft@start"),
        ("sentence_prediction", "bird", "bert", "ft@paws"),
    ],
)
def test_a_changed_default_of_a_kind_of_task_reruns_evaluations_of_given_weights(
    tmp_path, kind, task, method, variant
):
    """No training of theirs is rerun, of which they would read the new settings."""
    as_is, changed = copy_with_changed_default(tmp_path, kind)
    run = {"task": task, "method": method, "variant": variant, "seed": "seed-101"}
    modules = of("evaluate", **RUN | {"scale": "small"} | run).modules
    assert digest_code(modules, as_is) != digest_code(modules, changed)


def test_interventions_are_given_the_rule_for_right_answers(tmp_path):
    """They compare answers by the `match` of the run's evaluation, not by a setting of theirs."""
    for name in ("catalogue", "papers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    wildcards = RUN | {"task": "sst", "method": "qwen-small", "variant": "ft"}

    def read_spec() -> dict:
        catalogue, config = load_catalogue(tmp_path), load_config(root=ROOT)
        return fingerprint_workflow_job(catalogue, config, "intervene", wildcards).spec

    before = read_spec()
    tasks = tmp_path / "catalogue/tasks/prompts.yaml"
    tasks.write_text(tasks.read_text().replace("{match: text}", "{match: token}"))
    read_catalogue.cache_clear()
    assert before["evaluation"] == {"match": "text"}
    assert read_spec() == before | {"evaluation": {"match": "token"}}

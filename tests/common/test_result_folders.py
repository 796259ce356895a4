"""The layout of results/ as literal text, so that a wrong name in `result_folders` shows.

No other module and no rule has these names.
"""

import ast
import json
import re
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.common.result_folders import (
    DOWNLOADS,
    RESULTS,
    CrateFolder,
    ExportFolder,
    ModelFolder,
    ReleaseFolder,
    ScaleFolder,
    verify_checksum,
)
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.workflow import result_patterns

ROOT = Path(__file__).parents[2]
SMALL = RESULTS.scale("small")
RUN = SMALL.run("cogs/lrf/default/seed-21")
DATA = SMALL.data("cogs")
CANDIDATES = SMALL.candidates("idm")
SEARCH = SMALL.search("stsb/cat/mix")
ANALYSIS = SMALL.analysis("lrf", "means")
TABLE = SMALL.table("lrf", "table1")
FIGURE = SMALL.figure("cat", "figure3")
SOURCE = DOWNLOADS.source("scan/tasks.txt")
EXPORT = ExportFolder(RESULTS.reference / "small")
MODEL = ModelFolder(Path("models/cogs/lrf/default/seed-21"))
RELEASE = ReleaseFolder(Path("release"))
CRATE = CrateFolder(Path("crate"))

LAYOUT = {
    "results/downloads/scan/tasks.txt": SOURCE.path,
    "results/downloads/scan/tasks.txt.json": SOURCE.manifest,
    "results/downloads/models/owner/gpt2": DOWNLOADS.model("owner/gpt2").path,
    "results/downloads/models/owner/gpt2/model.json": DOWNLOADS.model("owner/gpt2").manifest,
    "results/code": RESULTS.code_digests,
    "results/site": RESULTS.site,
    "results/small/config.json": SMALL.config,
    "results/small/claims.csv": SMALL.claims.table,
    "results/small/claim_sides.csv": SMALL.claims.sides,
    "results/small/claims.json": SMALL.claims.record,
    "results/small/claims/lrf/lrf-over-matched-cogs/claims.csv": SMALL.claim(
        "lrf", "lrf-over-matched-cogs"
    ).table,
    "results/small/overview.rst": SMALL.claims.overview,
    "results/small/index.html": SMALL.page,
    "results/small/report.html": SMALL.report,
    "results/small/site": SMALL.site,
    "results/small/specs/data/cogs.json": SMALL.specs.data("cogs"),
    "results/small/specs/candidates/idm.json": SMALL.specs.candidates("idm"),
    "results/small/specs/stsb/cat/mix/search.json": SMALL.specs.search("stsb/cat/mix"),
    "results/small/specs/cogs/lrf/default/seed-21.json": SMALL.specs.run(RUN.name),
    "results/small/specs/analyses/lrf/means.json": SMALL.specs.analysis("lrf", "means"),
    "results/small/data/cogs/dataset.json": DATA.manifest,
    "results/small/data/cogs/record.json": DATA.record,
    "results/small/data/cogs/train.parquet": DATA.split("train"),
    "results/small/data/cogs/vocabulary.json": DATA.vocabulary,
    "results/small/data/cogs/tokenizer.json": DATA.tokenizer,
    "results/small/data/cogs/lexicon.json": DATA.lexicon,
    "results/small/data/cogs/sememe_names.json": DATA.sememe_names,
    "results/small/candidates/idm/candidates.parquet": CANDIDATES.words,
    "results/small/candidates/idm/candidates.json": CANDIDATES.manifest,
    "results/small/candidates/idm/record.json": CANDIDATES.record,
    "results/small/search/stsb/cat/mix/chosen.json": SEARCH.chosen,
    "results/small/search/stsb/cat/mix/search.csv": SEARCH.pairs,
    "results/small/search/stsb/cat/mix/record.json": SEARCH.record,
    "results/small/state/stsb/cat/mix/search/12ab": SMALL.search_state("stsb/cat/mix", "12ab"),
    "results/small/state/cogs/lrf/default/seed-21/12ab": SMALL.training_state(RUN.name, "12ab"),
    "results/small/runs": SMALL.runs,
    "results/small/runs/cogs/lrf/default/seed-21": RUN.path,
    "results/small/runs/cogs/lrf/default/seed-21/checkpoint": RUN.checkpoint,
    "results/small/runs/cogs/lrf/default/seed-21/checkpoint/model.safetensors": RUN.weights,
    "results/small/runs/cogs/lrf/default/seed-21/checkpoint/last.safetensors": RUN.weights_at(
        "last"
    ),
    "results/small/runs/cogs/lrf/default/seed-21/training.csv": RUN.curve,
    "results/small/runs/cogs/lrf/default/seed-21/run.json": RUN.manifest,
    "results/small/runs/cogs/lrf/default/seed-21/record.json": RUN.record,
    "results/small/runs/cogs/lrf/default/seed-21/eval/predictions.parquet": (
        RUN.evaluation.predictions
    ),
    "results/small/runs/cogs/lrf/default/seed-21/eval/scores.csv": RUN.evaluation.scores,
    "results/small/runs/cogs/lrf/default/seed-21/eval/evaluation.json": RUN.evaluation.manifest,
    "results/small/runs/cogs/lrf/default/seed-21/eval/record.json": RUN.evaluation.record,
    "results/small/runs/cogs/lrf/default/seed-21/interventions/scores.csv": (
        RUN.interventions.scores
    ),
    "results/small/runs/cogs/lrf/default/seed-21/interventions/answers.parquet": (
        RUN.interventions.answers
    ),
    "results/small/runs/cogs/lrf/default/seed-21/interventions/intervention.json": (
        RUN.interventions.manifest
    ),
    "results/small/runs/cogs/lrf/default/seed-21/interventions/record.json": (
        RUN.interventions.record
    ),
    "results/small/earlier/12ab/entry.json": SMALL.earlier("12ab").entry,
    "results/small/earlier/12ab/files": SMALL.earlier("12ab").files,
    "results/small/exported/runs/cogs/lrf/default/seed-21": SMALL.exported.run(RUN.name).path,
    "results/small/analyses/lrf/means/scores.csv": ANALYSIS.scores,
    "results/small/analyses/lrf/means/words.csv": ANALYSIS.table("words"),
    "results/small/analyses/lrf/means/analysis.json": ANALYSIS.manifest,
    "results/small/analyses/lrf/means/record.json": ANALYSIS.record,
    "results/small/tables/lrf/table1.csv": TABLE.csv,
    "results/small/tables/lrf/table1.md": TABLE.markdown,
    "results/small/tables/lrf/table1.tex": TABLE.latex,
    "results/small/tables/lrf/table1.html": TABLE.html,
    "results/small/tables/lrf/table1.json": TABLE.record,
    "results/small/figures/cat/figure3.csv": FIGURE.csv,
    "results/small/figures/cat/figure3.svg": FIGURE.svg,
    "results/small/figures/cat/figure3.png": FIGURE.png,
    "results/small/figures/cat/figure3.json": FIGURE.record,
    "results/reference/small/claims.csv": EXPORT.claims.table,
    "results/reference/small/claim_sides.csv": EXPORT.claims.sides,
    "results/reference/small/scores.csv": EXPORT.scores,
    "results/reference/small/draws.parquet": EXPORT.draws,
    "results/reference/small/curves.csv": EXPORT.curves,
    "results/reference/small/analyses.csv": EXPORT.analyses,
    "results/reference/small/datasets.json": EXPORT.datasets,
    "results/reference/small/devices.csv": EXPORT.devices,
    "results/reference/small/provenance.json": EXPORT.provenance,
    "results/reference/small/interventions/sst/smollm/ft.parquet": EXPORT.interventions_of(
        VariantKey("sst", "smollm", "ft")
    ),
    "results/reference/small/predictions/cogs/lrf/default.parquet": EXPORT.predictions_of(
        VariantKey("cogs", "lrf", "default")
    ),
    "results/reference/small/answers": EXPORT.answers_folder,
    "results/reference/small/answers/cogs/test.parquet": EXPORT.answers("cogs").split("test"),
    "results/reference/small/models/cogs/lrf/default/seed-21/run.json": EXPORT.model(RUN.name).run,
    "results/downloads/trained/small/cogs/lrf/default/seed-21/run.json": DOWNLOADS.trained(
        "small", RUN.name
    ).run,
    "results/downloads/trained/archives": DOWNLOADS.archives,
    "release/models.json": RELEASE.manifest,
    "release/small--cogs.zip": RELEASE.archive("small--cogs.zip"),
    "results/reference/small/tables/lrf/table1.md": EXPORT.table("lrf", "table1").markdown,
    "results/reference/small/figures/cat/figure3.svg": EXPORT.figure("cat", "figure3").svg,
    "models/cogs/lrf/default/seed-21/run.json": MODEL.run,
    "models/cogs/lrf/default/seed-21/evaluation.json": MODEL.evaluation,
    "models/cogs/lrf/default/seed-21/dataset.json": MODEL.dataset,
    "models/cogs/lrf/default/seed-21/record.json": MODEL.record,
    "models/cogs/lrf/default/seed-21/README.md": MODEL.card,
    "crate/ro-crate-metadata.json": CRATE.metadata,
    "crate/results/small/config.json": CRATE.results.scale("small").config,
}
# The wildcards of the rules are the names of what a user asks for: ./reproduce results/….
RECORDS = {
    "fetch": "results/downloads/{source}.json",
    "fetch_model": "results/downloads/models/{model}/model.json",
    "prepare": "results/{scale}/data/{task}/record.json",
    "candidates": "results/{scale}/candidates/{task}/record.json",
    "search": "results/{scale}/search/{task}/{method}/{variant}/record.json",
    "train": "results/{scale}/runs/{task}/{method}/{variant}/{seed}/record.json",
    "evaluate": "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/record.json",
    "intervene": "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/record.json",
    "analyse": "results/{scale}/analyses/{paper}/{analysis}/record.json",
    "table": "results/{scale}/tables/{paper}/{display}.json",
    "figure": "results/{scale}/figures/{paper}/{display}.json",
    "claims": "results/{scale}/claims.json",
    "claim": "results/{scale}/claims/{paper}/{claim}/claims.json",
}


@pytest.mark.parametrize("file", LAYOUT)
def test_layout(file: str):
    assert LAYOUT[file] == Path(file)


def test_records_of_the_rules():
    patterns = {rule: str(record) for rule, record in result_patterns.RECORDS.items()}
    assert patterns == RECORDS
    assert list(patterns) == list(RECORDS)  # in the order in which data flow
    names = {"scale": "demo", "task": "idm", "method": "gpt2", "variant": "ft", "seed": "seed-*"}
    record = result_patterns.locate_record("evaluate", names)
    assert record == Path("results/demo/runs/idm/gpt2/ft/seed-*/eval/record.json")


def test_names_that_a_command_may_replace():
    assert CANDIDATES.names == {"candidates.parquet", "candidates.json", "record.json"}
    assert SEARCH.names == {"search.csv", "chosen.json", "record.json"}
    scored = {"scores.csv", "record.json"}
    assert RUN.evaluation.names == scored | {"predictions.parquet", "evaluation.json"}
    assert RUN.interventions.names == scored | {"answers.parquet", "intervention.json"}
    trained = {"checkpoint", "training.csv", "run.json", "record.json"}
    assert RUN.names == trained | {"eval", "interventions"}
    assert ANALYSIS.names == {"*.csv", "analysis.json", "record.json"}
    assert DATA.names == {"*.parquet", "*.json", "*.mapped"}
    assert MODEL.names == {"*.safetensors", "*.json", "README.md"}
    assert RELEASE.names == {"models.json", "*.zip"}
    tables = {"scores.csv", "analyses.csv", "curves.csv", "devices.csv", "draws.parquet"}
    reports = {"claims.csv", "claim_sides.csv", "tables", "figures", "predictions", "answers"}
    reports |= {"models", "interventions"}
    assert EXPORT.names == tables | reports | {"datasets.json", "provenance.json"}


def test_files_of_displays():
    assert {file.suffix for file in TABLE.files} == {".csv", ".md", ".tex", ".html", ".json"}
    assert {file.suffix for file in FIGURE.files} == {".csv", ".svg", ".png", ".json"}


def test_names_of_what_a_folder_is_of():
    assert RUN.name == "cogs/lrf/default/seed-21"
    assert (DATA.task, ANALYSIS.paper, ANALYSIS.name) == ("cogs", "lrf", "means")
    assert RUN.scale == ScaleFolder(Path("results/small").absolute())


def test_the_first_manifest_of_given_weights_is_that_of_their_scores():
    assert RUN.first_manifest == RUN.manifest
    given = SMALL.run("bird/cat/mix@paws/seed-1")
    assert given.has_given_weights
    file = "results/small/runs/bird/cat/mix@paws/seed-1/eval/evaluation.json"
    assert given.first_manifest == Path(file)


def test_lists_what_is_there(tmp_path: Path):
    files = (
        "runs/b/m/v/seed-2/run.json",
        "runs/b/m/v/seed-2/eval/evaluation.json",
        "runs/b/m/v/seed-2/eval/scores.csv",
        "runs/b/m/v/seed-2/interventions/scores.csv",
        "runs/a/m/v/seed-1/run.json",
        "runs/a/m/v@b/seed-1/eval/evaluation.json",
        "runs/a/m/v@b/seed-1/eval/scores.csv",
        "data/a/dataset.json",
        "data/b/train.parquet",
        "analyses/paper/means/scores.csv",
        "analyses/paper/begun/record.json",
        "tables/paper/table1.csv",
        "figures/paper/figure1.csv",
        "figures/paper/figure2.svg",
    )
    for file in files:
        (tmp_path / "demo" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "demo" / file).touch()
    results = ScaleFolder(tmp_path / "demo")
    assert [run.name for run in results.list_trained_runs()] == ["a/m/v/seed-1", "b/m/v/seed-2"]
    assert [run.name for run in results.list_scored_runs()] == ["a/m/v@b/seed-1", "b/m/v/seed-2"]
    scores = [file.relative_to(results.path).as_posix() for file in results.list_score_files()]
    assert scores == [
        "runs/a/m/v@b/seed-1/eval/scores.csv",
        "runs/b/m/v/seed-2/eval/scores.csv",
        "runs/b/m/v/seed-2/interventions/scores.csv",
    ]
    of_run = results.run("b/m/v/seed-2").list_score_files()
    assert of_run == [results.path / file for file in scores[1:]]
    assert [data.task for data in results.list_data()] == ["a"]
    assert [analysis.name for analysis in results.list_analyses()] == ["means"]
    assert results.list_tables() == [results.table("paper", "table1")]
    assert results.list_figures() == [results.figure("paper", "figure1")]


def test_a_crate_has_the_scale_with_a_configuration(tmp_path: Path):
    for file in ("results/demo/config.json", "results/small/claims.csv", "results/readme"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    results = CrateFolder(tmp_path).results
    assert [scale.path.name for scale in results.list_scales()] == ["demo", "small"]
    assert [scale.path.name for scale in results.list_complete_scales()] == ["demo"]


@pytest.mark.parametrize(
    "manifest",
    ["evaluation.json", "intervention.json", "analysis.json", "candidates.json", "run.json"],
)
def test_a_changed_file_does_not_match_its_checksum(tmp_path: Path, manifest: str):
    file = tmp_path / "scores.csv"
    file.write_text("value\n1\n")
    (tmp_path / manifest).write_text(json.dumps({"files": {"scores.csv": hash_file(file)}}))
    verify_checksum(file)
    file.write_text("value\n2\n")
    with pytest.raises(UserError, match="does not match its checksum; delete"):
        verify_checksum(file)


def test_what_has_no_checksum_is_not_verified(tmp_path: Path):
    file = tmp_path / "scores.csv"
    verify_checksum(file)
    file.write_text("value\n1\n")
    verify_checksum(file)
    (tmp_path / "run.json").write_text('{"files": {"other.csv": "ab"}}')
    verify_checksum(file)


# Names of files, and of folders with a folder or a file in them.
FILES = {Path(file).name for file in LAYOUT if "." in file.rpartition("/")[2]}
FILES -= {"README.md", "tasks.txt", "words.csv", "table1.csv"}
OF_NAMES = re.compile(r"(table1|figure3|cogs|idm|means|default|seed-21|train|last|tasks)\b.*")
FILES = {name for name in FILES if not OF_NAMES.fullmatch(name)}
FOLDERS = (
    r"(results|downloads|specs|data|candidates|search|state|runs|eval|checkpoint|interventions"
    r"|exported|analyses|tables|figures|predictions|reference)"
)
PATH = re.compile(rf"(.*/)?{FOLDERS}/[^\s/]+(/.*)?")
SINGLE = {"eval", "checkpoint", "exported", "specs"}  # folders that no other word is
# (file, text): why it is there.
EXCEPTIONS = {
    ("commands/inputs.py", "model.safetensors"): "a checkpoint of Hugging Face",
    ("data/sources/fetch_model.py", "config.json"): "a checkpoint of Hugging Face",
    ("data/sources/fetch_model.py", "model.safetensors"): "a checkpoint of Hugging Face",
    ("data/sources/fetch_model.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("data/sources/wheels.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("data/stand_ins/corpora.py", "tokenizer.json"): "a download of that name",
    ("data/stand_ins/corpora.py", "bert/tokenizer.json"): "a download of that name",
    ("data/datasets/wikipedia_bookcorpus.py", "bert/tokenizer.json"): "a download of that name",
    ("data/datasets/cfq.py", "dataset.json"): "a file of the archive of CFQ",
    ("data/stand_ins/cfq.py", "cfq/dataset.json"): "a file of the archive of CFQ",
    ("models/causal_lm/gguf_model.py", "model.safetensors"): "a checkpoint of Hugging Face",
    ("models/causal_lm/gguf_model.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("models/causal_lm/model.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("models/hugging_face.py", "config.json"): "a checkpoint of Hugging Face",
    ("models/hugging_face.py", "model.safetensors"): "a checkpoint of Hugging Face",
    ("models/hugging_face.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("models/roberta_decoder/model.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("tasks/encoders.py", "model.safetensors"): "a checkpoint, also one of Hugging Face",
    ("tasks/encoders.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    ("tasks/masked_lm/kind.py", "model.safetensors"): "a checkpoint, also an exported one",
    ("tasks/prompt/training_setup.py", "config.json"): "a checkpoint of Hugging Face",
    ("tasks/prompt/training_setup.py", "tokenizer.json"): "a checkpoint of Hugging Face",
    (
        "tasks/question_answering/training_setup.py",
        "tokenizer.json",
    ): "a checkpoint of Hugging Face",
    (
        "tasks/sentence_prediction/training_setup.py",
        "tokenizer.json",
    ): "a checkpoint of Hugging Face",
    ("tasks/seq2seq/checkpoint.py", "config.json"): "inside a checkpoint",
    ("tasks/seq2seq/checkpoint.py", "model.safetensors"): "inside a checkpoint",
    ("tasks/seq2seq/checkpoint.py", "tokenizer.json"): "inside a checkpoint",
    ("tasks/seq2seq/checkpoint.py", "vocabulary.json"): "inside a checkpoint",
    ("training/state.py", "training.csv"): "inside a saved state",
    ("config/editor_schemas.py", "claims.json"): "a schema",
    ("config/editor_schemas.py", "config.json"): "a schema",
    ("config/editor_schemas.py", "data/datasets"): "a package of ours",
    (
        "workflow/rerun_reasons.py",
        "workflow_scripts/data/sources/sources.yaml",
    ): "a file of the package",
    ("data/data_spec.py", "workflow_scripts/data/datasets/cogs.py"): "a file of the package",
    ("commands/analyse.py", "results/<scale>"): "help",
    ("commands/table.py", "results/<scale>"): "help",
    ("commands/site.py", "index.html"): "the first page of the site",
}


def list_texts(module: Path) -> set[str]:
    """Return the texts of a module without docstrings; of an f-string, its parts."""
    tree = ast.parse(module.read_text())
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            docstrings.add(node.body[0].value)  # type: ignore[attr-defined]
    texts = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and node not in docstrings:
            texts.add(node.value)
    return texts


def names_a_result(text: str) -> bool:
    """Whether a text is a path of a result, or a part of one."""
    if " " in text or text.startswith(("http", ".cache/")):
        return False
    name = text.rpartition("/")[2]
    return name in FILES or text in SINGLE or bool(PATH.fullmatch(text))


@pytest.mark.parametrize(
    "text",
    ["run.json", "/record.json", "runs/*/*/*/*/*/scores.csv", "results/{scale}/data/x", "eval"],
)
def test_texts_that_name_a_result(text: str):
    assert names_a_result(text)


def test_no_other_module_names_the_files():
    package = ROOT / "workflow_scripts"
    found = set()
    for module in sorted(package.rglob("*.py")):
        name = module.relative_to(package).as_posix()
        if name == "common/result_folders.py":
            continue
        found |= {(name, text) for text in list_texts(module) if names_a_result(text)}
    new = found - EXCEPTIONS.keys()
    assert not new, f"take them from common/result_folders.py: {sorted(new)}"
    unused = EXCEPTIONS.keys() - found
    assert not unused, f"no longer exceptions: {sorted(unused)}"


# In a rule: a path in a command, or a quoted name.
TEXT = re.compile(r"""(?<=["' ])[^"'\s]*/[^"'\s]*|(?<=["'])[\w.]+(?=["'])""")


def test_no_rule_names_the_files():
    found = []
    for file in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]:
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            code = line.partition("#")[0]
            for text in TEXT.findall(code):
                is_log = "/logs/" in text  # a log has one place, its rule
                is_scale = re.fullmatch(r"results/\{wildcards\.scale:q\}", text)
                if names_a_result(text) and not is_log and not is_scale:
                    found.append(f"{file.name}:{number}: {text}")
    assert not found, found

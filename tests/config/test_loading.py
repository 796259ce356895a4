from pathlib import Path

import pytest

from tests.config.copies import ROOT, SEQ2SEQ, edit
from tests.config.filled import resolve_evaluation, resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.common.yaml_files import read_yaml
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"scael": "demo"}, "config.yaml: unknown key 'scael'; did you mean 'scale'?"),
        ({"data": {"miror": "x"}}, "unknown key 'data.miror'; did you mean 'mirror'?"),
        ({"device": "gpu"}, "key 'device' is 'gpu'; input should be 'auto', 'cpu', 'cuda' or 'mps'"),
        ({"seeds": [-1]}, "key 'seeds.0' is -1; input should be greater than or equal to 0"),
        ({"seeds": ["1"]}, "key 'seeds.0' is '1'"),
        ({"extra": 1}, "key 'extra' is 1; input should be a valid boolean"),
        ({"scale": "smal"}, "did you mean 'small'?"),
        ({"papers": ["sq_transfomer"]}, "did you mean 'sq_transformer'?"),
        ({"papers": []}, "key 'papers'"),
        ({"papers": "carma"}, "key 'papers' is 'carma'; input should be a valid list, as [carma]"),
        ({"seeds": 1}, "key 'seeds' is 1; input should be a valid list, as [1]"),
        ({"papers": ["carma", "carma"]}, "key 'papers' is ['carma', 'carma']; carma is listed twice"),
        ({"seeds": [3, 1, 3]}, "key 'seeds' is [3, 1, 3]; 3 is listed twice"),
    ],
)
def test_a_wrong_configuration_is_one_line(content: dict, message: str):
    with pytest.raises(UserError) as error:
        load_config(content, ROOT)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_shipped_files_are_valid_and_agree():
    config, catalogue = load_config(root=ROOT), load_catalogue(ROOT)
    for scale in catalogue.scales:
        for run in list_requested_runs(catalogue, load_config(config.model_dump() | {"scale": scale}, ROOT)):
            assert resolve_run(catalogue, run, scale)["seed"] == run.seed
            assert resolve_evaluation(catalogue, run, scale)["beam"] >= 1


HOSTILE_NAMES = ["../x", "a b", "a;id", "$(id)", "a\nb", "a\n", "-rf", ".x", "x" * 300, "é", "a/b", "`id`", "'", ""]


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("display", name) for name in HOSTILE_NAMES), ("variant", "a\nb")]
    + [(kind, "../x") for kind in ("task", "method", "scale", "analysis")],
)
def test_a_name_that_a_shell_or_a_path_would_read_otherwise_is_one_line(copy: Path, kind: str, name: str):
    file, keys = {
        "task": ("catalogue/tasks/cfq.yaml", ["cfq-mcd1"]),
        "method": (f"catalogue/{SEQ2SEQ}", ["transformer"]),
        "variant": (f"catalogue/{SEQ2SEQ}", ["transformer", "variants", "default"]),
        "scale": ("catalogue/scales.yaml", ["demo"]),
        "display": ("papers/carma/displays.yaml", ["displays", "table1"]),
        "analysis": ("papers/carma/displays.yaml", ["analyses", "item-sets"]),
    }[kind]

    def add(content):
        for key in keys[:-1]:
            content = content[key]
        content[name] = content[keys[-1]]

    edit(copy / file, add)
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert "\n" not in str(error.value) and str(error.value).startswith(f"{copy}/")


def test_an_unknown_source_is_one_line(copy: Path):
    edit(copy / "catalogue/tasks/cfq.yaml", lambda it: it["cfq-mcd1"].update(sources=["cfq/cqf.tar.gz"]))
    with pytest.raises(
        UserError, match=r"^\S*cfq.yaml:\d+: key 'cfq-mcd1.sources.0' .*did you mean 'cfq/cfq.tar.gz'\?$"
    ):
        load_catalogue(copy)


def test_an_unknown_key_of_a_variant_is_refused(copy: Path):
    edit(copy / "catalogue" / SEQ2SEQ, lambda it: it["transformer"]["variants"]["default"].update(titel="x"))
    with pytest.raises(UserError, match=r"seq2seq.yaml:\d+: unknown key '.*titel'; did you mean 'title'"):
        load_catalogue(copy)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("displays.yaml", lambda it: it["displays"]["table1"].update(titel="x"), "titel'; did you mean 'title'?"),
        ("displays.yaml", lambda it: it["displays"]["table1"]["rows"][3].update(methd="x"), "did you mean 'method'?"),
        (
            "displays.yaml",
            lambda it: it["displays"]["text-5.3"]["columns"][0].update(analysis="head"),
            "head-agreement",
        ),
        (
            "displays.yaml",
            lambda it: it["displays"]["table1"]["rows"][-1].update(method="transfomer"),
            "key 'displays.table1.method' names 'transfomer'; did you mean 'transformer'?",
        ),
        (
            "displays.yaml",
            lambda it: it["axes"]["scanned"]["JUMP"].update(task="scan-jmp-x2"),
            "key 'displays.table1.task' names 'scan-jmp-x2'; did you mean 'scan-jump-x2'?",
        ),
        (
            "displays.yaml",
            lambda it: it["axes"]["pair"]["Transformer"].update(variant="defalt"),
            "names 'defalt'; did you mean 'default'?",
        ),
        (
            "claims.yaml",
            lambda it: it["claims"][0].update(left="tabel1/a/b/c"),
            ".left' names 'tabel1'; did you mean 'table1'?",
        ),
        (
            "claims.yaml",
            lambda it: it["claims"][0].update(left="table1/SQ-Transformer/JUMPX/exact_match", unit="points"),
            "no cell 'table1/SQ-Transformer/JUMPX/exact_match' in displays.yaml; did you mean 'table1/SQ-Tr",
        ),
        (
            "claims.yaml",
            lambda it: it["claims"][0].update(relation="falls_with", left="table1/*/JUMPX/exact_match", unit="tau"),
            "no cell 'table1/*/JUMPX/exact_match' in displays.yaml",
        ),
        (
            "displays.yaml",
            lambda it: it["displays"]["table1"].update(baseline="Tranformer"),
            "`baseline` names 'Tranformer', which is none of its rows",
        ),
        (
            "displays.yaml",
            lambda it: it["displays"]["table1"].pop("cells"),
            "displays.table1: row 'LSTM-RNN' and column 'JUMP' name no metric",
        ),
        (
            "claims.yaml",
            lambda it: it["claims"][0].update(relation="more"),
            "relation' is 'more'; input should be 'greater'",
        ),
    ],
)
def test_a_wrong_display_or_claim_is_refused_before_any_job(copy: Path, file: str, change, message: str):
    edit(copy / "papers/sq_transformer" / file, change)
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert file in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("displays.yaml", None, "does not exist"),
        ("displays.yaml", "", "must contain"),
        ("displays.yaml", "analyses: {}", "key 'displays' is missing"),
        ("displays.yaml", "display: {}", "unknown key 'display'; did you mean 'displays'?"),
        ("displays.yaml", "displays: {table1: 3}", "key 'displays.table1' is 3; input should be a valid dictionary"),
        ("claims.yaml", "claim: better", "unknown key 'claim'; did you mean 'claims'?"),
        ("claims.yaml", "- better", "must contain"),
        ("experiments.yaml", "- task: cogs", "must contain"),
        ("experiments.yaml", "title: caf\xe9", "not UTF-8 text"),
    ],
)
def test_a_wrong_file_of_a_paper_is_one_line(copy: Path, file: str, content: str | None, message: str):
    path = copy / "papers/lrf" / file
    path.unlink() if content is None else path.write_text(content, encoding="latin-1")
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert str(error.value).startswith(str(path)) and message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("found", "instead", "message"),
    [
        ("table1,Transformer,JUMP,", "table1,Transforme,JUMP,", "no cell 'table1/Transforme/JUMP/exact_match'"),
        ("table1,Transformer,JUMP,", "tabel1,Transformer,JUMP,", "no display 'tabel1' in displays.yaml; did you mean"),
        ("40.04,", "4x.04,", "could not convert string to float: '4x.04'; value, std and n_seeds are numbers or empty"),
    ],
)
def test_a_published_number_without_a_cell_is_refused_before_any_job(copy: Path, found, instead, message):
    file = copy / "papers/sq_transformer/published.csv"
    assert found in file.read_text()
    file.write_text(file.read_text().replace(found, instead, 1))
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert str(error.value).startswith(str(file)) and message in str(error.value)


def test_a_paper_may_make_no_claims(copy: Path):
    (copy / "papers/lrf/claims.yaml").write_text("claims: []\n")
    (copy / "papers/lrf/analysis_plan.yaml").unlink()
    assert load_catalogue(copy).papers["lrf"].claims == []


def test_a_long_list_of_names_is_cut():
    names = [f"name{number:03}" for number in range(100)]
    assert suggest_name("x", names) == f"known: {', '.join(names[:40])} and 60 more"
    assert suggest_name("name09", names).startswith("did you mean 'name09")


def test_a_key_that_stands_twice_is_refused_with_its_line(copy: Path):
    """YAML would take the second. One that overrides what an alias brings along is no such key."""
    file = copy / "config.yaml"
    file.write_text(file.read_text() + "scale: small\n")
    line = len(file.read_text().splitlines())
    with pytest.raises(UserError, match=rf"config.yaml:{line}: not valid YAML \('scale' is listed twice; remove one\)"):
        load_config(root=copy)
    file.write_text("a: &all {b: 1, c: 2}\nd: {<<: *all, b: 3}\n")
    assert read_yaml(file)["d"] == {"b": 3, "c": 2}

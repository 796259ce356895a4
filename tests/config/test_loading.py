import re
import shutil
from pathlib import Path

import pytest

from tests.config.copies import ROOT, SEQ2SEQ, copy_project, edit, name_planned_seeds
from tests.config.filled import resolve_evaluation, resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.checker import find_problems
from workflow_scripts.config.loading import load_catalogue, load_config, read_catalogue
from workflow_scripts.config.overrides import merge_overrides
from workflow_scripts.config.requested import list_requested_runs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"scael": "demo"}, "config.yaml: unknown key 'scael'; did you mean 'scale'?"),
        (
            {"max_steps": 3},
            "config.yaml: unknown key 'max_steps'; settings of trainings are in catalogue/, a "
            "variant of your own: docs/adding.md#a-method; known: claims, data, device, ",
        ),
        ({"data": {"miror": "x"}}, "unknown key 'data.miror'; did you mean 'mirror'?"),
        (
            {"device": "gpu"},
            "key 'device' is 'gpu'; input should be 'auto', 'cpu', 'cuda' or 'mps'",
        ),
        ({"seeds": [-1]}, "key 'seeds.0' is -1; input should be greater than or equal to 0"),
        ({"seeds": ["1"]}, "key 'seeds.0' is '1'"),
        ({"extra": 1}, "key 'extra' is 1; input should be a valid boolean"),
        ({"scale": "smal"}, "did you mean 'small'?"),
        ({"papers": ["sq_transfomer"]}, "did you mean 'sq_transformer'?"),
        ({"papers": []}, "key 'papers'"),
        ({"papers": "carma"}, "key 'papers' is 'carma'; input should be a valid list, as [carma]"),
        ({"seeds": 1}, "key 'seeds' is 1; input should be a valid list, as [1]"),
        (
            {"papers": ["carma", "carma"]},
            "key 'papers' is ['carma', 'carma']; carma is listed twice",
        ),
        ({"seeds": [3, 1, 3]}, "key 'seeds' is [3, 1, 3]; 3 is listed twice"),
        (
            {"papers": ["lrf/table-cogs"]},
            "key 'papers' names 'lrf/table-cogs'; write lrf, the whole paper; --claim takes "
            "<paper>/<claim>",
        ),
        ({5: "x"}, "config.yaml: unknown key '5'; settings of trainings are in catalogue/"),
    ],
)
def test_a_wrong_configuration_is_one_line(content: dict, message: str):
    with pytest.raises(UserError) as error:
        load_config(content, ROOT)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_strange_key_hides_no_other_problem():
    with pytest.raises(UserError) as error:
        load_config({"max_steps": 3, "extra": 1}, ROOT)
    first, second = str(error.value).splitlines()
    assert first.startswith("config.yaml: unknown key 'max_steps'; ")
    assert second == "config.yaml: key 'extra' is 1; input should be a valid boolean"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("papers=[] papers=[carmaa]", "--papers: no paper 'carmaa'; did you mean 'carma'?"),
        (
            "papers=[]",
            "--papers names nothing; known: carma, cat, lrf, recompose, sq_transformer",
        ),
        (
            "papers=[] papers=[carma,carma]",
            "--papers: ['carma', 'carma']; carma is listed twice; remove one",
        ),
        (
            "papers=[] papers=[lrf/x]",
            "--papers: no paper 'lrf/x'; write lrf, the whole paper; --claim takes <paper>/<claim>",
        ),
        ("papers=[carmaa]", "--config papers: no paper 'carmaa'; did you mean 'carma'?"),
        (
            "papers=carma",
            "--config: key 'papers' is 'carma'; input should be a valid list, as [carma]",
        ),
        ("scale=[] scale=smal", "--scale: no scale 'smal'; did you mean 'small'?"),
        ("scale=[] scale=", "--scale names nothing; known: demo, full, small"),
        ("claims=[] claims=[lrff/a]", "--claim: no paper 'lrff'; did you mean 'lrf'?"),
        (
            "claims=[] claims=[nope]",
            "--claim: 'nope' names no paper; write <paper>/<claim>, such as lrf/lrf-over-transformer-cter-instance",
        ),
        (
            "claims=[] claims=[lrf-over-matched-addjump]",
            "--claim: 'lrf-over-matched-addjump' names no paper; did you mean 'lrf/lrf-over-matched-addjump'?",
        ),
        (
            "claims=[] claims=[lrf-over-matched-adjump,lrff/a]",
            "--claim: 'lrf-over-matched-adjump' names no paper; did you mean 'lrf/lrf-over-matched-addjump'?\n"
            "--claim: no paper 'lrff'; did you mean 'lrf'?",
        ),
        ("extra=1", "--config: key 'extra' is 1; input should be a valid boolean"),
        ("scal=small", "--config: unknown key 'scal'; did you mean 'scale'?"),
    ],
)
def test_a_wrong_value_of_a_call_names_the_option(words: str, message: str):
    overrides = words.split()
    with pytest.raises(UserError) as error:
        load_config(merge_overrides({}, overrides), ROOT, overrides)
    assert str(error.value) == message


def test_a_wrong_value_of_the_file_names_its_line_next_to_options(tmp_path):
    copy = copy_project(tmp_path)
    file = copy / "config.yaml"
    file.write_text(file.read_text().replace("scale: demo", "scale: dmo"))
    content = read_yaml_mapping(file)
    overrides = ["papers=[]", "papers=[lrf]"]
    line = file.read_text().splitlines().index("scale: dmo") + 1
    with pytest.raises(UserError) as error:
        load_config(merge_overrides(content, overrides), copy, overrides)
    assert str(error.value) == (f"{file}:{line}: key 'scale' names 'dmo'; did you mean 'demo'?")
    overrides += ["scale=[]", "scale=small"]
    assert load_config(merge_overrides(content, overrides), copy, overrides).scale == "small"


def test_the_shipped_files_are_valid_and_agree():
    config, catalogue = load_config(root=ROOT), load_catalogue(ROOT)
    for scale in catalogue.scales:
        for run in list_requested_runs(
            catalogue, load_config(config.model_dump() | {"scale": scale}, ROOT)
        ):
            assert resolve_run(catalogue, run, scale)["seed"] == run.seed
            assert resolve_evaluation(catalogue, run, scale)["splits"]


def test_files_of_an_operating_system_are_no_files_of_the_project(tmp_path, monkeypatch):
    copy = copy_project(tmp_path)
    expected = load_catalogue(copy)
    (copy / "papers/._lrf").mkdir()
    for name in (
        "catalogue/tasks/._scan.yaml",
        "catalogue/methods/._x.yaml",
        "papers/._lrf/experiments.yaml",
        "papers/lrf/plans/._x.yaml",
        "papers/lrf/plans/.#x.yaml",
    ):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes(b"\x00\x05\x16\x07\xff")
    read_catalogue.cache_clear()
    monkeypatch.chdir(copy)
    catalogue = load_catalogue(copy)
    assert catalogue.tasks == expected.tasks and catalogue.methods == expected.methods
    assert list(catalogue.papers) == list(expected.papers)
    assert list(catalogue.papers["lrf"].plans) == list(expected.papers["lrf"].plans)
    assert load_config({"papers": ["lrf"]}, copy).papers == ["lrf"]
    with pytest.raises(UserError) as error:
        load_config({"papers": ["._lrf"]}, copy)
    assert "._lrf" in str(error.value)
    assert find_problems(copy) == []


HOSTILE_NAMES = [
    "../x",
    "a b",
    "a;id",
    "$(id)",
    "a\nb",
    "a\n",
    "-rf",
    ".x",
    "x" * 300,
    "é",
    "a/b",
    "`id`",
    "'",
    "",
]


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("display", name) for name in HOSTILE_NAMES), ("variant", "a\nb")]
    + [(kind, "../x") for kind in ("task", "method", "scale", "analysis")],
)
def test_a_name_that_a_shell_or_a_path_would_read_otherwise_is_one_line(
    copy: Path, kind: str, name: str
):
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


def test_an_unknown_key_of_a_variant_is_refused(copy: Path):
    edit(
        copy / "catalogue" / SEQ2SEQ,
        lambda it: it["transformer"]["variants"]["default"].update(titel="x"),
    )
    with pytest.raises(
        UserError, match=r"seq2seq.yaml:\d+: unknown key '.*titel'; did you mean 'title'"
    ):
        load_catalogue(copy)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "displays.yaml",
            lambda it: it["displays"]["table1"]["rows"][-1].update(method="transfomer"),
            "key 'displays.table1.method': no method 'transfomer' in catalogue/methods/; "
            "did you mean 'transformer'?",
        ),
        (
            "claims.yaml",
            lambda it: it["claims"][0].update(
                relation="falls_with", left="table1/*/JUMPX/exact_match", unit="tau"
            ),
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
    ],
)
def test_a_wrong_display_or_claim_is_refused_before_any_job(
    copy: Path, file: str, change, message: str
):
    edit(copy / "papers/sq_transformer" / file, change)
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert file in str(error.value)
    assert message in str(error.value)


def test_each_display_without_a_metric_is_named(copy: Path):
    edit(
        copy / "papers/sq_transformer/displays.yaml",
        lambda it: [it["displays"][name].pop("cells") for name in ("table-protocol", "table1")],
    )
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    lacking = re.findall(r"displays\.([\w-]+): row .* name no (\w+)", str(error.value))
    assert sorted(lacking) == [
        (name, key) for name in ("table-protocol", "table1") for key in ("metric", "unit")
    ]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("displays.yaml", None, "does not exist"),
        ("displays.yaml", "", "must contain"),
        ("displays.yaml", "analyses: {}", "key 'displays' is missing"),
        ("displays.yaml", "display: {}", "unknown key 'display'; did you mean 'displays'?"),
        (
            "displays.yaml",
            "displays: {table1: 3}",
            "key 'displays.table1' is 3; input should be a valid dictionary",
        ),
        ("claims.yaml", "claim: better", "unknown key 'claim'; did you mean 'claims'?"),
        ("claims.yaml", "- better", "must contain"),
        ("experiments.yaml", "- task: cogs", "must contain"),
        ("experiments.yaml", "title: caf\xe9", "not UTF-8 text"),
    ],
)
def test_a_wrong_file_of_a_paper_is_one_line(
    copy: Path, file: str, content: str | None, message: str
):
    path = copy / "papers/lrf" / file
    path.unlink() if content is None else path.write_text(content, encoding="latin-1")
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert str(error.value).startswith(str(path)) and message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_paper_may_make_no_claims(copy: Path):
    (copy / "papers/lrf/claims.yaml").write_text("claims: []\n")
    (copy / "papers/lrf/analysis_plan.yaml").unlink()
    shutil.rmtree(copy / "papers/lrf/plans")
    edit(copy / "papers/lrf/experiments.yaml", lambda content: name_planned_seeds(content, [1]))
    assert load_catalogue(copy).papers["lrf"].claims == []


def test_a_long_list_of_names_is_cut():
    names = [f"name{number:03}" for number in range(100)]
    assert suggest_name("x", names) == f"known: {', '.join(names[:40])} and 60 more"
    assert suggest_name("name09", names).startswith("did you mean 'name09")

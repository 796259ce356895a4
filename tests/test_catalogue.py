import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import yaml

from workflow_scripts import schema
from workflow_scripts.catalogue import (
    _resolved,
    canonical_json,
    digest,
    load_catalogue,
    load_config,
    merged,
    parent,
    parse_run,
    precision_as_made,
    requested_runs,
    resolve_data,
    resolve_evaluation,
    resolve_run,
    worst_protocol,
)
from workflow_scripts.errors import UserError
from workflow_scripts.models.encoder_settings import CatSettings, EncoderSettings
from workflow_scripts.models.settings import Seq2SeqSettings, SQTransformerSettings
from workflow_scripts.objectives.masked_settings import CompositionalSettings, MaskedSettings
from workflow_scripts.objectives.settings import CrossEntropySettings, StructuralQuantisationSettings

MODELS = {"seq2seq": Seq2SeqSettings, "sq_transformer": SQTransformerSettings}
MODELS |= {"encoder": EncoderSettings, "cat": CatSettings}
OBJECTIVES = {"cross_entropy": CrossEntropySettings, "structural_quantisation": StructuralQuantisationSettings}
OBJECTIVES |= {"masked_language_modelling": MaskedSettings, "compositional_pretraining": CompositionalSettings}
ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of everything that a user can edit."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    return tmp_path


def edit(file: Path, change) -> None:
    content = yaml.safe_load(file.read_text())
    change(content)
    file.write_text(yaml.safe_dump(content, sort_keys=False))


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
        for run in requested_runs(catalogue, load_config(config.model_dump() | {"scale": scale}, ROOT)):
            assert resolve_run(catalogue, run, scale)["seed"] == run.seed
            assert resolve_evaluation(catalogue, run, scale)["beam"] >= 1


def test_json_schemas_are_in_step_with_the_models():
    for name, expected in schema.json_schemas().items():
        written = json.loads((ROOT / "catalogue/schemas" / name).read_text())
        assert written == json.loads(json.dumps(expected)), f"{name} is old; run python -m workflow_scripts.schema"


@pytest.mark.parametrize("section", ["model", "objective", "training", "evaluation"])
def test_an_unknown_setting_is_refused_with_file_key_and_nearest(copy: Path, section: str):
    known = {"model": "layers", "objective": "label_smoothing", "training": "max_steps", "evaluation": "beam"}[section]
    wrong = known[:-1] + "x"
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["small"]["settings"].setdefault(section, {}).update({wrong: 1}),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert f"catalogue/scales.yaml: unknown key 'small.settings.{section}.{wrong}'; did you mean '{known}'?" in str(
        error.value
    )


def test_an_unknown_key_of_a_variant_is_refused(copy: Path):
    edit(
        copy / "catalogue/methods.yaml", lambda methods: methods["transformer"]["variants"]["default"].update(titel="x")
    )
    with pytest.raises(UserError, match=r"methods.yaml: unknown key '.*titel'; did you mean 'title'"):
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
        ("claims.yaml", lambda it: it[0].update(relation="more"), "relation' is 'more'; input should be 'greater'"),
    ],
)
def test_a_wrong_display_or_claim_is_refused_before_any_job(copy: Path, file: str, change, message: str):
    edit(copy / "papers/sq_transformer" / file, change)
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert file in str(error.value)
    assert message in str(error.value)


def test_a_value_out_of_range_is_refused(copy: Path):
    edit(copy / "catalogue/scales.yaml", lambda scales: scales["small"]["settings"]["training"].update(max_steps=-1))
    with pytest.raises(UserError, match=r"training\.max_steps' is -1; input should be greater than or equal to 0"):
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("model", {"width": "thirty"}, "model: width is 'thirty'; it must be of type int"),
        ("model", {"heads": -3}, "heads is -3; it must be at least 1"),
        ("model", {"positions": "rotary"}, "choose one of relative, sinusoidal"),
        ("objective", {"label_smoothing": 2.0}, "label_smoothing is 2.0; it must lie in [0, 1)"),
        ("model", {"module": "workflow_scripts.models.seq2sq"}, "did you mean 'workflow_scripts.models.seq2seq'?"),
    ],
)
def test_a_wrong_value_of_a_model_is_refused_before_any_job(copy: Path, section: str, change: dict, message: str):
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["small"]["settings"].setdefault(section, {}).update(change),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("section", "key", "value", "place"),
    [
        ("training", "learning_rate", -1, "catalogue/methods.yaml sq-transformer"),
        ("model", "dropout", 1.5, "catalogue/methods.yaml sq-transformer"),
        ("model", "source_codes", "six", "catalogue/methods.yaml sq-transformer.variants.sal"),
        ("evaluation", "beam", 0, "catalogue/tasks.yaml scan-jump-x2"),
    ],
)
def test_a_wrong_value_is_named_with_the_file_and_entry_that_set_it(copy: Path, section, key, value, place):
    file, entry = place.split(" ")

    def change(content: dict) -> None:
        for name in entry.split("."):
            content = content[name]
        content.setdefault("settings", {}).setdefault(section, {})[key] = value

    edit(copy / file, change)
    catalogue, run = load_catalogue(copy), parse_run(load_catalogue(copy), "scan-jump-x2/sq-transformer/sal/seed-1")
    with pytest.raises(UserError, match=rf"{key}.* is .*{value}.* \({place}\)$"):
        resolve_run(catalogue, run, "paper")
        resolve_evaluation(catalogue, run, "paper")


def test_an_unknown_scale_is_refused_with_the_nearest():
    with pytest.raises(UserError, match=r"no scale 'smal' in catalogue/scales\.yaml; did you mean 'small'"):
        resolve_run(load_catalogue(ROOT), "cogs/transformer/default/seed-1", "smal")


def test_a_key_that_stands_twice_is_refused_with_its_line(copy: Path):
    """YAML would take the second. One that overrides what an alias brings along is no such key."""
    file = copy / "config.yaml"
    file.write_text(file.read_text() + "scale: small\n")
    line = len(file.read_text().splitlines())
    with pytest.raises(UserError, match=rf"config.yaml:{line}: not valid YAML \('scale' stands there twice\)"):
        load_config(root=copy)
    file.write_text("a: &all {b: 1, c: 2}\nd: {<<: *all, b: 3}\n")
    assert schema.read_yaml(file)["d"] == {"b": 3, "c": 2}


def test_wrong_options_of_data_are_refused_before_any_job(copy: Path):
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["demo"]["data"]["scan-jump"]["options"].update(limit={"train": "lots"}),
    )
    with pytest.raises(UserError, match=r"options of task scan-jump at scale demo: key 'limit\.train' is 'lots'"):
        resolve_data(load_catalogue(copy), "scan-jump", "demo")


def test_later_layers_win_and_each_value_knows_where_it_comes_from():
    catalogue = load_catalogue(ROOT)
    sections = merged(catalogue, parse_run(catalogue, "scan-jump-x2/transformer/sinusoidal/seed-1"), "small")
    assert sections["model"]["positions"] == ("sinusoidal", "catalogue/methods.yaml transformer.variants.sinusoidal")
    assert sections["model"]["width"][1] == "catalogue/scales.yaml small"
    assert sections["model"]["max_relative_position"][1] == "catalogue/methods.yaml transformer"
    assert sections["evaluation"]["beam"][1] == "catalogue/tasks.yaml scan-jump-x2"


def test_two_papers_may_share_a_run_but_not_disagree_about_it(copy: Path):
    shutil.copytree(copy / "papers/sq_transformer", copy / "papers/other")
    config = load_config({"papers": ["sq_transformer", "other"], "scale": "small"}, copy)
    shared = requested_runs(load_catalogue(copy), config)
    assert set(map(tuple, shared.values())) == {("sq_transformer", "other")}

    def ask_differently(requests: dict) -> None:
        requests["requests"][0]["settings"] = {"training": {"learning_rate": 0.1}}

    edit(copy / "papers/other/requests.yaml", ask_differently)
    load_catalogue.cache_clear()
    _resolved.cache_clear()
    with pytest.raises(UserError, match="ask for different settings of scan-jump-x2/transformer/default"):
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-11", "small")


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("scan-jump-x2/transformer/default/11", "is not of the form"),
        ("scan-jmp-x2/transformer/default/seed-1", "did you mean 'scan-jump-x2'?"),
        ("scan-jump-x2/transfomer/default/seed-1", "did you mean 'transformer'?"),
        ("scan-jump-x2/transformer/defualt/seed-1", "did you mean 'default'?"),
    ],
)
def test_an_unknown_run_is_refused_with_the_nearest(run: str, message: str):
    with pytest.raises(UserError) as error:
        parse_run(load_catalogue(ROOT), run)
    assert message in str(error.value)


def test_seeds_of_the_configuration_replace_those_of_the_requests():
    catalogue = load_catalogue(ROOT)
    runs = requested_runs(catalogue, load_config({"scale": "small", "seeds": [7]}, ROOT))
    assert {run.seed for run in runs} == {7}


def test_extra_runs_come_only_when_asked_for():
    catalogue = load_catalogue(ROOT)
    few = requested_runs(catalogue, load_config({"scale": "small"}, ROOT))
    many = requested_runs(catalogue, load_config({"scale": "small", "extra": True}, ROOT))
    assert set(few) < set(many)
    assert {run.task for run in few} == {"scan-jump-x2", "scan-around-right", "cogs", "cognition"}


def test_the_worst_protocol_wins():
    assert worst_protocol("paper", "reduced") == "reduced"
    assert worst_protocol("stand_in", "paper") == "stand_in"
    catalogue = load_catalogue(ROOT)
    assert resolve_run(catalogue, "cogs/transformer/default/seed-1", "demo")["protocol"] == "stand_in"
    assert resolve_run(catalogue, "cogs/transformer/default/seed-1", "small")["protocol"] == "reduced"
    assert resolve_run(catalogue, "cogs/transformer/default/seed-1", "paper")["protocol"] == "paper"


def test_the_demo_needs_no_source_file():
    catalogue = load_catalogue(ROOT)
    runs = requested_runs(catalogue, load_config({"scale": "demo"}, ROOT))
    assert len(runs) <= 15
    assert not any(resolve_data(catalogue, run.task, "demo")["sources"] for run in runs)


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical_json({"b": 1, "a": {"d": 2, "c": 3}}) == '{"a":{"c":3,"d":2},"b":1}'


@pytest.mark.parametrize("method", ["transformer", "sq-transformer", "bert", "cat"])
def test_a_method_names_every_setting_of_its_modules_with_the_defaults(method: str):
    settings = load_catalogue(ROOT).methods[method].settings
    for section, classes in ((settings.model, MODELS), (settings.objective, OBJECTIVES)):
        defaults = dataclasses.asdict(classes[section["module"].rsplit(".", 1)[1]]())
        assert {key: value for key, value in section.items() if key != "module"} == defaults


def test_a_layer_that_names_another_module_begins_its_section_anew(copy: Path):
    """And a later one may set its keys alone."""
    other = {"module": "workflow_scripts.objectives.cross_entropy", "label_smoothing": 0.1}

    def change(methods: dict) -> None:
        pretrain = methods["cat"]["variants"]["pretrain"]
        pretrain["settings"] = {"objective": other}
        pretrain["by_task"] = {"pairs-wordpiece": {"objective": {"label_smoothing": 0.2}}}

    edit(copy / "catalogue/methods.yaml", change)
    run = parse_run(load_catalogue(copy), "pairs-wordpiece/cat/pretrain/seed-1")
    found = {key: value for key, (value, _) in merged(load_catalogue(copy), run, "small")["objective"].items()}
    assert found == {**other, "label_smoothing": 0.2}


def test_a_run_comes_behind_the_one_that_it_starts_from():
    catalogue = load_catalogue(ROOT)
    runs = list(requested_runs(catalogue, load_config({"scale": "small", "papers": ["carma"]}, ROOT)))
    for run in runs:
        before = parent(catalogue, run, "small")
        assert (before is None) == (run.variant == "pretrain")
        assert before is None or runs.index(before) < runs.index(run)
    spec = resolve_run(catalogue, "idm/gpt2-small/ft/seed-21", "small")
    pretrained = resolve_run(catalogue, "text-bpe-4k/gpt2-small/pretrain/seed-1", "small")
    assert spec["init"] == {"run": "text-bpe-4k/gpt2-small/pretrain/seed-1", "spec": digest(pretrained)}


def test_at_paper_scale_the_models_are_pinned_commits_of_the_hub():
    spec = resolve_run(load_catalogue(ROOT), "idm/gpt2-small/ft/seed-42", "paper")
    assert spec["init"]["hub"] == "openai-community/gpt2" and len(spec["init"]["revision"]) == 40


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ({"hub": "openai-community/gpt2", "revision": None}, "init.revision must name its commit"),
        ({"seed": None}, "init.variant and init.seed must name the run"),
        ({"variant": "pretrained"}, "did you mean 'pretrain'?"),
        ({"tusk": "sst"}, "did you mean 'task'?"),
        ({"task": "idm", "variant": "ft"}, "init names the run itself"),
    ],
)
def test_a_wrong_origin_is_refused(copy: Path, init: dict, message: str):
    edit(
        copy / "catalogue/methods.yaml",
        lambda methods: methods["gpt2-small"]["variants"]["ft"]["settings"].update(init=init),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "idm/gpt2-small/ft/seed-1", "small")
    assert message in str(error.value)


def test_a_method_runs_on_the_kinds_of_tasks_that_it_is_for():
    with pytest.raises(UserError, match="scan-jump is of the kind seq2seq, and gpt2-small is for prompt, text"):
        resolve_run(load_catalogue(ROOT), "scan-jump/gpt2-small/ft/seed-1", "small")


def test_one_gpu_is_no_setting_and_several_are(copy: Path):
    """A run that names the default is the run that it was."""
    run = "scan-jump-x2/transformer/default/seed-1"
    before = resolve_run(load_catalogue(copy), run, "demo")
    for gpus, same in ((1, True), (2, False)):
        edit(
            copy / "catalogue/scales.yaml",
            lambda scales, gpus=gpus: scales["demo"]["settings"]["training"].update(gpus=gpus),
        )
        load_catalogue.cache_clear()
        _resolved.cache_clear()
        found = resolve_run(load_catalogue(copy), run, "demo")
        assert (digest(found) == digest(before)) == same
    assert found["training"].pop("gpus") == 2 and found == before


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("scan-jump-x2/sq-transformer/sal/seed-1", "model workflow_scripts.models.sq_transformer: its codes follow"),
        ("idm/gpt2-small/official-spans/seed-1", "objective workflow_scripts.objectives.carma: spans is batch"),
    ],
)
def test_gpus_that_cannot_share_a_batch_are_refused(copy: Path, run: str, why: str):
    edit(copy / "catalogue/scales.yaml", lambda scales: scales["demo"]["settings"]["training"].update(gpus=2))
    with pytest.raises(UserError, match=r"training\.gpus is 2, but no batch can be divided with") as error:
        resolve_run(load_catalogue(copy), run, "demo")
    assert why in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "method", ["gpt2-small", "gpt2-large", "gemma", "llama-small", "llama-large", "qwen-small", "qwen-large"]
)
def test_models_of_the_hub_are_trained_in_bf16_unless_the_config_says_otherwise(method):
    catalogue = load_catalogue(ROOT)
    for run in (f"{task}/{method}/{variant}/seed-42" for task in ("idm", "sst") for variant in ("ft", "carma")):
        found = {
            (scale, wanted): resolve_run(catalogue, run, scale, wanted)["training"]["precision"]
            for scale in ("demo", "small", "paper")
            for wanted in ("auto", "fp32", "bf16")
        }
        assert [found[scale, "auto"] for scale in ("demo", "small", "paper")] == ["fp32", "fp32", "bf16"]
        assert all(precision == wanted for (_, wanted), precision in found.items() if wanted != "auto")
        assert resolve_run(catalogue, run, "small") == resolve_run(catalogue, run, "small", "fp32")
        made = [precision_as_made(catalogue, run, "paper", precision) for precision in ("bf16", "fp32")]
        assert made == ["auto", "fp32"]


def test_what_is_not_of_the_hub_stays_fp32_at_paper_scale():
    catalogue, config = load_catalogue(ROOT), load_config(root=ROOT)
    assert config.precision == "auto"
    asked = requested_runs(catalogue, config.model_copy(update={"scale": "paper", "papers": ["sq_transformer", "lrf"]}))
    assert {resolve_run(catalogue, run, "paper")["training"]["precision"] for run in asked} == {"fp32"}

from pathlib import Path

import pytest

from tests.config.as_json import resolve_data
from tests.config.copies import CAUSAL, ROOT, edit
from tests.config.filled import resolve_evaluation, resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config import specs
from workflow_scripts.config.layers import drop_places
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.specs import merge_data
from workflow_scripts.tasks.packages import NAMED, find_settings_class, load_kind_settings


def test_the_worst_protocol_of_data_and_scale_is_the_runs():
    catalogue = load_catalogue(ROOT)
    assert (
        resolve_run(catalogue, "cogs/transformer/default/seed-1", "demo")["protocol"] == "stand_in"
    )
    assert (
        resolve_run(catalogue, "cogs/transformer/default/seed-1", "small")["protocol"] == "reduced"
    )
    assert resolve_run(catalogue, "cogs/transformer/default/seed-1", "full")["protocol"] == "paper"


def test_a_method_that_is_not_the_papers_says_so_also_for_given_weights():
    catalogue = load_catalogue(ROOT)
    expected = {
        "cognition/lrf/default/seed-1": "paper",
        "cognition/sq-transformer/srl/seed-1": "paper",
        "cfq-mcd1/lrf/default/seed-1": "reduced",
        "cfq-mcd1/roberta/plain/seed-1": "paper",
        "bird/roberta-first-4/ft@paws/seed-1": "paper",
        "bird/distilbert-style/ft@paws/seed-1": "reduced",
    }
    for run, protocol in expected.items():
        assert resolve_run(catalogue, run, "full")["protocol"] == protocol, run


def test_at_paper_scale_the_models_are_pinned_commits_of_the_hub():
    spec = resolve_run(load_catalogue(ROOT), "idm/gpt2-small/ft/seed-42", "full")
    assert spec["init"]["hub"] == "openai-community/gpt2" and len(spec["init"]["revision"]) == 40


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ({"hub": "openai-community/gpt2", "revision": None}, "init.revision must name its commit"),
        ({"seed": None}, "init.variant and init.seed must name the run"),
        ({"variant": "pretrained"}, "did you mean 'pretrain'?"),
        ({"tusk": "sst"}, "did you mean 'task'?"),
        (
            {"task": "idm", "variant": "ft"},
            "init goes in a circle: idm/gpt2-small/ft, which starts from idm/gpt2-small/ft; name another run",
        ),
    ],
)
def test_a_wrong_origin_is_refused(copy: Path, init: dict, message: str):
    edit(
        copy / "catalogue" / CAUSAL,
        lambda methods: methods["gpt2-small"]["variants"]["ft"].update(init=init),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "idm/gpt2-small/ft/seed-1", "small")
    assert message in str(error.value)


def test_runs_that_start_from_each_other_are_refused(copy: Path):
    def go_in_a_circle(methods: dict) -> None:
        origins = {"ft": "carma", "carma": "pretrain", "pretrain": "carma"}
        for variant, other in origins.items():
            init = {"task": "idm", "variant": other, "seed": 1}
            methods["gpt2-small"]["variants"][variant].update(init=init)

    edit(copy / "catalogue" / CAUSAL, go_in_a_circle)
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "idm/gpt2-small/ft/seed-1", "small")
    chain = (
        "idm/gpt2-small/ft",
        "idm/gpt2-small/carma",
        "idm/gpt2-small/pretrain",
        "idm/gpt2-small/carma",
    )
    assert f"init goes in a circle: {', which starts from '.join(chain)}; name another run" in str(
        error.value
    )


def test_a_method_runs_on_the_kinds_of_tasks_that_it_is_for():
    with pytest.raises(
        UserError,
        match="scan-jump is of the kind seq2seq, and gpt2-small is for prompt, language_modelling",
    ):
        resolve_run(load_catalogue(ROOT), "scan-jump/gpt2-small/ft/seed-1", "small")


def test_no_encoder_is_fine_tuned_on_the_split_that_scores_it():
    catalogue, found = load_catalogue(ROOT), 0
    names = [
        name
        for name, task in catalogue.tasks.items()
        if task.kind in ("sentence_prediction", "question_answering")
    ]
    for name in names:
        for scale in catalogue.scales:
            training = resolve_run(catalogue, f"{name}/bert/ft/seed-1", scale)["training"]
            splits = resolve_evaluation(catalogue, Run(name, "bert", "ft", 1), scale)["splits"]
            assert training["validation"]["split"] not in splits or training["max_steps"] == 0, (
                name,
                scale,
            )
            found += training["max_steps"] > 0
    assert found > 50


def test_weights_on_glue_are_chosen_by_the_metric_of_the_table():
    """But of STSB by Pearson's correlation, by which its committed scores were chosen."""
    catalogue = load_catalogue(ROOT)
    shown = {}
    for cell in catalogue.papers["cat"].displays["table4"].cells:
        if cell.analysis is None:
            shown.setdefault(cell.task, set()).add(cell.metric)
    found = {}
    for task in shown:
        training = resolve_run(catalogue, f"{task}/bert/ft/seed-1", "full")["training"]
        assert training["validation"]["split"] == "valid"
        found[task] = {training["validation"]["metric"]}
    assert found == shown | {"stsb": {"pearson"}}
    assert found["glue-cola"] == {"matthews"}
    assert found["glue-mrpc"] == found["glue-qqp"] == {"f1"}
    assert len(found) == 8


def test_cats_paper_scale_is_searched_on_a_seed_that_no_result_has():
    catalogue = load_catalogue(ROOT)
    runs = list_requested_runs(catalogue, load_config({"papers": ["cat"], "scale": "full"}))
    specs = [(run, resolve_run(catalogue, run, "full")) for run in runs]
    assert sum("search" in spec for _, spec in specs) > 300
    for run, spec in specs:
        if search := spec.get("search"):
            assert search["seed"] != run.seed, run
            assert search["learning_rate"] == [1e-5, 2e-5, 3e-5, 4e-5, 5e-5], run
            assert search["batch_sentences"] == [256, 128, 64, 32] and search["epochs"] == 4, run
            # Batches that were cut by their tokens would be fewer passes in as many steps.
            assert spec["training"]["batch_tokens"] >= 256 * spec["problem"]["longest"], run


@pytest.mark.parametrize(
    "method",
    ["gpt2-small", "gpt2-large", "gemma", "llama-small", "llama-large", "qwen-small", "qwen-large"],
)
def test_models_of_the_hub_are_trained_in_bf16_unless_the_config_says_otherwise(method):
    catalogue = load_catalogue(ROOT)
    for run in (
        f"{task}/{method}/{variant}/seed-42"
        for task in ("idm", "sst")
        for variant in ("ft", "carma")
    ):
        found = {
            (scale, wanted): resolve_run(catalogue, run, scale, wanted)["training"]["precision"]
            for scale in ("demo", "small", "full")
            for wanted in ("auto", "fp32", "bf16")
        }
        assert [found[scale, "auto"] for scale in ("demo", "small", "full")] == [
            "fp32",
            "fp32",
            "bf16",
        ]
        assert all(
            precision == wanted for (_, wanted), precision in found.items() if wanted != "auto"
        )
        assert resolve_run(catalogue, run, "small") == resolve_run(catalogue, run, "small", "fp32")


def test_what_is_not_of_the_hub_stays_fp32_at_paper_scale():
    catalogue, config = load_catalogue(ROOT), load_config(root=ROOT)
    assert config.precision == "auto"
    asked = list_requested_runs(
        catalogue, config.model_copy(update={"scale": "full", "papers": ["sq_transformer", "lrf"]})
    )
    assert {resolve_run(catalogue, run, "full")["training"]["precision"] for run in asked} == {
        "fp32"
    }


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_a_spec_leaves_out_what_has_its_default_so_that_a_new_setting_changes_no_digest(scale):
    catalogue = load_catalogue(ROOT)
    runs = {
        run.variant_key: run
        for run in list_requested_runs(catalogue, load_config({"scale": scale, "extra": True}))
    }
    for run in runs.values():
        spec = specs.resolve_run(catalogue, run, scale).to_json()
        kind = load_kind_settings(spec["kind"])
        sections = {"training": kind.training} if run.weights is None else {}
        sections["problem"] = kind.problem
        for section, group in NAMED.items():
            sections[section] = find_settings_class(group, spec[section].get("name"))
        for section, described in sections.items():
            fields = described.model_fields if described else {}
            same = [
                key
                for key, value in spec[section].items()
                if key in fields and value == fields[key].default
            ]
            assert not same, (run, section)


@pytest.mark.parametrize(
    ("scale", "change", "said"),
    [
        (
            "demo",
            lambda it: it["scan-jump"]["when"][0]["options"].update(limit={"train": "lots"}),
            r"scan-jump\.when\.0: .*key 'limit\.train' is 'lots'",
        ),
        (
            "small",
            lambda it: it["scan-jump"]["options"].update(atomic_copies="x"),
            r"scan-jump: .*key 'atomic_copies' is 'x'",
        ),
    ],
)
def test_wrong_options_of_data_are_refused_before_any_job(
    copy: Path, scale: str, change, said: str
):
    edit(copy / "catalogue/tasks/scan.yaml", change)
    with pytest.raises(UserError, match=rf"^catalogue/tasks/scan.yaml:\d+: {said}"):
        resolve_data(load_catalogue(copy), "scan-jump", scale)


def test_each_key_of_the_data_has_the_entry_that_sets_it():
    catalogue = load_catalogue(ROOT)
    demo, small = (merge_data(catalogue, "cogs", scale) for scale in ("demo", "small"))
    assert str(demo[0]["sources"][1]) == str(demo[0]["protocol"][1])
    assert str(demo[0]["sources"][1]).endswith("cogs.when.0")
    assert str(small[0]["sources"][1]).startswith("catalogue/tasks/cogs.yaml:")
    for scale, (data, options) in (("demo", demo), ("small", small)):
        found = {"task": "cogs", **drop_places(data), "options": drop_places(options)}
        assert found == resolve_data(catalogue, "cogs", scale)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            "cosg",
            "task cogs: `prepare` is .*, but there is no module workflow_scripts.data.datasets.cosg",
        ),
        ("contamination", "module workflow_scripts.data.datasets.contamination has no `Options`"),
    ],
)
def test_a_module_that_prepares_nothing_is_named(copy: Path, module: str, message: str):
    edit(copy / "catalogue/tasks/cogs.yaml", lambda tasks: tasks["cogs"].update(prepare=module))
    with pytest.raises(UserError, match=message):
        resolve_data(load_catalogue(copy), "cogs", "demo")


def test_the_demo_needs_no_source_file():
    catalogue = load_catalogue(ROOT)
    runs = list_requested_runs(catalogue, load_config({"scale": "demo"}, ROOT))
    assert len(runs) <= 15
    assert not any(resolve_data(catalogue, run.task, "demo")["sources"] for run in runs)


def test_ancestors_are_all_runs_that_weights_come_from():
    catalogue = load_catalogue(ROOT)
    scored = Run("bird", "cat", "comp@paws", 101)
    fine_tuned = Run("paws", "cat", "comp", 101)
    pretrained = Run("pairs-wordpiece", "cat", "pretrain", 101)
    assert specs.list_ancestors(catalogue, [scored], "small") == [fine_tuned, pretrained]
    assert specs.list_ancestors(catalogue, [scored, fine_tuned], "small") == [pretrained]
    assert specs.list_ancestors(catalogue, [pretrained], "small") == []

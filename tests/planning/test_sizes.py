"""Estimates of sizes and times: they grow with what they are made of, and bound what was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.catalogue.loading import load_catalogue, load_config
from workflow_scripts.catalogue.requested import requested_runs
from workflow_scripts.catalogue.run_specs import resolve_run
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.models import seq2seq
from workflow_scripts.models.settings import Seq2SeqSettings
from workflow_scripts.planning import resources, sizes
from workflow_scripts.planning.memory import over
from workflow_scripts.planning.step_times import read_step_times

MEASURED = [row for row in read_step_times() if row["device"] == "cpu" and float(row["seconds_per_step"])]
count = st.integers(1, 10**5)


def grows(function, given: dict, more: dict) -> None:
    """Each argument alone, raised, does not make the value smaller."""
    for name, value in more.items():
        assert function(**given | {name: given[name] + value}) >= function(**given), name


step = st.fixed_dictionaries(dict.fromkeys(("parameters", "layers", "batch_tokens"), count))
score = st.fixed_dictionaries(dict.fromkeys(("parameters", "layers", "tokens", "forwards"), count))
model = st.fixed_dictionaries({name: st.integers(1, 50) for name in ("layers", "width", "feed_forward", "vocabulary")})


@given(step, step, st.sampled_from(["cpu", "cuda"]))
def test_more_parameters_layers_and_tokens_take_no_less_time_to_train(given, more, device):
    grows(lambda **a: sizes.step_seconds(**a, device=device, threads=2), given, more)


@given(score, score, st.sampled_from(["cpu", "cuda"]))
def test_nor_to_score(given, more, device):
    grows(lambda **a: sizes.scoring_seconds(**a, device=device, threads=2), given, more)


@given(model, model)
def test_larger_settings_have_no_fewer_parameters(given, more):
    def parameters(layers, width, feed_forward, vocabulary):
        settings = Seq2SeqSettings(layers=layers, heads=1, width=width, feed_forward=feed_forward)
        return sizes.seq2seq_parameters(settings, vocabulary)

    grows(parameters, given, more)


@pytest.mark.parametrize("gated", [False, True])
def test_parameters_are_those_of_the_model_but_for_its_small_ones(gated):
    settings = {"layers": 3, "heads": 4, "width": 64, "feed_forward": 96, "gated": gated}
    built = seq2seq.build(settings, 100, 100)
    found = sum(parameter.numel() for parameter in built.parameters())
    # What it leaves out: biases, norms, and the tables of distances.
    assert 0.9 * found < sizes.seq2seq_parameters(Seq2SeqSettings(**settings), 100) < found


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: "{scale}-{task}-{method}-{variant}".format(**row))
def test_they_bound_what_was_measured(row):
    """Not by more than 20 times at the scale of real data, or 110 where most sentences are far from as long as they may
    be."""
    run = Run(row["task"], row["method"], row["variant"], seed=0)
    assert 4.02 * sizes.model_parameters(run, row["scale"]) >= int(row["checkpoint_bytes"]) - 100_000
    seconds = sizes.run_step_seconds(run, row["scale"], "cpu") / float(row["seconds_per_step"])
    short = resolve_run(load_catalogue(), run, row["scale"])["kind"] == "sentence"
    assert seconds >= 1 and (row["scale"] == "demo" or seconds < (110 if short else 20))


def test_of_each_run_of_the_papers_something_is_known_and_large_data_ask_for_more():
    catalogue = load_catalogue()
    runs = set(requested_runs(catalogue, load_config({"scale": "paper", "papers": ["sq_transformer", "carma", "lrf"]})))
    asked = {run: resources.training(run, "paper", "cuda") for run in runs}
    assert len(set(asked.values())) > 20, "estimates differ"
    assert {found.runtime for found in asked.values()} <= set(range(30, resources.LONGEST + 1, 30))
    small, large = (Run(task, "transformer", "default", 1) for task in ("wmt17-en-de", "wmt14-en-fr"))
    assert asked[large].mem_mb > asked[small].mem_mb > asked[Run("cogs", "transformer", "default", 1)].mem_mb
    assert resources.preparation("wmt14-en-fr", "paper").runtime > resources.preparation("wmt17-en-de", "paper").runtime
    assert resources.preparation("wmt14-en-fr", "paper", attempt=2).mem_mb == 64_000
    assert sizes.data_bytes("wmt14-en-fr", "paper") == 40e9 and sizes.data_bytes("wmt14-en-fr", "demo") == 0


def test_a_search_asks_for_the_time_of_all_its_pairs_up_to_what_a_job_may_have():
    run = Run("glue-rte", "bert", "ft", 1)
    one, every = (function(run, "paper", "cuda") for function in (resources.training, resources.searching))
    assert every.runtime == min(20 * one.runtime, resources.LONGEST) > one.runtime
    assert (every.mem_mb, every.gpu) == (one.mem_mb, 1)


def test_no_memory_is_asked_for_data_that_are_mapped_into_it():
    assert sizes.data_bytes("wikipedia-bookcorpus", "paper") > 100e9
    assert sizes.held_bytes("wikipedia-bookcorpus", "paper") == 0
    asked = resources.training(Run("wikipedia-bookcorpus", "bert", "pretrain", 1), "paper", "cuda")
    assert asked.mem_mb < 10_000
    assert resources.preparation("wikipedia-bookcorpus", "paper").mem_mb == 12_000
    assert resources.preparation("wikipedia-bookcorpus", "paper").runtime == resources.LONGEST


def test_models_over_the_gpus_memory_are_named_in_one_line():
    runs = [Run("idm", name, "carma", seed=42) for name in ("llama-large", "gpt2-small")]
    config = load_config({"scale": "paper", "papers": ["carma"]})
    assert over(load_catalogue(), config, runs) == ""
    config = load_config({"scale": "paper", "papers": ["carma"], "gpu_memory": 40})
    assert over(load_catalogue(), config, runs) == "more than the 40 GB of config.yaml's gpu_memory: idm/llama-large"

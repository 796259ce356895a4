"""The scale `full` has the settings of SQ-Transformer's official code, but for what
papers/sq_transformer/NOTES.md decides otherwise, those of CoGnition's authors and of Zheng and
Lapata (2022) for LRF; each variant changes what its name says and nothing else.
"""

import pytest

from tests.config.as_json import resolve_data
from tests.config.copies import ROOT
from tests.config.filled import resolve_evaluation, resolve_run
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue

SECTIONS = ("model", "problem", "objective", "training")
JUMP = "scan-jump-x2"


def settings(run: str) -> dict:
    """All settings of a run at the scale `full` that training reads, by one name each."""
    spec = resolve_run(load_catalogue(ROOT), f"{run}/seed-1", "full")
    return {(section, name): value for section in SECTIONS for name, value in spec[section].items()}


def differences(run: str, other: str) -> dict:
    """What `run` has otherwise than `other`."""
    mine, others = settings(run), settings(other)
    assert mine.keys() == others.keys()
    return {name: value for (_, name), value in mine.items() if value != others[_, name]}


# By data: SCAN, COGS, CoGnition, WMT (no script: as CoGnition, with the paper's codes and updates).
DATA = (JUMP, "scan-around-right", "cogs", "cognition", "wmt17-en-de", "wmt14-fr-en")
# Settings that differ between the data, in the order of DATA.
BOTH = {
    "layers": (3, 3, 3, 6, 6, 6),
    "heads": (4, 4, 4, 8, 8, 8),
    "width": (256, 256, 256, 512, 512, 512),
    "feed_forward": (512, 512, 512, 1024, 1024, 1024),
    "weight_decay": (0.1, 0.1, 0.0, 0.0001, 0.0001, 0.0001),
    "label_smoothing": (0.0, 0.0, 0.0, 0.1, 0.1, 0.1),
    "max_steps": (100000, 100000, 100000, 1000000, 2000000, 2000000),
    "validate_every": (1000, 1000, 1000, 1000, 10000, 10000),
}
BOTH_ALWAYS = {"dropout": 0.3, "positions": "relative", "max_relative_position": 20, "gated": True}
BOTH_ALWAYS |= {
    "learning_rate": 0.0005,
    "warmup_steps": 4000,
    "betas": [0.9, 0.98],
    "adam_epsilon": 1e-08,
}
BOTH_ALWAYS |= {"clip_norm": 0.0, "batch_tokens": 4096}
QUANTISED = {
    "attention": ("sal", "sal", "srl", "srl", "srl", "srl"),
    "next_code_stream": ("word", "word", "code", "code", "code", "code"),
    "source_codes": (6, 6, 32, 64, 16, 16),
    "target_codes": (4, 4, 16, 32, 16, 16),
    "ema_decay": (0.999, 0.999, 1.0, 1.0, 1.0, 1.0),
    "straight_through": (True, True, False, False, False, False),
    "source_predictor": ("masked", "masked", "causal", "causal", "causal", "causal"),
    "target_predictor_layers": (2, 2, 2, 6, 6, 6),
    "commitment_target": (0.1, 0.1, 0.0, 0.0, 0.0, 0.0),
    "next_code_target": (0.5, 0.5, 0.1, 0.1, 0.1, 0.1),
    "output_commitment_target": (0.1, 0.1, 0.01, 0.01, 0.01, 0.01),
    "distance_source": (0.001, 0.001, 0.001, 0.01, 0.01, 0.01),
    "distance_target": (0.001, 0.001, 0.001, 0.01, 0.01, 0.01),
    # The official code leaves H(Z) out of batches of lone words with the masked predictor alone.
    "entropy_min_length_source": (3, 3, 0, 0, 0, 0),
}
QUANTISED_ALWAYS = {"cross_query": "code", "clustering": "brown", "similarity": "euclidean"}
QUANTISED_ALWAYS |= {
    "codebook_gradient": True,
    "source_predictor_layers": 3,
    "target_predictor": "cross",
}
QUANTISED_ALWAYS |= {
    "entropy_min_length_target": 0,
    "distance_stops_gradient": True,
}
QUANTISED_ALWAYS |= {
    "cluster_source": 0.1,
    "cluster_target": 0.1,
    "entropy_source": 0.1,
    "entropy_target": 0.1,
}
QUANTISED_ALWAYS |= {
    "commitment_source": 0.1,
    "next_code_source": 0.5,
    "output_commitment_source": 0.1,
}


@pytest.mark.parametrize(("column", "task"), list(enumerate(DATA)))
def test_sq_transformer_and_its_baseline_have_the_settings_of_the_official_code(column, task):
    variant = QUANTISED["attention"][column]
    baseline = BOTH_ALWAYS | {name: values[column] for name, values in BOTH.items()}
    quantised = QUANTISED_ALWAYS | {name: values[column] for name, values in QUANTISED.items()}
    for model, wanted in (
        ("transformer/default", baseline),
        (f"sq-transformer/{variant}", baseline | quantised),
    ):
        found = {name: value for (_, name), value in settings(f"{task}/{model}").items()}
        assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("task", [JUMP, "cogs", "cognition"])
@pytest.mark.parametrize("attention", ["sal", "srl"])
def test_an_ablation_changes_what_table_4_takes_away(task, attention):
    base = f"{task}/sq-transformer/{attention}"
    assert differences(f"{base}-vq", base) == {"clustering": "none"}
    assert differences(f"{base}-mmi", base) == {"clustering": "mmi"}
    other = {
        "sal": {"attention": "srl", "next_code_stream": "code"},
        "srl": {"attention": "sal", "next_code_stream": "word"},
    }
    assert (
        differences(f"{task}/sq-transformer/{'srl' if attention == 'sal' else 'sal'}", base)
        == other[attention]
    )


def test_variants_on_addjump_change_what_they_are_called_after():
    base = f"{JUMP}/sq-transformer/sal"
    decoder = {"cross_query": "word", "next_code_stream": "code"}
    written = decoder | {
        "similarity": "cosine",
        "codebook_gradient": False,
        "target_predictor": "causal",
    }
    text = written | {
        "gated": False,
        "source_predictor": "causal",
        "betas": [0.1, 0.98],
        "next_code_source": 0.0,
        "entropy_min_length_source": 0,
    }
    changes = {f"codes-{number}": {"source_codes": number} for number in (4, 8, 12)} | {
        "none": {"attention": "none"},
        "sal-entropy-3": {"entropy_min_length_target": 3},
        "cross-query-word": decoder,
        "cross-query-systematic": {"cross_query": "systematic"},
        "sal-as-written": written,
        "sal-text": text | {"output_commitment_source": 0.0, "output_commitment_target": 0.0},
    }
    for variant, change in changes.items():
        assert differences(f"{JUMP}/sq-transformer/{variant}", base) == change, variant
    for number in (3, 5):
        change = differences(f"{JUMP}/sq-transformer/target-codes-{number}", base)
        assert change == {"target_codes": number}
    plain = differences(f"{JUMP}/transformer/sinusoidal", f"{JUMP}/transformer/default")
    assert plain == {"positions": "sinusoidal", "gated": False}


def test_srl_text_has_every_choice_of_the_papers_text_on_cogs():
    """Its distance is a plain squared one (section 3.3), so its gradient trains the codes, too."""
    found = differences("cogs/sq-transformer/srl-text", "cogs/sq-transformer/srl")
    model = {"gated": False, "cross_query": "word", "similarity": "cosine"}
    model |= {"codebook_gradient": False, "target_predictor": "causal"}
    model |= {"straight_through": True, "ema_decay": 0.999}
    losses = {"commitment_target": 0.1, "next_code_source": 0.0, "distance_stops_gradient": False}
    losses |= {"output_commitment_source": 0.0, "output_commitment_target": 0.0}
    assert found == model | losses | {"betas": [0.1, 0.98]}


def test_lrf_has_the_settings_of_cognitions_authors():
    found = {name: value for (_, name), value in settings("cognition/lrf/default").items()}
    sizes = {
        "layers": 6,
        "heads": 4,
        "width": 512,
        "feed_forward": 1024,
        "positions": "sinusoidal",
        "gated": False,
    }
    training = {
        "batch_tokens": 8192,
        "max_steps": 100_000,
        "learning_rate": 5e-4,
        "warmup_steps": 4000,
    }
    training |= {
        "betas": [0.9, 0.98],
        "weight_decay": 1e-4,
        "dropout": 0.3,
        "label_smoothing": 0.1,
        "clip_norm": 0.0,
    }
    assert found.items() >= (sizes | training).items()


def test_roberta_has_the_settings_of_zheng_and_lapata():
    found = {name: value for (_, name), value in settings("cfq-mcd1/roberta/lrf").items()}
    sizes = {
        "layers": 2,
        "heads": 8,
        "width": 256,
        "feed_forward": 512,
        "dropout": 0.1,
        "label_smoothing": 0.0,
    }
    sizes |= {
        "encoder_layers": 12,
        "encoder_heads": 12,
        "encoder_width": 768,
        "encoder_feed_forward": 3072,
    }
    training = {
        "batch_tokens": 4096,
        "max_steps": 45_000,
        "learning_rate": 1e-4,
        "warmup_steps": 4000,
    }
    training |= {"betas": [0.9, 0.999], "weight_decay": 1e-3, "clip_norm": 1.0}
    assert found.items() >= (sizes | training).items()


def test_variants_of_lrf_change_what_they_are_called_after():
    changes = {
        "plain": {"fuse_in": "none"},
        "matched": {"fuse_in": "wider"},
        "previous": {"fuse_over": "previous"},
        "uniform": {"fuse_weights": "uniform"},
        "encoder": {"fuse_in": "encoder"},
        "decoder": {"fuse_in": "decoder"},
        "heads-1": {"fuse_heads": 1},
        "heads-8": {"fuse_heads": 8},
        "no-residual": {"fuse_residual": False},
        "shared": {"fuse_shared": True},
        "with-current": {"fuse_over": "earlier_and_current"},
        "zero-init": {"fuse_zero_init": True},
        "relative": {"positions": "relative"},
        "relative-matched": {"positions": "relative", "fuse_in": "wider"},
    }
    for variant, change in changes.items():
        assert differences(f"cognition/lrf/{variant}", "cognition/lrf/default") == change, variant
    for variant in ("plain", "encoder", "decoder", "previous"):
        assert (
            differences(f"cfq-mcd1/roberta/{variant}", "cfq-mcd1/roberta/lrf") == changes[variant]
        ), variant
    matched = differences(f"{JUMP}/transformer-lrf/matched", f"{JUMP}/transformer-lrf/lrf")
    assert matched == {"fuse_in": "wider"}


def evaluation(task: str) -> dict:
    catalogue = load_catalogue(ROOT)
    method = "lrf/default" if task.startswith("cfq") else "transformer/default"
    return resolve_evaluation(catalogue, parse_run(catalogue, f"{task}/{method}/seed-1"), "full")


def test_outputs_are_searched_and_scored_as_in_the_official_code():
    """SCAN and COGS greedily, to 200 tokens; translations by a beam of 5, to 1.2 n + 10 tokens; CFQ
    by a beam of 5.
    """
    for task in (JUMP, "scan-around-right", "cogs"):
        found = evaluation(task)
        assert (found["beam"], found["max_length"], found["max_length_ratio"], found["joined"]) == (
            1,
            200,
            0,
            "tokens",
        )
    for task in ("cognition", "wmt17-en-de", "wmt17-de-en", "wmt14-en-fr", "wmt14-fr-en"):
        found = evaluation(task)
        assert (found["beam"], found["max_length"], found["max_length_ratio"]) == (5, 10, 1.2)
        if task != "cognition":
            assert found["joined"] == "words"
            assert found["measures"] == {"moses_bleu": {"language": task[-2:]}}
    assert evaluation("cognition")["joined"] == "text"
    bleu = {"bleu_zh": {"tokenize": "zh"}, "bleu_char": {"tokenize": "char"}}
    measures = {"compound_measure": {}, "bleu": bleu}
    assert evaluation("cognition")["measures"] == measures
    assert {evaluation(f"cfq-mcd{number}")["beam"] for number in (1, 2, 3)} == {5}


def test_a_checkpoint_is_chosen_as_in_the_official_code():
    for task, split, metric in (
        (JUMP, "valid", "exact_match"),
        ("cogs", "valid", "exact_match"),
        ("cognition", "cg_valid", "bleu_char"),
    ):
        validation = settings(f"{task}/sq-transformer/srl")["training", "validation"]
        assert (validation["split"], validation["metric"]) == (split, metric)
    scored = evaluation("cognition")
    shared = ("beam", "max_length", "max_length_ratio", "joined")
    assert {name: validation["decoding"][name] for name in shared} == {
        name: scored[name] for name in shared
    }


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_the_split_by_compound_differs_from_cognition_in_its_data_alone(scale):
    catalogue = load_catalogue(ROOT)
    variants = ["lrf/default", "lrf/matched", "lrf/plain"]
    if scale != "full":  # where these are validated on new compounds of CoGnition
        variants += ["sq-transformer/srl", "transformer/default"]
    for variant in variants:
        runs = [
            parse_run(catalogue, f"{task}/{variant}/seed-1")
            for task in ("cognition", "cognition-compounds")
        ]
        specs = [resolve_run(catalogue, str(run), scale) for run in runs]
        assert [spec[section] for spec in specs[:1] for section in SECTIONS] == [
            specs[1][section] for section in SECTIONS
        ]
        assert resolve_evaluation(catalogue, runs[0], scale) == resolve_evaluation(
            catalogue, runs[1], scale
        )
    data, divided = (resolve_data(catalogue, run.task, scale) for run in runs)
    own = {"trained_share", "salt", "min_atom_count"}
    assert {key: value for key, value in divided["options"].items() if key not in own} == data[
        "options"
    ]
    assert divided["sources"] == data["sources"] and own <= divided["options"].keys()
    assert divided["protocol"] == ("stand_in" if scale == "demo" else "reduced")


def test_data_are_those_of_the_papers():
    catalogue = load_catalogue(ROOT)
    found = {name: resolve_data(catalogue, name, "full")["options"] for name in catalogue.tasks}
    for name, chosen in {JUMP: "add_jump_2x", "scan-around-right": "around_right"}.items():
        assert found[name]["set"] == chosen and found[name]["from"] == "upstream"
    copies = {f"{JUMP}-na-{number}": number for number in (1, 10, 100)} | {JUMP: 1000}
    assert {name: found[name]["atomic_copies"] for name in copies} == copies
    sizes = {f"scan-complexity-{number}x": number for number in (1, 2, 20, 200)}
    assert {name: found[name]["multiple"] for name in sizes} == sizes
    for name in (JUMP, "scan-around-right", "cogs"):
        assert found[name]["validation"] == "paper" and found[name]["validation_fraction"] == 0.2
        assert found[f"{name}-clean"] == found[name] | {"validation": "clean"}
    # Zheng and Lapata (2022) turn predicates into their inverses on MCD2 and MCD3 alone.
    grouped = {f"cfq-mcd{number}": ("grouped", number > 1) for number in (1, 2, 3)}
    official = {f"{name}-official": ("official", False) for name in grouped}
    for name, chosen in (grouped | official).items():
        options = found[name]
        assert (options["preprocessing"], options.get("inverse", False)) == chosen
        assert options["split"] == name.removesuffix("-official").removeprefix("cfq-")
    for name, (source, target, every) in {
        "wmt17-en-de": ("en", "de", 100),
        "wmt17-de-en": ("de", "en", 100),
        "wmt14-en-fr": ("en", "fr", 1333),
        "wmt14-fr-en": ("fr", "en", 1333),
    }.items():
        options = found[name]
        assert (options["source"], options["target"], options["validation_every"]) == (
            source,
            target,
            every,
        )
        assert options["merges"] == 40_000


@pytest.mark.parametrize(
    ("task", "chosen", "others"),
    [
        ("cogs", (32, 16), [(8, 16), (16, 16), (32, 8), (32, 32)]),
        ("cognition", (64, 32), [(16, 32), (32, 32), (128, 32), (64, 16), (64, 64), (64, 128)]),
    ],
)
def test_the_other_codebooks_of_the_paper_change_their_sizes_alone(task, chosen, others):
    """At the scale full, where they are asked for."""
    catalogue = load_catalogue(ROOT)
    for source, target in [chosen, *others]:
        variant = "srl" if (source, target) == chosen else f"srl-codes-{source}-{target}"
        run = f"{task}/sq-transformer/{variant}/seed-10"
        spec = resolve_run(catalogue, run, "full")
        assert (spec["model"].pop("source_codes"), spec["model"].pop("target_codes")) == (
            source,
            target,
        )
        rest = {key: spec[key] for key in ("model", "objective", "training", "problem")}
        if (source, target) == chosen:
            expected = rest
        assert rest == expected

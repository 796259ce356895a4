"""The memory that `plan` says a training needs, against what a small model's step holds."""

import pytest
import torch
from torch.nn.attention import SDPBackend

from tests.planning.held import peak_of_a_step
from workflow_scripts.__main__ import main
from workflow_scripts.catalogue.loading import load_catalogue, load_config
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.data.sources import load_repositories
from workflow_scripts.models.causal_lm import build
from workflow_scripts.models.settings import CausalLMSettings
from workflow_scripts.objectives import carma
from workflow_scripts.objectives.settings import CarmaSettings
from workflow_scripts.planning.memory import Batch, estimate, largest_batch, parameters, report, training_memory
from workflow_scripts.training.prompt_batches import PromptBatch

FAMILIES = ("gpt2", "llama", "qwen2", "gemma")
VOCABULARY, SENTENCES, LENGTH = 800, 4, 48
SIZES = {"layers": 4, "heads": 4, "width": 64, "feed_forward": 192, "positions": 64, "dropout": 0.0}


def measured(settings: dict, objective: dict, checkpointed: bool, bf16: bool) -> int:
    """Bytes at the peak of a model's second step, with weights and moments."""
    model = build(settings, VOCABULARY)
    if checkpointed:
        model.activation_checkpointing_enable({"use_reentrant": False})
    ids = torch.randint(4, VOCABULARY, (SENTENCES, LENGTH))
    words = (torch.arange(LENGTH) // 2).expand(SENTENCES, LENGTH).contiguous()
    last = torch.full((SENTENCES,), LENGTH - 1)
    batch = PromptBatch(ids, torch.ones_like(ids, dtype=torch.bool), words, last, torch.arange(SENTENCES))
    loss_of = carma.build(objective)
    # As on a GPU: float32 has no fused kernel for groups of heads.
    grouped = settings.get("key_value_heads") and not bf16
    return peak_of_a_step(model, loss_of, batch, bf16, [SDPBackend.MATH if grouped else SDPBackend.FLASH_ATTENTION])


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize(
    ("family", "key_value_heads", "bf16", "task"),
    [(family, 0, False, "next_token") for family in FAMILIES]
    + [("llama", 2, False, "next_token"), ("gemma", 1, True, "next_token"), ("gpt2", 0, True, "next_token")]
    + [("qwen2", 2, True, "next_token"), ("llama", 0, False, "language_modelling")],
)
def test_the_estimate_is_what_a_step_holds(family, key_value_heads, bf16, task, checkpointed):
    """Within 10 % of the measured peak, for CARMA: weights, gradients, moments, activations and logits."""
    settings = {**SIZES, "family": family, "key_value_heads": key_value_heads}
    objective = {"task": f"workflow_scripts.objectives.{task}", "last_block_mi": 2, "last_block_stability": 2}
    sizes = CausalLMSettings(**settings)
    batch = Batch(SENTENCES, LENGTH, SENTENCES if task == "next_token" else SENTENCES * LENGTH)
    count = parameters(sizes, VOCABULARY)
    found = training_memory(sizes, CarmaSettings(**objective), VOCABULARY, count, batch, checkpointed, bf16)
    assert found.peak == pytest.approx(measured(settings, objective, checkpointed, bf16), rel=0.1)


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_those_of_the_model(family):
    settings = {**SIZES, "family": family, "key_value_heads": 2}
    model = build(settings, VOCABULARY)
    assert parameters(CausalLMSettings(**settings), VOCABULARY) == sum(p.numel() for p in model.parameters())


def test_the_catalogue_has_the_sizes_of_the_hubs_models():
    """The parameters that the sizes make are those that the hub says, for every model of the paper."""
    methods, scale = load_catalogue().methods, load_catalogue().scales["paper"]
    for name in ("gpt2-small", "gpt2-large", "gemma", "llama-small", "llama-large", "qwen-small", "qwen-large"):
        hub = load_repositories()[scale.by_method[name].init["hub"]]
        sizes = {key: value for key, value in methods[name].settings.model.items() if key != "module"}
        sizes = CausalLMSettings(**sizes | ({"positions": 1024} if sizes["family"] == "gpt2" else {}))
        assert parameters(sizes, hub.vocabulary) == hub.parameters, name


@pytest.mark.parametrize("precision", ["auto", "fp32", "bf16"])
def test_the_largest_models_fit_a_gpu_of_80_gb_and_not_one_of_40(precision):
    catalogue = load_catalogue()
    runs = [Run("idm", name, "carma", seed=42) for name in ("llama-large", "gemma", "qwen-large", "gpt2-small")]
    given = {"scale": "paper", "papers": ["carma"], "precision": precision}
    lines = report(catalogue, load_config(given), runs)
    assert len(lines) == 4 and "checkpointed" in lines[0] and "checkpointed" not in lines[3]
    more = report(catalogue, load_config(given | {"gpu_memory": 40}), runs)[-1]
    assert more == "more than the 40 GB of config.yaml's gpu_memory: idm/llama-large, idm/gemma, idm/qwen-large"
    assert 51.4e9 < estimate(catalogue, runs[0], "paper", precision).peak < 60e9
    small = report(catalogue, load_config(given | {"scale": "small"}), [Run("idm", "gemma", "carma", seed=21)])
    assert small == ["less than 1 GB for the largest model"]
    assert estimate(catalogue, Run("scan-jump", "transformer", "default", 1), "paper", precision) is None


def test_plan_says_it_with_and_without_a_cluster(capsys: pytest.CaptureFixture[str]):
    for more in ([], ["--cluster"]):
        assert main(["plan", "--scale", "paper", "--papers", "carma", *more]) == 0
        assert "GPU memory idm/llama-large/ft: 5" in capsys.readouterr().out


def test_of_several_gpus_each_holds_all_weights_and_a_share_of_the_activations():
    carma, sizes = CarmaSettings(), CausalLMSettings(layers=16, width=512, feed_forward=2048)
    spec = {"kind": "prompt", "training": {"batch_tokens": 4096, "batch_sentences": 64}}
    shared = {**spec, "training": spec["training"] | {"gpus": 4}}
    whole, share = largest_batch(spec, 32), largest_batch(shared, 32)
    assert (whole.sentences, share.sentences, share.length) == (64, 16, 32)
    one, four = (
        training_memory(sizes, carma, 1000, 10**8, batch, False, False, batch is share) for batch in (whole, share)
    )
    assert four.weights == one.weights and four.activations == pytest.approx(one.activations / 4)
    assert four.peak >= 4 * four.weights + four.activations - share.tokens * 4 * 2 * sizes.feed_forward

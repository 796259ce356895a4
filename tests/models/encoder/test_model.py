"""Encoders of all families: sizes, states, and reading them from the folder of a run."""

import pytest
import torch

from tests.models.sections import parse_model
from tests.models.small_models import count_parameters
from tests.training.sentence_toy import model_name, model_settings
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.models.cat import model as cat
from workflow_scripts.models.encoder import model as bert
from workflow_scripts.models.importing import import_model
from workflow_scripts.models.weights import list_weights, write_tensors
from workflow_scripts.tasks.encoders import EncoderWithHeads
from workflow_scripts.tasks.masked_lm import model as pretraining

FAMILIES = ("bert", "roberta", "distilbert", "cat")
VOCABULARY = 30


def sizes(family: str) -> dict:
    return model_settings(
        family, width=8, positions=12, **({"score": "cosine"} if family == "cat" else {})
    )


def module(family: str):
    return import_model(model_name(family))


def settings_of(family: str, **changes):
    return parse_as(module(family).Settings, sizes(family) | changes, "model")


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    real = torch.arange(12) < torch.tensor([12, 4])[:, None]
    return torch.randint(5, VOCABULARY, (2, 12)) * real, real, (torch.arange(12) > 2).long() * real


def built(settings: dict, vocabulary: int, encoder=bert) -> int:
    """Parameters of the encoder."""
    with torch.device("meta"):
        model = encoder.build(encoder.Settings(**settings), vocabulary)
    return count_parameters(model)


def test_sizes_are_those_of_the_papers_baselines():
    assert built({"family": "bert"}, 30522) == 52_188_672
    # one type of tokens
    assert built({"family": "roberta", "positions": 511}, 30522) == 52_188_672 - 768
    assert built({"family": "distilbert"}, 30522) == 52_188_672 - 2 * 768  # none


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_matched_bert_is_as_large_as_cat(scale):
    """But for less than 0.5%, of the encoder without its embeddings."""
    found = {}
    for method in ("cat", "bert-matched"):
        spec = resolve_run(
            load_catalogue(), Run.parse(f"pairs-wordpiece/{method}/pretrain/seed-1"), scale
        )
        settings = spec.model.settings
        parameters = built(settings.model_dump(), 100, import_model(spec.model.name))
        found[method] = parameters - (100 + settings.positions + 2) * settings.width
    assert found["bert-matched"] == pytest.approx(found["cat"], rel=5e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_states_do_not_depend_on_padding(family):
    model = EncoderWithHeads(module(family).build(settings_of(family), VOCABULARY)).eval()
    ids, real, types = inputs()
    together = model.compute_states(ids, real, types)
    alone = model.compute_states(ids[1:, :4], real[1:, :4], types[1:, :4])
    assert tuple(together) == module(family).Settings(**sizes(family)).readouts
    for name, states in together.items():
        assert states.shape == (2, 12, 8)
        torch.testing.assert_close(states[1:, :4], alone[name])


def write_encoder(model, folder):
    write_tensors(list_weights(model), folder / "model.safetensors")
    model.encoder.config.save_pretrained(folder)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tied", [True, False])
def test_the_weights_of_a_pre_training_are_a_file_of_the_encoder(tmp_path, family, tied):
    from transformers import AutoModel

    torch.manual_seed(0)
    section = parse_model({"name": model_name(family), **sizes(family), "tied": tied})
    model = pretraining.build(section, VOCABULARY).eval()
    weights = list_weights(model)
    assert ("heads.words.weight" in weights) != tied and "heads.next_sentence.bias" in weights
    write_encoder(model, tmp_path)
    ids, real, types = inputs()
    expected = model.compute_states(ids, real, types)
    for read in (
        module(family).load_model(tmp_path, settings_of(family)),
        AutoModel.from_pretrained(tmp_path),
    ):
        for name, states in EncoderWithHeads(read).eval().compute_states(ids, real, types).items():
            # memory of a file may be aligned differently
            torch.testing.assert_close(states, expected[name])


def test_the_heads_have_the_sizes_of_berts():
    with torch.device("meta"):
        model = pretraining.build(parse_model({"name": "encoder"}), 30522)
    assert [count_parameters(head) for head in model.heads.values()] == [23_471_418, 1_538]


def test_what_cannot_be_read_is_one_line(tmp_path):
    model = bert.build(bert.Settings(**sizes("bert")), VOCABULARY)
    model.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="holds a model of the family bert, the method needs cat"):
        cat.load_model(tmp_path, cat.Settings(**sizes("cat")))
    weights = {
        name: weight
        for name, weight in list_weights(model).items()
        if "layer.1.output.dense" not in name
    }
    write_tensors(weights, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"has no encoder.layer.1.output.dense.bias"):
        bert.load_model(tmp_path, bert.Settings(**sizes("bert")))


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_drawn_with_the_deviation_of_the_settings(family):
    model = module(family).build(settings_of(family, width=64, deviation=0.05), 2000)
    embeddings = model.get_input_embeddings().weight[1:]  # the padding's is 0
    assert embeddings.std().item() == pytest.approx(0.05, rel=0.02)
    with pytest.raises(UserError, match="'deviation' is 0"):
        settings_of(family, deviation=0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_is_that_of_the_fine_tuning(tmp_path, family):
    """A model that was pre-trained without any is fine-tuned with what its own settings say."""
    model = pretraining.build(
        parse_model({"name": model_name(family), **sizes(family)}), VOCABULARY
    )
    write_encoder(model, tmp_path)
    rates, batch = {}, inputs()
    for dropout in (0.0, 0.3):
        loaded = module(family).load_model(tmp_path, settings_of(family, dropout=dropout))
        rates[dropout] = {
            module.p for module in loaded.modules() if isinstance(module, torch.nn.Dropout)
        } - {0.0}
        states = [
            next(iter(EncoderWithHeads(loaded).compute_states(*batch).values())) for _ in range(2)
        ]
        assert torch.equal(*states) == (dropout == 0.0)
    assert rates == {0.0: set(), 0.3: {0.3}}

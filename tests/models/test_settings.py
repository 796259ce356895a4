import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.sq_transformer import model as sq_transformer
from workflow_scripts.models.transformer import model as seq2seq
from workflow_scripts.objectives.structural_quantisation import objective as structural_quantisation
from workflow_scripts.tasks.seq2seq.loss import WordLoss


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 2}, "model: unknown key 'layer'; did you mean 'layers'"),
        ({"positions": "relativ"}, "model: key 'positions' is 'relativ'; input should be 'relative' or 'sinusoidal'"),
        ({"heads": 3}, "model: width 256 is not a multiple of heads 3"),
        (
            {"width": 5, "heads": 1, "positions": "sinusoidal"},
            "model: width is 5; sinusoidal positions need an even one",
        ),
        ({"layers": 0}, "model: key 'layers' is 0; input should be greater than or equal to 1"),
        ({"layers": True}, "model: key 'layers' is True; input should be a valid integer"),
        ({"dropout": "0.3"}, "model: key 'dropout' is '0.3'; input should be a valid number"),
        ({"dropout": 1.0}, "model: key 'dropout' is 1.0; input should be less than or equal to 0.99"),
    ],
)
def test_wrong_settings_of_the_plain_model(settings, message):
    with pytest.raises(UserError, match=message):
        seq2seq.build(settings, 10, 10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"atention": "sal"}, "unknown key 'atention'; did you mean 'attention'"),
        ({"ema_decay": 1.5}, "key 'ema_decay' is 1.5; input should be less than or equal to 1"),
        ({"codebook_gradient": False, "ema_decay": 1.0}, "ema_decay is 1: the codes would never move"),
        ({"codebook_gradient": False, "straight_through": False}, "straight_through is false"),
        ({"source_codes": 0}, "key 'source_codes' is 0; input should be greater than or equal to 1"),
        ({"positions": "sinusoidal"}, "positions must be relative"),
        ({"attention": "none", "next_code_stream": "code"}, "needs a stream of codes"),
    ],
)
def test_wrong_settings_of_sq_transformer(settings, message):
    with pytest.raises(UserError, match=message):
        sq_transformer.build(settings, 10, 10)


def test_wrong_settings_of_the_objectives():
    with pytest.raises(UserError, match="'cluster_sources'; did you mean 'cluster_source"):
        structural_quantisation.build({"cluster_sources": 0.1}, WordLoss())
    with pytest.raises(UserError, match=r"key 'entropy_target' is -0\.1; input should be greater than or equal to 0"):
        structural_quantisation.build({"entropy_target": -0.1}, WordLoss())

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.models import seq2seq, sq_transformer
from workflow_scripts.objectives import cross_entropy, structural_quantisation


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 2}, "model: unknown key 'layer'; the nearest known one is 'layers'"),
        ({"positions": "relativ"}, "model: positions is 'relativ'; choose one of relative, sinusoidal"),
        ({"heads": 3}, "model: width 256 is not a multiple of heads 3"),
        (
            {"width": 5, "heads": 1, "positions": "sinusoidal"},
            "model: width is 5; sinusoidal positions need an even one",
        ),
        ({"layers": 0}, "model: layers is 0; it must be at least 1"),
        ({"layers": True}, "model: layers is True; it must be of type int"),
        ({"dropout": "0.3"}, "model: dropout is '0.3'; it must be of type float"),
        ({"dropout": 1.0}, r"model: dropout is 1.0; it must lie in \[0, 0.99\]"),
    ],
)
def test_wrong_settings_of_the_plain_model(settings, message):
    with pytest.raises(UserError, match=message):
        seq2seq.build(settings, 10, 10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"atention": "sal"}, "unknown key 'atention'; the nearest known one is 'attention'"),
        ({"ema_decay": 1.5}, r"ema_decay is 1.5; it must lie in \[0, 1\]"),
        ({"codebook_gradient": False, "ema_decay": 1.0}, "ema_decay 1: the codes would never move"),
        ({"codebook_gradient": False, "straight_through": False}, "straight_through is false"),
        ({"source_codes": 0}, "source_codes is 0; it must be at least 1"),
        ({"positions": "sinusoidal"}, "positions must be relative"),
        ({"attention": "none", "next_code_stream": "code"}, "needs a stream of codes"),
    ],
)
def test_wrong_settings_of_sq_transformer(settings, message):
    with pytest.raises(UserError, match=message):
        sq_transformer.build(settings, 10, 10)


def test_wrong_settings_of_the_objectives():
    with pytest.raises(UserError, match="objective: unknown key 'smoothing'; the nearest known one is 'label_smooth"):
        cross_entropy.build({"smoothing": 0.1})
    with pytest.raises(UserError, match="'cluster_sources'; the nearest known one is 'cluster_source'"):
        structural_quantisation.build({"cluster_sources": 0.1})
    with pytest.raises(UserError, match=r"entropy_target is -0\.1; it must not be negative"):
        structural_quantisation.build({"entropy_target": -0.1})

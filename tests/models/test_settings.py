import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.cat import model as cat
from workflow_scripts.models.lrf import model as lrf
from workflow_scripts.models.roberta_decoder import model as roberta_decoder
from workflow_scripts.models.sq_transformer import model as sq_transformer
from workflow_scripts.models.transformer import model as seq2seq
from workflow_scripts.objectives.structural_quantisation import objective as structural_quantisation


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (seq2seq, {"layer": 2}, "model: unknown key 'layer'; did you mean 'layers'"),
        (
            seq2seq,
            {"positions": "relativ"},
            "model: key 'positions' is 'relativ'; input should be 'relative' or",
        ),
        (seq2seq, {"heads": 3}, "model: width 256 is not a multiple of heads 3"),
        (
            seq2seq,
            {"width": 5, "heads": 1, "positions": "sinusoidal"},
            "model: width is 5; sinusoidal positions need",
        ),
        (
            sq_transformer,
            {"ema_decay": 1.5},
            "key 'ema_decay' is 1.5; input should be less than or equal to 1",
        ),
        (
            sq_transformer,
            {"codebook_gradient": False, "ema_decay": 1.0},
            "ema_decay is 1: the codes would never move",
        ),
        (
            sq_transformer,
            {"codebook_gradient": False, "straight_through": False},
            "straight_through is false",
        ),
        (
            sq_transformer,
            {"source_codes": 0},
            "key 'source_codes' is 0; input should be greater than or equal to 1",
        ),
        (sq_transformer, {"positions": "sinusoidal"}, "positions must be relative"),
        (
            sq_transformer,
            {"attention": "none", "next_code_stream": "code"},
            "needs a stream of codes",
        ),
        (lrf, {"fuse_over": "all"}, "key 'fuse_over' is 'all'; input should be 'earlier'"),
        (lrf, {"width": 16, "fuse_heads": 3}, "width 16 is not a multiple of fuse_heads 3"),
        (
            roberta_decoder,
            {"encoder_heads": 5},
            "encoder_width 768 is not a multiple of encoder_heads 5",
        ),
        (
            roberta_decoder,
            {"fuse_in": "wider"},
            "do not work with an encoder that is read from a folder",
        ),
        (roberta_decoder, {"encoder_layers": 0}, "key 'encoder_layers' is 0"),
        (cat, {"codes": 0}, "key 'codes' is 0"),
        (cat, {"score": "euclidean"}, "input should be 'dot' or 'cosine'"),
        (cat, {"readout": "last"}, "readout is last; this model has mix, cont, comp"),
        (cat, {"droput": 0.1}, "did you mean 'dropout'"),
    ],
)
def test_wrong_settings_of_the_models(model, settings, message):
    with pytest.raises(UserError, match=message):
        parse_as(model.Settings, settings, "model")


def test_wrong_settings_of_the_objectives():
    with pytest.raises(UserError, match="'cluster_sources'; did you mean 'cluster_source"):
        parse_as(structural_quantisation.Settings, {"cluster_sources": 0.1}, "objective")
    with pytest.raises(
        UserError,
        match=r"key 'entropy_target' is -0\.1; input should be greater than or equal to 0",
    ):
        parse_as(structural_quantisation.Settings, {"entropy_target": -0.1}, "objective")

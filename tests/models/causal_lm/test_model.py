"""Small language models have the sizes that the settings name, by the shapes of their weights."""

import pytest

from workflow_scripts.models.causal_lm.model import Settings, build

SIZES = {
    "layers": 3,
    "heads": 4,
    "key_value_heads": 2,
    "width": 24,
    "feed_forward": 40,
    "positions": 50,
}


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma"])
def test_sizes_of_the_rotary_families(family):
    model = build(Settings(**(SIZES | {"family": family, "dropout": 0.0})), 60)
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert len(model.model.layers) == 3 and model.config.max_position_embeddings == 50
    # tied
    assert shapes["model.embed_tokens.weight"] == (60, 24) and "lm_head.weight" not in shapes
    attention, feed_forward = "model.layers.2.self_attn", "model.layers.2.mlp"
    assert (shapes[f"{attention}.q_proj.weight"], shapes[f"{attention}.k_proj.weight"]) == (
        (24, 24),
        (12, 24),
    )
    assert shapes[f"{feed_forward}.up_proj.weight"] == (40, 24)
    alone = build(Settings(**(SIZES | {"family": family, "key_value_heads": 0})), 60)
    assert alone.model.layers[0].self_attn.k_proj.weight.shape == (24, 24)


def test_sizes_of_gpt2():
    model = build(Settings(**(SIZES | {"family": "gpt2", "dropout": 0.25})), 60)
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert len(model.transformer.h) == 3 and model.config.n_head == 4
    assert (shapes["transformer.wte.weight"], shapes["transformer.wpe.weight"]) == (
        (60, 24),
        (50, 24),
    )
    assert shapes["transformer.h.2.mlp.c_fc.weight"] == (24, 40) and "lm_head.weight" not in shapes
    assert {module.p for module in model.modules() if type(module).__name__ == "Dropout"} == {0.25}

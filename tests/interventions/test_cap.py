from types import SimpleNamespace

import pytest
import torch
import transformers

from tests.interventions.cap_logits import compute_cap_logits
from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.cap import POOLINGS, _Run, group_tokens, pool, predict_with_cap
from workflow_scripts.objectives.hidden_states import find_blocks

torch.set_num_threads(1)
VOCABULARY, BLOCKS = 40, 4
FAMILIES = ["gpt2", "llama", "qwen2", "gemma"]
ATTENTIONS = ["sdpa", "eager"]
# Gemma 2 caps its logits and the scores of its attention, and has blocks of two kinds. It has no
# sdpa.
MODELS = [(family, attention) for family in FAMILIES for attention in ATTENTIONS] + [
    ("gemma2", "eager")
]
# The models of the rotary families normalise in float32 whatever their precision.
CLOSE = {"atol": 2e-5, "rtol": 0}


def make(family, attention="sdpa"):
    """A small model in float64 with weights large enough that differences show."""
    torch.manual_seed(0)
    common = {
        "vocab_size": VOCABULARY,
        "initializer_range": 0.3,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    common |= {"pad_token_id": 2, "attn_implementation": attention}
    if family == "gpt2":
        sizes = {"n_layer": BLOCKS, "n_head": 2, "n_embd": 16, "n_positions": 32}
    else:
        sizes = {
            "num_hidden_layers": BLOCKS,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 8,
        }
        sizes |= {"hidden_size": 16, "intermediate_size": 24, "max_position_embeddings": 32}
    if family == "gemma2":
        sizes |= {"final_logit_softcapping": 2.0, "sliding_window": 3}
    config = transformers.AutoConfig.for_model(family, **common, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "ln_" in name or name.endswith("bias"):
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def items(sizes, bos=False, seed=0):
    """Ids and words [B, S] of items, from the tokens of each word: [[1, 3, 2], ...], right-padded
    with id 2.
    """
    generator = torch.Generator().manual_seed(seed)
    words = [
        [-1] * bos + [word for word, size in enumerate(row) for _ in range(size)] for row in sizes
    ]
    ids = [torch.randint(3, VOCABULARY, (len(row),), generator=generator) for row in words]
    for row in ids[: bos * len(ids)]:
        row[0] = 0
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(ids, True, 2), pad([torch.tensor(row) for row in words], True, -1)


def naive(model, ids, words, layer, pooling):
    """CAP of one sentence without padding, ids and words [S], as literally as can be: logits [V]."""
    base = model.base_model
    rotary = getattr(base, "rotary_emb", None)

    def run(some, states):
        length = states.size(1)
        mask = torch.full((length, length), -torch.inf, dtype=states.dtype).triu(1)
        position = torch.arange(length)[None]
        given = (
            {}
            if rotary is None
            else {"position_embeddings": rotary(states, position), "position_ids": position}
        )
        for block in some:
            found = block(states, attention_mask=mask[None, None], **given)
            states = found[0] if isinstance(found, tuple) else found
        return states

    states = model.get_input_embeddings().weight[ids][None]
    if model.config.model_type == "gemma":
        states = states * states.size(-1) ** 0.5
    if rotary is None:
        states = states + base.wpe(torch.arange(len(ids)))
    states = run(find_blocks(model)[:layer], states)[0]
    groups = []
    for position, word in enumerate(words.tolist()):
        if position > 0 and word >= 0 and word == words[position - 1]:
            groups[-1].append(states[position])
        else:
            groups.append([states[position]])
    pooled = []
    for group in groups:
        features = zip(*[state.tolist() for state in group], strict=True)
        how = {"max": max, "sum": sum, "mean": lambda values: sum(values) / len(values)}[pooling]
        pooled.append([how(values) for values in features])
    states = run(find_blocks(model)[layer:], torch.tensor(pooled, dtype=torch.float64)[None])
    norm = base.ln_f if rotary is None else base.norm
    return model.lm_head(norm(states))[0, -1]


SIZES = [[1, 3, 1, 2], [1, 1, 1], [2, 1, 1, 1, 1, 4], [1, 1, 2]]


@pytest.mark.parametrize(("family", "attention"), MODELS)
def test_groups_of_one_token_go_through_the_suffix_unchanged(family, attention):
    """They get the logits of the clean run, also if they are sent through the pooled pass."""
    model = make(family, attention)
    ids, words = items([[1] * 5, [1] * 7, [1] * 3], bos=True)
    run = _Run(model, ids, words, range(BLOCKS), POOLINGS)
    assert not run.touched.any()
    run.touched[:] = True
    ((order, found),) = run.run_suffixes()
    assert sorted(order.tolist()) == [0, 1, 2] and found.shape == (BLOCKS, 3, 3, VOCABULARY)
    torch.testing.assert_close(found, run.logits[order].expand_as(found), **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("bos", [False, True])
def test_equals_the_naive_oracle(family, attention, bos):
    """The oracle runs each item alone, without padding."""
    model = make(family, attention)
    ids, words = items(SIZES, bos)
    for pooling in POOLINGS:
        found = compute_cap_logits(model, ids, words, range(BLOCKS), pooling)
        for row, sizes in enumerate(SIZES):
            length = sum(sizes) + bos
            for layer in range(BLOCKS):
                with torch.no_grad():
                    expected = naive(model, ids[row, :length], words[row, :length], layer, pooling)
                torch.testing.assert_close(found[layer, row], expected, **CLOSE)
        # The layer matters, where words have several tokens.
        assert (found[1:, [0, 2, 3]] - found[:-1, [0, 2, 3]]).abs().amax(-1).min() > 1e-3


def test_logits_are_capped_as_the_model_caps_them():
    ids, words = items(SIZES)
    found = compute_cap_logits(make("gemma2", "eager"), ids, words, [1, 3], "sum")
    assert 1.0 < found.abs().max() < 2.0


def test_predictions_of_all_layers_and_poolings_are_those_of_the_logits():
    model = make("llama")
    batches, expected = [], {}
    labels = torch.tensor([7, 5, 30])
    for seed in range(3):
        ids, words = items(SIZES[: seed + 2], seed=seed)
        batches.append(SimpleNamespace(ids=ids, words=words))
        for pooling in POOLINGS:
            logits = compute_cap_logits(model, ids, words, [3, 1], pooling)
            for layer, found in zip([3, 1], logits, strict=True):
                expected.setdefault((layer, pooling, "vocabulary"), []).extend(
                    found.argmax(-1).tolist()
                )
                of_labels = labels[found[:, labels].argmax(-1)].tolist()
                expected.setdefault((layer, pooling, "labels"), []).extend(of_labels)
    for rows in (1, 13, 1024):
        answered: list[int] = []
        found = predict_with_cap(
            model, batches, [3, 1], labels=labels, rows=rows, advance=answered.append
        )
        assert {key: value.tolist() for key, value in found.items()} == expected
        # Of each batch first those that CAP does not change, then each pass.
        passes = {1: 6, 13: 4, 1024: 3}[rows]
        assert sum(answered) == 9 and len(answered) == 3 + passes
    with torch.no_grad():
        logits = [
            model(batch.ids).logits[range(len(batch.ids)), (batch.words >= 0).sum(1) - 1]
            for batch in batches
        ]
    found = torch.cat(logits)
    clean = {
        "vocabulary": found.argmax(-1).tolist(),
        "labels": labels[found[:, labels].argmax(-1)].tolist(),
    }
    assert any(after != clean[readout] for (_, _, readout), after in expected.items())
    # The items whose words have one token each.
    untouched = [1, 3, 6]
    assert all(after[i] == clean[key[2]][i] for key, after in expected.items() for i in untouched)


def test_predictions_of_batches_without_a_word_of_several_tokens():
    ids, words = items([[1, 1], [1, 1, 1]])
    model = make("gpt2")
    found = predict_with_cap(model, [SimpleNamespace(ids=ids, words=words)] * 2, [1], ["mean"])
    with torch.no_grad():
        logits = model(ids).logits
    assert (
        found[1, "mean", "vocabulary"].tolist()
        == [logits[0, 1].argmax(), logits[1, 2].argmax()] * 2
    )


def test_as_many_groups_as_words():
    _, words = items(SIZES, bos=True)
    groups = group_tokens(words)
    assert groups.n_groups.tolist() == [1 + len(sizes) for sizes in SIZES]
    assert groups.length.tolist() == [1 + sum(sizes) for sizes in SIZES]
    assert groups.number[0].tolist()[:8] == [0, 1, 2, 2, 2, 3, 4, 4]
    states = torch.randn(*words.shape, 5)
    pooled = pool(states, groups, ["sum", "max"])
    assert pooled.shape == (2, 4, 7, 5)
    torch.testing.assert_close(pooled[0].sum(dim=1), (states * groups.real[..., None]).sum(dim=1))
    assert pooled[1, 0, 2].equal(states[0, 2:5].amax(dim=0))
    # Positions after the last word are zero, and a single token keeps its bits.
    assert not pooled[:, 0, 5:].any() and pooled[0, 0, :2].equal(states[0, :2])
    half = pool(states.bfloat16(), groups, ["mean"])
    assert half.dtype == torch.bfloat16 and half[0, 0, 0].equal(states[0, 0].bfloat16())


def test_bos_is_its_own_group():
    _, words = items([[1, 2, 1]], bos=True)
    assert group_tokens(words).number.tolist() == [[0, 1, 2, 2, 3]]
    assert group_tokens(torch.tensor([[-1, -1, 0, 0, -1]])).number.tolist()[0][:4] == [0, 1, 2, 2]


@pytest.mark.parametrize("layer", [-1, BLOCKS, 99])
def test_a_layer_that_there_is_not_and_an_item_without_words_are_refused(layer):
    ids, words = items(SIZES)
    with pytest.raises(
        UserError, match=f"no block {layer}; the model has blocks 0 to {BLOCKS - 1}"
    ):
        compute_cap_logits(make("gpt2"), ids, words, [1, layer], "max")
    words[2] = -1
    with pytest.raises(UserError, match="item 2 of the batch has no word"):
        compute_cap_logits(make("gpt2"), ids, words, [1], "max")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_left_as_it_was(family):
    model = make(family)
    ids, words = items(SIZES)
    with torch.no_grad():
        before = model(ids).logits
        compute_cap_logits(model, ids, words, [1, 2], "max")
        assert model(ids).logits.equal(before)
        with pytest.raises(IndexError):
            compute_cap_logits(model, ids + VOCABULARY, words, [1, 2], "max")
        assert model(ids).logits.equal(before)

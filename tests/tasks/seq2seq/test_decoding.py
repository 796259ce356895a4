import itertools

import pytest
import torch

from tests.models.small_models import ALL, FUSED, make, sentences
from workflow_scripts.tasks.seq2seq.decoding import decode_greedily, decode_with_beam

torch.set_num_threads(1)


def ready_to_end(name, seed=0, vocabulary=12):
    """A model that ends its sentences after different numbers of words: the end symbol's embedding
    is made likely.
    """
    model = make(name, seed, vocabulary).eval()
    with torch.no_grad():
        model.target_embedding.weight[2] *= 2
    return model


def rows(ids):
    """The rows of ids [B, T] without padding; padding within a row, or after no end symbol, is an
    error.
    """
    found = []
    for row in ids.tolist():
        row = row[: row.index(2) + 1] + [0] * (len(row) - row.index(2) - 1) if 2 in row else row
        assert 0 not in row[: row.index(2)] if 2 in row else 0 not in row
        found.append([token for token in row if token])
    assert len(found[0]) <= ids.size(1) == max(map(len, found))
    return found


@pytest.mark.parametrize("name", ALL)
def test_greedy_decoding_and_a_beam_of_one_agree(name):
    lengths_seen = set()
    for seed in range(6):
        model = ready_to_end(name, seed)
        source = sentences([6, 2, 4, 1, 3, 5, 6, 2, 3], seed=seed)
        found = rows(decode_greedily(model, source, 40))
        assert found == rows(decode_with_beam(model, source, 1, 40))
        lengths_seen |= set(map(len, found))
    assert len(lengths_seen) > 2


@pytest.mark.parametrize(
    "name", ["relative", "sinusoidal", "sal-code", "sal-word", "sal-systematic", "srl", *FUSED]
)
def test_logits_of_each_step_are_those_of_the_whole_target(name):
    model = make(name).eval()
    source = sentences([5, 2, 7])
    # 40 steps: the cache has grown twice, and the relative distances are clipped.
    target_in = torch.cat([torch.full((3, 1), 2), sentences([39, 39, 39], seed=1)], dim=1)
    memory, cache = model.encode(source), None
    whole = model.decode(memory, target_in)
    for step in range(40):
        logits, cache = model.decode_step(memory, cache, target_in[:, step])
        torch.testing.assert_close(logits, whole[:, step], atol=3e-5, rtol=1e-4)
        if step == 20:
            rows = torch.tensor([2, 0])
            cache, whole, target_in = cache.select(rows), whole[rows], target_in[rows]


def exhaustive(model, source, vocabulary, max_length, length_penalty):
    """The best-scoring sentence of all that end within max_length, by trying every one."""
    best, best_score = None, -float("inf")
    words = [token for token in range(1, vocabulary) if token != 2]
    for length in range(max_length):
        candidates = torch.tensor(
            [[2, *words_, 2] for words_ in itertools.product(words, repeat=length)]
        )
        logits = model(source.expand(len(candidates), -1), candidates[:, :-1]).logits
        logits[..., 0] = -torch.inf
        chosen = logits.log_softmax(dim=-1).gather(2, candidates[:, 1:, None])[..., 0].sum(dim=1)
        score, index = (chosen / (length + 1) ** length_penalty).max(dim=0)
        if score > best_score:
            best, best_score = candidates[index, 1:].tolist(), score
    return best


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("name", ["relative", "sal-code", "srl"])
def test_a_wide_beam_finds_the_best_of_all_sentences(name, length_penalty):
    for seed in range(3):
        model = make(name, seed, vocabulary=6).eval()
        source = sentences([4, 2, 5], vocabulary=6, seed=seed)
        with torch.no_grad():
            expected = [
                exhaustive(model, row[None, : int(row.ne(0).sum())], 6, 4, length_penalty)
                for row in source
            ]
            found = decode_with_beam(model, source, 4**4, 4, length_penalty)
        assert rows(found) == expected


@pytest.mark.parametrize("name", ["relative", "sal-code", "srl"])
def test_each_sentence_has_its_own_limit(name):
    model = make(name, 1, vocabulary=6).eval()
    lengths, limits = [4, 2, 5, 3, 1], torch.tensor([3, 1, 4, 2, 4])
    source = sentences(lengths, vocabulary=6, seed=1)
    alone = [source[row, None, :length] for row, length in enumerate(lengths)]
    for search in (
        lambda ids, limit: decode_with_beam(model, ids, 4**4, limit),
        lambda ids, limit: decode_greedily(model, ids, limit),
        lambda ids, limit: decode_with_beam(model, ids, 2, limit),
    ):
        expected = [
            rows(search(ids, int(limit)))[0] for ids, limit in zip(alone, limits, strict=True)
        ]
        assert [
            [token for token in row if token] for row in search(source, limits).tolist()
        ] == expected


def searched_by_hand(model, source, width, max_length, length_penalty):
    """Beam search over lists of Python, one sentence and one hypothesis at a time."""
    open_, ended = [(0.0, [2])], []
    for _ in range(max_length):
        longer = []
        for score, prefix in open_:
            logits = model(source, torch.tensor([prefix])).logits[0, -1].clone()
            logits[0] = -torch.inf
            longer += [
                (score + float(p), [*prefix, token])
                for token, p in enumerate(logits.log_softmax(-1))
                if token
            ]
        longer = sorted(longer, reverse=True)[: 2 * width]
        for score, words in longer[:width]:
            if words[-1] == 2 and len(ended) < width:
                ended.append((score / (len(words) - 1) ** length_penalty, words[1:]))
        open_ = [hypothesis for hypothesis in longer if hypothesis[1][-1] != 2][:width]
        if len(ended) >= width:
            break
    return max(ended)[1] if ended else open_[0][1][1:]


@torch.no_grad()
@pytest.mark.parametrize(
    ("width", "length_penalty"), [(1, 1.0), (2, 1.0), (3, 0.0), (5, 1.0), (5, 2.0)]
)
@pytest.mark.parametrize("name", ["relative", "sal-code", "srl"])
def test_a_narrow_beam_keeps_what_a_search_by_hand_keeps(name, width, length_penalty):
    model = ready_to_end(name, 3)
    lengths = [4, 2, 6, 3, 5, 1, 2]
    source = sentences(lengths, seed=4)
    expected = [
        searched_by_hand(model, source[row, None, :length], width, 9, length_penalty)
        for row, length in enumerate(lengths)
    ]
    assert rows(decode_with_beam(model, source, width, 9, length_penalty)) == expected

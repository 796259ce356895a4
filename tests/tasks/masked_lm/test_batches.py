"""Batches of masked pairs: how they are laid out, masked and paired, and which sememes their pieces
get.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.data.formats.tokenizer_training import train_wordpiece
from workflow_scripts.models.encoder.model import extract_vocabulary
from workflow_scripts.tasks.batching import to_sequences
from workflow_scripts.tasks.masked_lm.batches import (
    IGNORED,
    NEIGHBOURS,
    SentencePairs,
    bucket_pairs,
    make_fixed_batches,
    make_random_batches,
)
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, read_sememe_lexicon

TEXTS = [
    "the old goat runs",
    "a small tent of the desert",
    "goats, and runners",
    "running on and on",
    "an oar",
]
SEMEMES = {
    "goat": [4, 1],
    "goats": [1],
    "runners": [0, 2, 5],
    "on": [3],
    "small tent": [5],
    "zzz": [2],
}
NAMES = ["run", "animal", "person", "FuncWord", "livestock", "thing"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer():
    return train_wordpiece(60, TEXTS * 30)


def write_sememes(folder, sememes: dict[str, list[int]]) -> None:
    lists = pa.array(list(sememes.values()), pa.list_(pa.int32()))
    pq.write_table(pa.table({"word": list(sememes), "sememes": lists}), folder / "sememes.parquet")


@pytest.fixture
def folder(tokenizer, tmp_path):
    """A folder with the sememes of a few words."""
    write_sememes(tmp_path, SEMEMES)
    write_json(tmp_path / "sememe_names.json", NAMES)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def pairs_of(tokenizer, texts: list[tuple[str, str]], limit: int = 64, **options) -> SentencePairs:
    def side(number: int):
        encoded = tokenizer.encode_batch([pair[number] for pair in texts], add_special_tokens=False)
        return to_sequences(
            pa.chunked_array([pa.array([row.ids for row in encoded], pa.list_(pa.int32()))])
        )

    vocabulary = extract_vocabulary(tokenizer, "tokenizer.json")
    return SentencePairs(side(0), side(1), vocabulary, limit, **{"next_sentence": False, **options})


def random_pairs(tokenizer, count: int, **options) -> SentencePairs:
    rng = np.random.default_rng(3)
    words = " ".join(TEXTS).split()
    texts = [
        tuple(" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(2))
        for _ in range(count)
    ]
    return pairs_of(tokenizer, texts, **options)


def whole(batch) -> torch.Tensor:
    """The tokens before they were masked."""
    return torch.where(batch.labels.ne(IGNORED), batch.labels, batch.ids)


def test_a_pair_is_laid_out_as_berts_tokenizer_has_it(tokenizer):
    texts = [(TEXTS[0], TEXTS[1]), (TEXTS[4], TEXTS[2]), (TEXTS[3], TEXTS[3])]
    batch = pairs_of(tokenizer, texts).make_batch(np.array([2, 0, 1]), np.random.default_rng(0))
    tokenizer.enable_padding(pad_id=0)
    theirs = tokenizer.encode_batch([texts[2], texts[0], texts[1]])
    tokenizer.no_padding()
    assert whole(batch).tolist() == [row.ids for row in theirs]
    assert batch.types.tolist() == [row.type_ids for row in theirs]
    assert batch.real.long().tolist() == [row.attention_mask for row in theirs]
    assert batch.follows.tolist() == [1, 1, 1]


@settings(max_examples=50, deadline=None)
@given(first=st.integers(1, 30), second=st.integers(1, 30), limit=st.integers(5, 40))
def test_what_is_too_long_is_cut_to_the_room_and_the_longer_sentence_more(first, second, limit):
    def column(n):
        return to_sequences(
            pa.chunked_array([pa.array([list(range(5, 5 + n))], pa.list_(pa.int32()))])
        )

    tokenizer = train_wordpiece(60, TEXTS)
    pairs = SentencePairs(
        column(first), column(second), extract_vocabulary(tokenizer, "x"), limit, False
    )
    ids = whole(pairs.make_batch(np.array([0]), np.random.default_rng(0)))[0].tolist()
    end = ids.index(3)
    a, b = ids[1:end], ids[end + 1 : -1]
    assert a == list(range(5, 5 + len(a))) and b == list(range(5, 5 + len(b)))
    assert len(ids) == min(first + second + 3, limit) and ids[0] == 2 and ids[-1] == 3
    half = (limit - 3) // 2
    assert len(a) >= min(first, half) and len(b) >= min(second, half)


def test_masks_have_berts_shares_and_never_fall_on_special_tokens(tokenizer):
    pairs = random_pairs(tokenizer, 3000)
    batch = pairs.make_batch(np.arange(3000), np.random.default_rng(0))
    ids, chosen = whole(batch), batch.labels.ne(IGNORED)
    special = ids.le(4)
    assert not (chosen & special).any() and (~special).sum() > 20_000
    share = chosen.sum() / (~special).sum()
    assert share == pytest.approx(0.15, abs=0.01)
    mask, same = batch.ids[chosen].eq(4), batch.ids[chosen].eq(batch.labels[chosen])
    assert mask.float().mean() == pytest.approx(0.8, abs=0.02)
    assert same.float().mean() == pytest.approx(0.1, abs=0.02)  # a random token is rarely the same
    assert torch.equal(batch.ids[~chosen], ids[~chosen])
    assert not torch.isin(batch.ids[chosen], torch.tensor([0, 2, 3])).any()


def test_half_of_the_second_sentences_are_others_of_about_the_same_length(tokenizer):
    pairs = random_pairs(tokenizer, 4000, next_sentence=True)
    rows = np.arange(4000)
    batch = pairs.make_batch(rows, np.random.default_rng(0))
    assert batch.follows.float().mean() == pytest.approx(0.5, abs=0.03)
    others = pairs._choose_others(rows, np.random.default_rng(1))
    assert (others != rows).all() and len(set(others)) > 2000
    rank = np.argsort(np.argsort(pairs.second.length, kind="stable"))
    assert np.abs(rank[others] - rank).max() <= NEIGHBOURS
    plain = SentencePairs(pairs.first, pairs.second, pairs.vocabulary, pairs.limit, False)
    own = whole(plain.make_batch(rows, np.random.default_rng(0)))
    true = batch.follows.bool().numpy()
    width = min(own.size(1), batch.ids.size(1))
    assert torch.equal(whole(batch)[true][:, :width], own[true][:, :width])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_pairs_have_few_others(tokenizer, count):
    pairs = random_pairs(tokenizer, count)
    others = pairs._choose_others(np.arange(count), np.random.default_rng(0))
    assert (others != np.arange(count)).all() if count > 1 else others.tolist() == [0]


def test_every_piece_has_the_sememes_of_its_word(tokenizer, folder):
    lexicon, count = read_sememe_lexicon(folder, tokenizer)
    assert count == 6
    pairs = pairs_of(
        tokenizer, [("the goat, goats", "runners on zzz goat"), ("an oar", "on")], lexicon=lexicon
    )
    batch = pairs.make_batch(np.array([0, 1]), np.random.default_rng(0))
    ids = whole(batch)
    for row in range(2):
        words: list[list[int]] = []
        for place, token in enumerate(ids[row].tolist()):
            if not tokenizer.id_to_token(token).startswith("##"):
                words.append([])
            words[-1].append(place)
        for places in words:
            word = "".join(
                tokenizer.id_to_token(ids[row, place]).removeprefix("##") for place in places
            )
            expected = SEMEMES.get(word, [])
            for place in places:
                gold = [sememe for sememe in batch.gold[row, place].tolist() if sememe != NONE]
                assert sorted(gold) == sorted(expected), word
                assert batch.share[row, place].item() == pytest.approx(bool(expected) / len(places))
    known = [
        w for w in ("goat", "goats", "runners", "on", "zzz") if 1 not in tokenizer.encode(w).ids
    ]
    assert (
        len(known) >= 4
        and max(len(tokenizer.encode(word, add_special_tokens=False).ids) for word in known) > 1
    )


def test_of_two_cases_of_a_word_the_one_that_the_text_has_counts(tokenizer, folder):
    """The capitalised keys come first alphabetically; `On` and `Tent` have no lower case."""
    cases = {
        "GOAT": [5],
        "Goat": [0],
        "goat": [4, 1],
        "ON": [3],
        "On": [2, 3],
        "Tent": [5],
        "tents": [0],
    }
    write_sememes(folder, dict(sorted(cases.items())))
    lexicon, _ = read_sememe_lexicon(folder, tokenizer)
    texts = ["goat", "Goat", "on", "tent"]
    batch = pairs_of(tokenizer, [(text, "zzz") for text in texts], lexicon=lexicon)
    batch = batch.make_batch(np.arange(4), np.random.default_rng(0))
    found = [sorted(n for n in batch.gold[row, 1].tolist() if n != NONE) for row in range(4)]
    assert found == [[1, 4], [1, 4], [2, 3], [5]]


def test_every_word_counts_once_however_many_pieces_it_has(tokenizer, folder):
    lexicon, _ = read_sememe_lexicon(folder, tokenizer)
    pieces = {
        word: len(tokenizer.encode(word, add_special_tokens=False).ids)
        for word in ("goat", "runners", "on")
    }
    assert min(pieces.values()) == 1 < max(pieces.values())
    texts = [("goat runners on", "on runners goat")] * 50
    every = pairs_of(tokenizer, texts, lexicon=lexicon)
    rows = np.arange(50)
    assert every.make_batch(rows, np.random.default_rng(0)).share.sum().item() == pytest.approx(300)


def test_words_are_found_however_many_there_are(tokenizer, folder):
    """Against a dictionary, for random words over a small alphabet."""
    rng = np.random.default_rng(0)
    words = sorted({"".join(rng.choice(list("gotanrus"), rng.integers(1, 7))) for _ in range(400)})
    sememes = {
        word: [int(n) for n in rng.choice(6, rng.integers(1, 4), replace=False)]
        for word in words[::2]
    }
    write_sememes(folder, sememes)
    lexicon, _ = read_sememe_lexicon(folder, tokenizer)
    pairs = pairs_of(tokenizer, [(word, word) for word in words], lexicon=lexicon)
    batch = pairs.make_batch(np.arange(len(words)), np.random.default_rng(0))
    for row, word in enumerate(words):
        expected = [] if 1 in tokenizer.encode(word).ids else sorted(sememes.get(word, []))
        assert sorted(n for n in batch.gold[row, 1].tolist() if n != NONE) == expected


def test_batches_of_a_run_are_sampled_again_and_follow_numpys_generator(tokenizer):
    pairs = random_pairs(tokenizer, 200, next_sentence=True)
    drawn = make_random_batches(pairs, bucket_pairs(pairs, 256, None), CPU)
    np.random.seed(5)
    first = [drawn[0], drawn[0]]
    np.random.seed(5)
    again = [drawn[0], drawn[0]]
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.ids, other.ids) and torch.equal(one.follows, other.follows)
    assert first[0].ids.shape != first[1].ids.shape or not torch.equal(first[0].ids, first[1].ids)
    assert sorted(np.concatenate(drawn.rows)) == list(range(200))
    assert (
        max(
            len(rows) * (pairs.first.length + pairs.second.length)[rows].max()
            for rows in drawn.rows
        )
        <= 256
    )


def test_masks_of_validation_are_always_the_same_and_leave_the_run_alone(tokenizer):
    pairs = random_pairs(tokenizer, 100, next_sentence=True)
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    one, other = make_fixed_batches(pairs, 512, CPU), make_fixed_batches(pairs, 512, CPU)
    assert np.random.get_state()[1].tolist() == before
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(one, other, strict=True))


def test_another_tokenizer_or_broken_sememes_are_one_line(tokenizer, folder):
    from tokenizers import Tokenizer, models

    with pytest.raises(
        UserError, match=r"is no tokenizer of BERT's or RoBERTa's kind: it has neither \[PAD\]"
    ):
        extract_vocabulary(Tokenizer(models.BPE()), folder / "tokenizer.json")
    write_json(folder / "sememe_names.json", NAMES[:3])
    with pytest.raises(UserError, match="disagree"):
        read_sememe_lexicon(folder, tokenizer)

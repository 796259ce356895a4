"""Replacement of words by synonyms, and the measures of what it does, against oracles of their own."""

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.synonyms import perturb

WORDS = ["dog", "Dogs,", '"big', "(car)", "the", "...", "well-known", "ran.", "Über"]
CANDIDATES = ["animal", "domestic dog", "large", "auto"]  # none of them is a word of WORDS


@st.composite
def items(draw):
    """(content, position -> candidates); a word of punctuation alone is never eligible."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=12))
    spaces = draw(
        st.lists(st.sampled_from([" ", "  ", "\n"]), min_size=len(words), max_size=len(words))
    )
    texts = st.lists(st.sampled_from(CANDIDATES), min_size=1, max_size=4, unique=True)
    positions = [i for i, word in enumerate(words) if word != "..."]
    eligible = {i: draw(texts) for i in positions if draw(st.booleans())}
    return "".join(map(str.__add__, words, spaces)), eligible


RATES = st.sampled_from([0.1, 0.25, 0.29, 0.4, 1.0])
SEEDS = st.integers(0, 2**31 - 1)


def changed(before: str, after: str) -> list[tuple[str, str]]:
    """(word, what it became) of every word of WORDS; a candidate of two words counts as one."""
    joined = after.replace("domestic dog", "domestic_dog").replace("Domestic dog", "Domestic_dog")
    return list(zip(before.split(), joined.split(), strict=True))


@given(items(), RATES, SEEDS)
@settings(deadline=None)
def test_as_many_words_change_as_should_and_all_others_stay(item, rate, seed):
    content, eligible = item
    (text,), (realised,) = perturb([content], {content: eligible}, rate, seed)
    pairs = changed(content, text)
    different = [i for i, (old, new) in enumerate(pairs) if old != new]
    expected = min(max(1, math.floor(round(rate * len(pairs), 9))), len(eligible))
    assert len(different) == expected
    assert realised == (expected / len(pairs) if pairs else 0)
    assert set(different) <= set(eligible)
    for i in different:
        old, new = pairs[i]
        core = old.strip('"(),.')
        before, after = old.split(core)
        assert new.startswith(before) and new.endswith(after)
        replacement = new[len(before) : len(new) - len(after)].replace("_", " ")
        assert replacement.lower() in eligible[i]
        assert replacement[0].isupper() == core[0].isupper()
    # The white space between the words stays as well.
    assert [c for c in text.replace("estic dog", "estic_dog") if c.isspace()] == [
        c for c in content if c.isspace()
    ]


@given(
    st.lists(items(), max_size=6, unique_by=lambda item: item[0]),
    RATES,
    SEEDS,
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_the_order_and_the_choice_of_items_do_not_matter(found, rate, seed, random):
    contents, candidates = [content for content, _ in found], dict(found)
    keys = [f"item {i}" for i in range(len(contents))]
    texts, realised = perturb(contents, candidates, rate, seed, items=keys)
    by_key = dict(zip(keys, zip(texts, realised, strict=True), strict=True))
    some = random.sample(range(len(contents)), random.randint(0, len(contents)))
    again = perturb(
        [contents[i] for i in some], candidates, rate, seed, items=[keys[i] for i in some]
    )
    assert list(zip(*again, strict=True)) == [by_key[keys[i]] for i in some]


def test_seeds_rates_and_items_draw_anew():
    content = " ".join(f"w{i}" for i in range(40))
    candidates = {content: {i: [f"s{i}", f"t{i}"] for i in range(40)}}
    texts = [perturb([content], candidates, 0.25, seed)[0][0] for seed in range(50)]
    assert len(set(texts)) == 50
    assert (
        len(set(perturb([content] * 50, candidates, 0.25, 1, items=[str(i) for i in range(50)])[0]))
        == 50
    )
    quarter, more = (perturb([content], candidates, rate, 1)[0][0] for rate in (0.25, 0.26))
    assert quarter != more  # ten words in both


def test_positions_and_candidates_are_drawn_uniformly():
    content = "a1 b1 c1 d1 e1"
    candidates = {
        content: {0: ["x", "y", "z"], 2: ["x", "y", "z"], 3: ["x", "y", "z"], 4: ["x", "y", "z"]}
    }
    texts, _ = perturb([content] * 6000, candidates, 0.4, 7, items=[str(i) for i in range(6000)])
    drawn = Counter()
    for text in texts:
        drawn.update((i, word) for i, word in enumerate(text.split()) if word in "xyz")
    assert sum(drawn.values()) == 12_000
    assert len(drawn) == 12
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-4


def test_number_of_replacements_is_that_of_decimal_arithmetic():
    def count_changes(words: int, rate: float, eligible: int) -> int:
        content = " ".join(["word"] * words)
        (text,), _ = perturb([content], {content: {i: ["other"] for i in range(eligible)}}, rate, 1)
        return text.split().count("other")

    assert count_changes(100, 0.29, 100) == 29  # 0.29 * 100 is 28.999999999999996
    assert [count_changes(n, 0.25, n) for n in (1, 3, 4, 7, 8)] == [1, 1, 1, 1, 2]
    assert count_changes(8, 0.25, 1) == 1
    assert count_changes(8, 0.25, 0) == 0


def test_no_word_becomes_the_label_nor_part_of_it():
    content, table = "hound", {0: ["dog", "domestic dog", "hot dog", "animal"]}
    keys = [str(i) for i in range(200)]
    many = [content] * 200
    free, _ = perturb(many, {content: table}, 0.25, 1, items=keys)
    assert set(free) == set(table[0])
    kept, _ = perturb(many, {content: table}, 0.25, 1, items=keys, labels=["Dog"] * 200)
    assert set(kept) == {"animal"}
    joined, _ = perturb(many, {content: table}, 0.25, 1, items=keys, labels=["hotdog"] * 200)
    assert set(joined) == {"dog", "domestic dog", "animal"}
    none, realised = perturb(["hound"], {"hound": {0: ["dog"]}}, 0.25, 1, labels=["dog"])
    assert (none, realised) == (["hound"], [0.0])


def test_a_content_that_the_table_lacks_is_one_line():
    with pytest.raises(
        UserError, match=r"^synonyms: the table of candidates has no content of item 'n01'"
    ):
        perturb(["dog"], {}, 0.25, 1, items=["n01"])

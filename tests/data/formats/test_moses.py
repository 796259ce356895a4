"""Moses tokenisation: known outputs of its scripts, and the faster test for letters compared with
the library.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesTokenizer

from workflow_scripts.data.formats.moses import tokenise_moses, tokenise_pairs


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("en", "It's a well-known fact (see U.N. reports), isn't it?", None),
        ("en", 'Mr. Smith said: "3,5 million".', "Mr. Smith said : &quot; 3,5 million . &quot;"),
        ("de", "Das ist - z. B. - gut.", "Das ist - z. B. - gut ."),
        ("fr", "L'Union européenne n'a pas", "L&apos; Union européenne n&apos; a pas"),
        ("en", "“Quoted” – and…", "&quot; Quoted &quot; - and ..."),
        ("en", "bell\x07 and\u200bspace", "bell and space"),
    ],
)
def test_lines_by_hand(language, line, expected):
    expected = (
        expected or "It &apos;s a well @-@ known fact ( see U.N. reports ) , isn &apos;t it ?"
    )
    assert tokenise_moses(line, language, normalise=True) == expected


def test_test_sets_are_not_normalised():
    assert tokenise_moses("“so” – 1", "en", normalise=False) == "“ so ” – 1"


@given(st.text(max_size=40), st.sampled_from(["en", "de", "fr"]))
def test_the_faster_tokenizer_is_the_librarys(line, language):
    slow = MosesTokenizer(lang=language).tokenize(
        line, aggressive_dash_splits=True, return_str=True
    )
    assert tokenise_moses(line, language, normalise=False) == slow


def test_characters_and_ends_of_tokens():
    english, german, characters, last = tokenise_pairs([("ab.", "c d"), ("", "")], "en", "de")
    assert (english, german) == (["ab .", ""], ["c d", ""])
    assert (characters, last) == (set("ab.cd"), set("b.cd"))

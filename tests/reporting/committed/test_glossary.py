"""The abbreviations of a statement are explained by the glossary."""

from tests.analyses.small_runs import ROOT
from workflow_scripts.reporting.committed.glossary import explain_words

ROWS = """# Glossary

| word | meaning |
|---|---|
| IDM, SC | two tasks: `words` from definitions ([code](a.py), [more](b.py)); and others |
| H(Z) | an [entropy](c.md) |
| run | one training |
"""


def test_words_with_a_capital_letter_have_the_first_part_of_their_meaning(tmp_path):
    glossary = tmp_path / "glossary.md"
    glossary.write_text(ROWS)
    assert explain_words(glossary, "a run on SC with H(Z)") == {
        "IDM, SC": "two tasks: words from definitions",
        "H(Z)": "an entropy",
    }
    assert explain_words(glossary, "a run on SCAN") == {}


def test_without_the_glossary_nothing_is_explained(tmp_path):
    assert explain_words(tmp_path / "glossary.md", "SC") == {}


def test_the_words_of_a_claim_on_pooling_are_in_the_glossary():
    statement = "Under CAP at the first block CARMA beats fine-tuning alone on SC"
    words = explain_words(ROOT / "docs/glossary.md", statement)
    assert list(words) == ["IDM, SC", "FT, CARMA", "CAP"]

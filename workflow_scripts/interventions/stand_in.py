"""Resources for synonyms without a download, for the demo: the stand-in dictionary and a tagger that looks words up."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.data.stand_ins import wordnet
from workflow_scripts.interventions.lexicon import WordNet, read_wordnet
from workflow_scripts.interventions.synonym_rules import PART_OF_SPEECH, SynonymResources


@dataclass(frozen=True)
class LookUpTagger:
    """Gives a word the first part of speech that the dictionary has for it; an unknown word is tagged as a comma."""

    lexicon: WordNet

    def tag(self, tokens: list[str]) -> list[tuple[str, str]]:
        """Return (token, Penn Treebank tag) of each token."""
        return [
            (
                token,
                next(
                    (tag for tag, pos in PART_OF_SPEECH.items() if self.lexicon.find_base_forms(token.lower(), pos)),
                    ",",
                ),
            )
            for token in tokens
        ]


def make_stand_in_resources() -> SynonymResources:
    """Return the dictionary of `stand_ins.wordnet`, scikit-learn's stop words, and a tagger that looks words up."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    with tempfile.TemporaryDirectory() as folder:
        wordnet.write_wordnet(Path(folder))
        lexicon = read_wordnet(Path(folder))
    return SynonymResources(ENGLISH_STOP_WORDS, LookUpTagger(lexicon), lexicon)

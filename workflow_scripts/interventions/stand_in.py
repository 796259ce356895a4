"""Resources for synonyms without a download: the stand-in dictionary, and a tagger that uses it."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.data.stand_ins import wordnet
from workflow_scripts.interventions.lexicon import SynonymLexicon, read_synonym_lexicon
from workflow_scripts.interventions.synonym_rules import PART_OF_SPEECH, SynonymResources


@dataclass(frozen=True)
class LookUpTagger:
    """A tagger that returns the first part of speech of a word in the dictionary, and a comma for unknown words."""

    lexicon: SynonymLexicon

    def tag(self, tokens: list[str]) -> list[tuple[str, str]]:
        """Return (token, Penn Treebank tag) of each token."""

        def find_tag(word: str) -> str:
            return next((tag for tag, pos in PART_OF_SPEECH.items() if self.lexicon.find_base_forms(word, pos)), ",")

        return [(token, find_tag(token.lower())) for token in tokens]


def make_stand_in_resources() -> SynonymResources:
    """Return the dictionary of `stand_ins.wordnet`, its tagger, and scikit-learn's stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    with tempfile.TemporaryDirectory() as folder:
        wordnet.write_wordnet(Path(folder))
        lexicon = read_synonym_lexicon(Path(folder))
    return SynonymResources(ENGLISH_STOP_WORDS, LookUpTagger(lexicon), lexicon)

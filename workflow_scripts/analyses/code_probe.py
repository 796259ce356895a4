"""Part of speech predicted from a word's code alone (appendix C.1).

The probe is linear on the one-hot code. Its maximum-likelihood weights are known: each code gets the tags' shares among
its tokens, so that it predicts the tag most frequent there. On the vectors of K codes in d >= K dimensions, which are
linearly independent but by accident, a linear probe with a bias can do no better.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.analyses.embedding_space import assign_source_codes
from workflow_scripts.analyses.trained_runs import AnalysisResult, TrainedRun, make_score_row
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import merge_options
from workflow_scripts.evaluation.compounds import PART_OF
from workflow_scripts.interventions.nltk_files import load_tagger

TAGGER = "nltk/averaged_perceptron_tagger_eng.zip"

Tagged = list[tuple[str, str]]  # word and tag of each token


def find_most_frequent_tags(classes: Sequence[Hashable], tags: Sequence[str]) -> dict[Hashable, str]:
    """The tag that each class has most often; of equals the first in the alphabet."""
    counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for class_, tag in zip(classes, tags, strict=True):
        counts[class_][tag] += 1
    return {class_: min(found, key=lambda tag: (-found[tag], tag)) for class_, found in counts.items()}


def compute_probe_accuracy(classes: Sequence[Hashable], tags: Sequence[str], probe: dict[Hashable, str]) -> float:
    """Share (percent) of tokens whose tag is that of their class; a class that the probe has not seen is wrong."""
    right = sum(probe.get(class_) == tag for class_, tag in zip(classes, tags, strict=True))
    return 100 * right / len(tags)


def tag_stand_in_words(words: Sequence[str]) -> Tagged:
    """Word and tag of the words of made-up sentences, which need no tagger: their part of speech in compounds."""
    return [(word, PART_OF.get(word, "other")) for word in words]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any], sources: dict[str, Path]) -> AnalysisResult:
    """Accuracy of the probe on the tokens of a split, fitted on those of the training set; of runs with codes.

    options:
        split: whose tokens are predicted; sentences: at most so many distinct ones of each set, its first, are tagged.
    Tags are the Penn Treebank's, by NLTK's averaged perceptron in context. Scores, in percent: `pos_accuracy` from
    codes, and for comparison `pos_accuracy_none` from nothing (the tag most frequent in training) and
    `pos_accuracy_words` from the word itself, which bounds what a code of a word can tell.
    """
    given = merge_options(options, split="test", sentences=20000)
    tag = tag_stand_in_words
    if any(run.protocol != "stand_in" for run in runs):
        if TAGGER not in sources:
            raise UserError(f"displays.yaml: the analysis needs the source {TAGGER}; name it under its sources")
        tag = load_tagger(sources[TAGGER]).tag
    tagged: dict[tuple[str, str], Tagged] = {}
    scores, notes = [], []
    for run in runs:
        model, words = run.load()
        codes = assign_source_codes(model, range(len(words)))
        if codes is None:
            notes.append(f"{run}: a model without codes")
            continue
        code = dict(zip(words, codes, strict=True))
        for split in ("train", given["split"]):
            if (run.task, split) not in tagged:
                sentences = list(dict.fromkeys(run.read_pairs(split)["source"]))[: given["sentences"]]
                tagged[run.task, split] = [pair for sentence in sentences for pair in tag(sentence.split(" "))]
        fitted, tested = tagged[run.task, "train"], tagged[run.task, given["split"]]
        tags, expected = ([tag_ for _, tag_ in tokens] for tokens in (fitted, tested))
        # A word that training never had has no code of its own.
        for name, of in {"": code.get, "_words": str, "_none": lambda word: ""}.items():
            classes, others = ([of(word) for word, _ in tokens] for tokens in (fitted, tested))
            value = compute_probe_accuracy(others, expected, find_most_frequent_tags(classes, tags))
            scores.append(
                make_score_row(run, f"pos_accuracy{name}", value, "percent", len(tested), split=given["split"])
            )
    return AnalysisResult(scores, {}, notes)

"""Part of speech predicted from a word's code alone (appendix C.1).

The probe is linear on the one-hot code, so by maximum likelihood the most frequent tag of a code wins. K code vectors
in d >= K dimensions are almost always linearly independent: a linear probe on them can do no better.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.analyses.embedding_space import assign_codes
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.compounds import PART_OF
from workflow_scripts.interventions.settings import TAGGER
from workflow_scripts.interventions.synonym_resources import load_tagger

Tagged = list[tuple[str, str]]  # word and tag of each token


def find_most_frequent_tags(
    classes: Sequence[Hashable], tags: Sequence[str]
) -> dict[Hashable, str]:
    """Find the most frequent tag of each class, the alphabetically first of equally frequent ones."""
    counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for class_, tag in zip(classes, tags, strict=True):
        counts[class_][tag] += 1
    return {
        class_: min(found, key=lambda tag: (-found[tag], tag)) for class_, found in counts.items()
    }


def compute_probe_accuracy(
    classes: Sequence[Hashable], tags: Sequence[str], probe: dict[Hashable, str]
) -> float:
    """Compute the share (percent) of tokens with the tag of their class; a class without a tag counts as wrong."""
    right = sum(probe.get(class_) == tag for class_, tag in zip(classes, tags, strict=True))
    return 100 * right / len(tags)


def analyse(
    runs: Sequence[TrainedRun], options: dict[str, Any], sources: dict[str, Path]
) -> AnalysisResult:
    """Score a probe that is fitted on the tokens of the training set and predicts those of a split.

    options: split: whose tokens are predicted; sentences: how many distinct ones of each set are tagged at most.
    Tags are those of the Penn Treebank, by NLTK's averaged perceptron in context. Scores, in percent: `pos_accuracy`
    from codes; for comparison `pos_accuracy_none` without any input (the most frequent tag in training) and
    `pos_accuracy_words` from the word itself, an upper bound. Runs without codes get a note.
    """
    given = merge_options(options, split="test", sentences=20000)
    if all(run.protocol == "stand_in" for run in runs):

        def tag(words: list[str]) -> Tagged:
            return [(word, PART_OF.get(word, "other")) for word in words]
    else:
        if TAGGER not in sources:
            raise UserError(
                f"displays.yaml: the analysis needs the source {TAGGER}; name it under its sources"
            )
        tag = load_tagger(sources[TAGGER]).tag
    tagged: dict[tuple[str, str], Tagged] = {}
    scores, notes = [], []
    for run in runs:
        model, words = run.load()
        codes = assign_codes(model, "source", range(len(words)))
        if codes is None:
            notes.append(f"{run}: a model without codes")
            continue
        code = dict(zip(words, codes, strict=True))
        for split in ("train", given["split"]):
            if (run.task, split) not in tagged:
                sentences = list(dict.fromkeys(run.read_pairs(split)["source"]))[
                    : given["sentences"]
                ]
                tagged[run.task, split] = [
                    pair for sentence in sentences for pair in tag(sentence.split(" "))
                ]
        fitted, tested = tagged[run.task, "train"], tagged[run.task, given["split"]]
        tags, expected = ([tag_ for _, tag_ in tokens] for tokens in (fitted, tested))
        # Words that are not in the training data share the class None.
        for name, classify in {"": code.get, "_words": str, "_none": lambda word: ""}.items():
            classes, others = (
                [classify(word) for word, _ in tokens] for tokens in (fitted, tested)
            )
            value = compute_probe_accuracy(others, expected, find_most_frequent_tags(classes, tags))
            values = {f"pos_accuracy{name}": (value, "percent", len(tested))}
            scores += run.make_scores(values, split=given["split"])
    return AnalysisResult(scores, {}, notes)

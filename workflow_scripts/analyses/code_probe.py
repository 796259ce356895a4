"""Part of speech predicted from a word's code alone (appendix C.1).

The probe is linear on the one-hot code, so by maximum likelihood the most frequent tag of a code
wins. K code vectors in d >= K dimensions are almost always linearly independent: a linear probe on
them can do no better.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.analyses.embedding_space import assign_codes
from workflow_scripts.analyses.options.code_probe import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, find_most_frequent
from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.compounds import PART_OF
from workflow_scripts.interventions.settings import TAGGER
from workflow_scripts.interventions.synonym_resources import load_tagger


class TaggedTokens(NamedTuple):
    """Tokens of a split: the word and the tag of each."""

    words: list[str]
    tags: list[str]


Tagger = Callable[[list[str]], list[tuple[str, str]]]  # words of a sentence -> word and tag of each


def find_most_frequent_tags(
    classes: Sequence[Hashable], tags: Sequence[str]
) -> dict[Hashable, str]:
    """Find the most frequent tag of each class, of equals the first in the alphabet."""
    counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for class_, tag in zip(classes, tags, strict=True):
        counts[class_][tag] += 1
    return {class_: find_most_frequent(of_class) for class_, of_class in counts.items()}


def compute_probe_accuracy(
    classes: Sequence[Hashable], tags: Sequence[str], probe: dict[Hashable, str]
) -> float:
    """Compute the share (percent) of tokens with the tag of their class.

    A class without a tag counts as wrong.
    """
    right = sum(probe.get(class_) == tag for class_, tag in zip(classes, tags, strict=True))
    return 100 * right / len(tags)


def analyse(
    runs: Sequence[TrainedRun], options: Options, sources: dict[str, Path]
) -> AnalysisResult:
    """Score a probe that is fitted on the tokens of the training set and predicts those of a split.

    Tags are those of the Penn Treebank, by NLTK's averaged perceptron in context.
    Scores, in percent: `pos_accuracy` from codes; for comparison `pos_accuracy_none` without any
    input (the most frequent tag in training) and `pos_accuracy_words` from the word itself, an
    upper bound. Runs without codes get a note.
    """
    split = options.split
    tagger = load_data_tagger(runs, sources)
    tagged: dict[tuple[str, str], TaggedTokens] = {}  # by task and split
    result = AnalysisResult()
    for run in runs:
        model, words = run.load()
        codes = assign_codes(model, "source", range(len(words)))
        if codes is None:
            result.notes.append(f"{run}: a model without codes")
            continue
        for name in ("train", split):
            if (run.task, name) not in tagged:
                tagged[run.task, name] = tag_split(run, name, options.sentences, tagger)
        train = tagged[run.task, "train"]
        tested = tagged[run.task, split]
        code_of = dict(zip(words, codes, strict=True))
        # Words that are not in the training data share the class None.
        classes_of_words = {
            "pos_accuracy": code_of.get,
            "pos_accuracy_words": str,
            "pos_accuracy_none": lambda word: "",
        }
        for metric, classify in classes_of_words.items():
            train_classes = [classify(word) for word in train.words]
            tested_classes = [classify(word) for word in tested.words]
            probe = find_most_frequent_tags(train_classes, train.tags)
            accuracy = compute_probe_accuracy(tested_classes, tested.tags, probe)
            values = {metric: (accuracy, "percent", len(tested.tags))}
            result.scores += run.make_scores(values, split=split)
    return result


def load_data_tagger(runs: Sequence[TrainedRun], sources: dict[str, Path]) -> Tagger:
    """Load NLTK's tagger, or for stand-in data one that looks up the words of its grammar."""
    if all(run.protocol == "stand_in" for run in runs):
        return lambda words: [(word, PART_OF.get(word, "other")) for word in words]
    if TAGGER not in sources:
        raise UserError(
            f"displays.yaml: the analysis needs the source {TAGGER}; name it under its sources"
        )
    return load_tagger(sources[TAGGER]).tag


def tag_split(run: TrainedRun, split: str, count: int, tagger: Tagger) -> TaggedTokens:
    """Tag the first `count` distinct source sentences of a split."""
    distinct = list(dict.fromkeys(run.read_pairs(split)["source"]))
    tokens = TaggedTokens([], [])
    for sentence in distinct[:count]:
        for word, tag in tagger(sentence.split(" ")):
            tokens.words.append(word)
            tokens.tags.append(tag)
    return tokens

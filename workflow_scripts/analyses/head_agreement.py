"""How often an attention head looks at the same place in two sentences of one structure (section 5.3)."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.attention_maps import encoder_maps
from workflow_scripts.analyses.embedding_space import END, codes_of, word_classes
from workflow_scripts.analyses.options import options_from
from workflow_scripts.analyses.trained import RUN_COLUMNS, Analysis, TrainedRun, score, sentence_ids

COLUMNS = [*RUN_COLUMNS, "item_set", "first", "second", "agreement"]


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Share (0..1) of (layer, head, query) whose largest weight is on the same key, for maps [layers, heads, S, S].

    Of equal weights the first counts as the largest.
    """
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def draw_pairs(structures: Sequence[Hashable], count: int, seed: int) -> list[tuple[int, int]]:
    """At most `count` pairs of positions with one structure, drawn at random; no position is used twice.

    Structures take turns, so that a common one does not crowd out the others: each gives a pair, those that still
    have two sentences give another, and so on.
    """
    generator = np.random.default_rng(seed)
    groups: dict[Hashable, list[int]] = {}
    for position in generator.permutation(len(structures)).tolist():
        groups.setdefault(structures[position], []).append(position)
    pairs: list[tuple[int, int]] = []
    for turn in range(0, max(map(len, groups.values()), default=0), 2):
        pairs += [(members[turn], members[turn + 1]) for members in groups.values() if len(members) > turn + 1]
    return pairs[:count]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> Analysis:
    """Agreement of the encoder's heads in pairs of sentences of one structure, in percent, every run on the same pairs.

    options:
        codes_from: by task, {method, variant} of the run whose codes say which sentences have one structure; it serves
            all runs of its task and seed. Score `head_agreement` (item_set codes), as in section 5.3.
        classes: by task, `scan` or `cogs`: pairs of one sequence of syntactic classes instead, which are no model's
            own. Score `head_agreement_classes` (item_set classes).
        split, pairs, seed: where the sentences come from, and how many pairs are drawn. The paper has 48 pairs of
            CoGnition, chosen by hand.
    The paper counts "attention heads that assign the highest weight to the same token"; here every (layer, head,
    query) counts once, the closing EOS as a query among them. Sentences with words that the run never saw are left out.
    """
    given = options_from(options, codes_from={}, classes={}, split="test", pairs=1000, seed=0)
    scores, rows, notes = [], [], []
    by_name = {str(run): run for run in runs}
    for run in runs:
        model, words = run.load()
        sentences = run.sentences(given["split"], words)
        ids = [sentence_ids(sentence, words, run) for sentence in sentences]
        structures: dict[str, list[Hashable]] = {}
        if run.task in given["codes_from"]:
            coder = str(replace(run, **given["codes_from"][run.task]))
            if coder in by_name:
                code = codes_of(by_name[coder].load()[0], range(len(words)))
                structures["codes"] = [tuple(code[i] for i in sentence) for sentence in ids]
            else:
                notes.append(f"{run}: no pairs of one code sequence, for {coder} was not run")
        if run.task in given["classes"]:
            of_class = {**word_classes(run, words, given["classes"][run.task]), END: END}
            structures["classes"] = [tuple(of_class[words[i]] for i in sentence) for sentence in ids]
        for item_set, of_sentence in structures.items():
            drawn = draw_pairs(of_sentence, given["pairs"], given["seed"])
            if not drawn:
                notes.append(f"{run}: no two sentences of {given['split']} have one sequence of {item_set}")
                continue
            sides = [encoder_maps(model, [ids[i] for i in side]) for side in zip(*drawn, strict=True)]
            shares = [100 * agreement(first, second) for first, second in zip(*sides, strict=True)]
            metric = "head_agreement" if item_set == "codes" else "head_agreement_classes"
            more = {"split": given["split"], "item_set": item_set}
            scores.append(score(run, metric, float(np.mean(shares)), "percent", len(shares), **more))
            for (first, second), share in zip(drawn, shares, strict=True):
                pair = {
                    "item_set": item_set,
                    "first": sentences[first],
                    "second": sentences[second],
                    "agreement": share,
                }
                rows.append({**run.columns(), **pair})
    return Analysis(scores, {"pairs": pandas.DataFrame(rows, columns=COLUMNS)}, notes)

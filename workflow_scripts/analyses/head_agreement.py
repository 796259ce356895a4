"""How often an attention head looks at the same place in two sentences of one structure (section 5.3)."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.attention_maps import compute_encoder_attention
from workflow_scripts.analyses.embedding_space import END, assign_source_codes, find_word_classes
from workflow_scripts.analyses.trained_runs import (
    RUN_COLUMNS,
    AnalysisResult,
    TrainedRun,
    encode_sentence,
    make_score_row,
)
from workflow_scripts.common.options import merge_options

METRICS = {
    "codes": "head_agreement",
    "classes": "head_agreement_classes",
    "printed": "head_agreement_printed",
}
COLUMNS = [*RUN_COLUMNS, "item_set", "pair", "first", "second", "agreement", "same_codes"]


def compute_agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Share (0..1) of (layer, head, query) whose largest weight is on the same key, for maps [layers, heads, S, S].

    Of equal weights the first counts as the largest.
    """
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def sample_pairs(structures: Sequence[Hashable], count: int, seed: int) -> list[tuple[int, int]]:
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


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Agreement of the encoder's heads in pairs of sentences of one structure, in percent, every run on the same pairs.

    options:
        codes_from: by task, {method, variant} of the run whose codes say which sentences have one structure; it serves
            all runs of its task and seed. Score `head_agreement` (item_set codes), as in section 5.3.
        classes: by task, `scan` or `cogs`: pairs of one sequence of syntactic classes instead, which are no model's
            own. Score `head_agreement_classes` (item_set classes).
        rows: by task, pairs of rows of the split (from 0), such as the paper's own pairs. Score
            `head_agreement_printed` (item_set printed). Pairs of unequal length cannot be compared, and are left out.
            Of the run that gives the codes also `printed_same_codes`: the share of these pairs that have one sequence
            of its codes, in percent.
        split, pairs, seed: where the sentences come from, and how many pairs are drawn. The paper has 48 pairs of
            CoGnition (table 6).
    The paper counts "attention heads that assign the highest weight to the same token"; here every (layer, head,
    query) counts once, the closing EOS as a query among them. Sentences with words that the run never saw are left out.
    """
    given = merge_options(options, codes_from={}, classes={}, rows={}, split="test", pairs=1000, seed=0)
    scores, rows, notes = [], [], []
    by_name = {str(run): run for run in runs}
    for run in runs:
        model, words = run.load()
        sentences = run.list_sentences(given["split"], words)
        ids = [encode_sentence(sentence, words, run) for sentence in sentences]
        structures: dict[str, list[Hashable]] = {}
        code, coder = None, ""
        if run.task in given["codes_from"]:
            coder = str(replace(run, **given["codes_from"][run.task]))
            if coder in by_name:
                code = dict(zip(words, assign_source_codes(by_name[coder].load()[0], range(len(words))), strict=True))
                structures["codes"] = [tuple(code[words[i]] for i in sentence) for sentence in ids]
            else:
                notes.append(f"{run}: no pairs of one code sequence, for {coder} was not run")
        if run.task in given["classes"]:
            of_class = {**find_word_classes(run, words, given["classes"][run.task]), END: END}
            structures["classes"] = [tuple(of_class[words[i]] for i in sentence) for sentence in ids]
        chosen = {name: sample_pairs(of_each, given["pairs"], given["seed"]) for name, of_each in structures.items()}
        compared = {
            name: {number: (sentences[i], sentences[j]) for number, (i, j) in enumerate(pairs, start=1)}
            for name, pairs in chosen.items()
        }
        if run.task in given["rows"]:
            printed = select_printed_pairs(
                run.read_pairs(given["split"])["source"].tolist(), given["rows"][run.task], words
            )
            notes.append(f"{run}: {len(printed)} of {len(given['rows'][run.task])} pairs of rows can be compared")
            compared["printed"] = printed
        for item_set, pairs in compared.items():
            if not pairs:
                if item_set != "printed":
                    notes.append(f"{run}: no two sentences of {given['split']} have one sequence of {item_set}")
                continue
            sides = [
                compute_encoder_attention(model, [encode_sentence(s, words, run) for s in side])
                for side in zip(*pairs.values(), strict=True)
            ]
            shares = [100 * compute_agreement(first, second) for first, second in zip(*sides, strict=True)]
            same = [have_same_codes(first, second, code) for first, second in pairs.values()]
            more = {"split": given["split"], "item_set": item_set}
            scores.append(
                make_score_row(run, METRICS[item_set], float(np.mean(shares)), "percent", len(shares), **more)
            )
            if item_set == "printed" and coder == str(run):
                scores.append(
                    make_score_row(run, "printed_same_codes", 100 * float(np.mean(same)), "percent", len(same), **more)
                )
            for (number, (first, second)), share, alike in zip(pairs.items(), shares, same, strict=True):
                pair = {"pair": number, "first": first, "second": second, "agreement": share, "same_codes": alike}
                rows.append({**run.columns, "item_set": item_set, **pair})
    return AnalysisResult(scores, {"pairs": pandas.DataFrame(rows, columns=COLUMNS)}, notes)


def have_same_codes(first: str, second: str, code: dict[str, int] | None) -> bool | None:
    """Whether two sentences have one sequence of codes; None without codes."""
    return None if code is None else [code[word] for word in first.split()] == [code[word] for word in second.split()]


def select_printed_pairs(
    sources: Sequence[str], rows: Sequence[tuple[int, int]], words: Sequence[str]
) -> dict[int, tuple[str, str]]:
    """Sentences of pairs of rows, by number from 1: of those that are there, have known words only and one length."""
    known, found = set(words), {}
    for number, pair in enumerate(rows, start=1):
        if max(pair) < len(sources):
            first, second = (sources[row] for row in pair)
            one, other = first.split(), second.split()
            if len(one) == len(other) and known.issuperset(one + other):
                found[number] = first, second
    return found

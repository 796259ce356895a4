"""How often an attention head attends most to the same position in two sentences of one structure (section 5.3)."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.attention_maps import compute_encoder_attention
from workflow_scripts.analyses.embedding_space import END, assign_codes, find_word_classes
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import RUN_COLUMNS, TrainedRun, encode_sentences
from workflow_scripts.common.plug_ins import merge_options

METRICS = {"codes": "head_agreement", "classes": "head_agreement_classes", "printed": "head_agreement_printed"}
COLUMNS = [*RUN_COLUMNS, "item_set", "pair", "first", "second", "agreement", "same_codes"]

Pairs = dict[int, tuple[str, str]]  # sentences by the number of their pair, from 1


def compute_agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the share (0 to 1) of (layer, head, query) whose (first) largest weight in [..., S] is on one key."""
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def sample_pairs(structures: Sequence[Hashable], count: int, seed: int) -> list[tuple[int, int]]:
    """Sample at most `count` pairs of positions with one structure, no position twice; structures take turns."""
    generator = np.random.default_rng(seed)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for position in generator.permutation(len(structures)).tolist():
        groups[structures[position]].append(position)
    pairs: list[tuple[int, int]] = []
    for turn in range(0, max(map(len, groups.values()), default=0), 2):
        pairs += [(members[turn], members[turn + 1]) for members in groups.values() if len(members) > turn + 1]
    return pairs[:count]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Score how many (layer, head, query) attend most to one position in both sentences of a pair of one structure.

    In percent, for each run. Options given by task are mappings from its name.

    options:
        codes_from: by task, {method, variant} of the run of the same seed whose codes define a structure. Score
            `head_agreement` (item_set codes), as in section 5.3.
        classes: by task, `scan` or `cogs`: a structure is a sequence of syntactic classes, independent of any model.
            Score `head_agreement_classes` (item_set classes).
        rows: by task, pairs of rows of the split (from 0), such as the paper's own. Score `head_agreement_printed`
            (item_set printed). Pairs of different lengths are left out. For the run of `codes_from` also
            `printed_same_codes`: the share of pairs with one sequence of its codes, in percent.
        split, pairs, seed: the split of the sentences, and how many pairs are sampled.
    The paper counts "attention heads that assign the highest weight to the same token"; here every (layer, head,
    query) counts once, and EOS is a query. Sentences with words that are not in the training data are left out.
    """
    given = merge_options(options, codes_from={}, classes={}, rows={}, split="test", pairs=1000, seed=0)
    split, scores, rows, notes = given["split"], [], [], []
    by_name = {str(run): run for run in runs}
    for run in runs:
        model, words = run.load()
        sentences = run.list_sentences(split, words)
        ids = encode_sentences(sentences, words, run)
        of_words: dict[str, Sequence[Hashable]] = {}  # codes or classes of the source words
        code, coder = None, ""
        if run.task in given["codes_from"]:
            coder = str(replace(run, **given["codes_from"][run.task]))
            if coder in by_name:
                code = of_words["codes"] = assign_codes(by_name[coder].load()[0], "source", range(len(words)))
            else:
                notes.append(f"{run}: no pairs of one code sequence, for {coder} was not run")
        if run.task in given["classes"]:
            by_word = {**find_word_classes(run, words, given["classes"][run.task]), END: END}
            of_words["classes"] = [by_word.get(word) for word in words]
        item_sets: dict[str, Pairs] = {}
        for name, of_word in of_words.items():
            structures = [tuple(of_word[i] for i in sentence) for sentence in ids]
            drawn = sample_pairs(structures, given["pairs"], given["seed"])
            item_sets[name] = {number: (sentences[i], sentences[j]) for number, (i, j) in enumerate(drawn, start=1)}
        if run.task in given["rows"]:
            wanted = given["rows"][run.task]
            item_sets["printed"] = select_printed_pairs(run.read_pairs(split)["source"].tolist(), wanted, words)
            notes.append(f"{run}: {len(item_sets['printed'])} of {len(wanted)} pairs of rows can be compared")
        for item_set, pairs in item_sets.items():
            if not pairs:
                if item_set != "printed":
                    notes.append(f"{run}: no two sentences of {split} have one sequence of {item_set}")
                continue
            sides = [encode_sentences(side, words, run) for side in zip(*pairs.values(), strict=True)]
            maps = zip(*(compute_encoder_attention(model, side) for side in sides), strict=True)
            shares = [100 * compute_agreement(first, second) for first, second in maps]
            same: list[bool | None] = [None] * len(pairs)
            if code is not None:
                same = [[code[i] for i in one] == [code[i] for i in other] for one, other in zip(*sides, strict=True)]
            means = {METRICS[item_set]: (np.mean(shares), "percent", len(pairs))}
            if item_set == "printed" and coder == str(run):
                means["printed_same_codes"] = 100 * np.mean(same), "percent", len(pairs)
            scores += run.make_scores(means, split=split, item_set=item_set)
            for (number, (first, second)), share, alike in zip(pairs.items(), shares, same, strict=True):
                pair = {"pair": number, "first": first, "second": second, "agreement": share, "same_codes": alike}
                rows.append({**run.columns, "item_set": item_set, **pair})
    return AnalysisResult(scores, {"pairs": pandas.DataFrame(rows, columns=COLUMNS)}, notes)


def select_printed_pairs(sources: Sequence[str], rows: Sequence[tuple[int, int]], words: Sequence[str]) -> Pairs:
    """Select the pairs of `rows` that exist, have only known `words` and have one length."""
    known, found = set(words), {}
    for number, pair in enumerate(rows, start=1):
        if max(pair) < len(sources):
            first, second = (sources[row].split() for row in pair)
            if len(first) == len(second) and known.issuperset(first + second):
                found[number] = tuple(sources[row] for row in pair)
    return found

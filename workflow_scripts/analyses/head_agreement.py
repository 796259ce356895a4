"""How often a head attends most to the same position in two sentences of a pair (section 5.3 and table 6)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.attention_maps import compute_encoder_attention
from workflow_scripts.analyses.embedding_space import assign_codes
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import RUN_COLUMNS, TrainedRun, encode_sentences
from workflow_scripts.common.plug_ins import merge_options

COLUMNS = [*RUN_COLUMNS, "pair", "first", "second", "agreement", "same_codes"]

Pairs = dict[int, tuple[str, str]]  # sentences by the number of their pair, from 1


def compute_agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the share (0 to 1) of (layer, head, query) whose (first) largest weight in [..., S] is on one key."""
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Score how many (layer, head, query) attend most to one position in both sentences of a pair, in percent.

    Score of each run: `head_agreement_printed`. The paper counts "attention heads that assign the highest weight to the
    same token"; here every (layer, head, query) counts once, and EOS is a query.

    options:
        split, rows: the pairs, as rows of the split (from 0). Pairs of different lengths, and those with words that are
            not in the training data, are left out.
        codes_from: {method, variant} of the run of the same seed whose codes are compared, too; its own score
            `printed_same_codes` is the share of pairs with one sequence of codes.
    """
    given = merge_options(options, codes_from={}, rows=[], split="test")
    split, wanted, by_name = given["split"], given["rows"], {str(run): run for run in runs}
    scores, rows, notes = [], [], []
    for run in runs:
        model, words = run.load()
        pairs = select_pairs(run.read_pairs(split)["source"].tolist(), wanted, words)
        notes.append(f"{run}: {len(pairs)} of {len(wanted)} pairs of rows can be compared")
        if not pairs:
            continue
        sides = [encode_sentences(side, words, run) for side in zip(*pairs.values(), strict=True)]
        maps = zip(*(compute_encoder_attention(model, side) for side in sides), strict=True)
        shares = [100 * compute_agreement(first, second) for first, second in maps]
        values = {"head_agreement_printed": (np.mean(shares), "percent", len(pairs))}
        same: list[bool | None] = [None] * len(pairs)
        coder = replace(run, **given["codes_from"])
        if given["codes_from"] and str(coder) in by_name:
            code = assign_codes(by_name[str(coder)].load()[0], "source", range(len(words)))
            same = [
                [code[i] for i in one] == [code[i] for i in other]
                for one, other in zip(*sides, strict=True)
            ]
            if str(coder) == str(run):
                values["printed_same_codes"] = 100 * np.mean(same), "percent", len(pairs)
        scores += run.make_scores(values, split=split)
        for (number, (first, second)), share, alike in zip(
            pairs.items(), shares, same, strict=True
        ):
            pair = {
                "pair": number,
                "first": first,
                "second": second,
                "agreement": share,
                "same_codes": alike,
            }
            rows.append(run.columns | pair)
    return AnalysisResult(scores, {"pairs": pandas.DataFrame(rows, columns=COLUMNS)}, notes)


def select_pairs(
    sources: Sequence[str], rows: Sequence[tuple[int, int]], words: Sequence[str]
) -> Pairs:
    """Select the pairs of `rows` that exist, have only known `words` and have one length."""
    known, found = set(words), {}
    for number, pair in enumerate(rows, start=1):
        if max(pair) < len(sources):
            first, second = (sources[row].split() for row in pair)
            if len(first) == len(second) and known.issuperset(first + second):
                found[number] = tuple(sources[row] for row in pair)
    return found

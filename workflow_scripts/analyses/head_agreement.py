"""How often a head attends most to one position in both sentences of a pair (table 6)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas

from workflow_scripts.analyses.attention_maps import compute_encoder_attention
from workflow_scripts.analyses.embedding_space import assign_codes
from workflow_scripts.analyses.options.head_agreement import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import RUN_COLUMNS, TrainedRun, encode_sentences
from workflow_scripts.common.errors import UserError

COLUMNS = [*RUN_COLUMNS, "pair", "first", "second", "agreement", "same_codes"]


class SentencePair(NamedTuple):
    """Two sentences, and the number of their pair in the options, from 1."""

    number: int
    first: str
    second: str


def compute_agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the share (0 to 1) of (layer, head, query) that attend most to one key in both maps.

    first, second [layers, heads, S, S]. Of equal weights the first counts.
    """
    return float((first.argmax(-1) == second.argmax(-1)).mean())


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Score how many (layer, head, query) attend most to one position in both sentences of a pair.

    Score of each run: `head_agreement_printed`, in percent. The paper counts "attention heads that
    assign the highest weight to the same token"; here every (layer, head, query) counts once, and
    EOS is a query. Pairs of different lengths, and those with words that are not in the training
    data, are left out. Score of the run with the codes: `printed_same_codes`, the share of pairs
    with one sequence of codes.
    """
    split = options.split
    run_of = {trained.run: trained for trained in runs}
    rows = []
    result = AnalysisResult()
    for run in runs:
        model, words = run.load()
        sources = run.read_pairs(split)["source"].tolist()
        pairs = select_pairs(sources, options.rows, words)
        printed = len(options.rows)
        result.notes.append(f"{run}: {len(pairs)} of {printed} pairs of rows can be compared")
        if not pairs:
            continue
        first_ids = encode_sentences([pair.first for pair in pairs], words, run)
        second_ids = encode_sentences([pair.second for pair in pairs], words, run)
        first_maps = compute_encoder_attention(model, first_ids)
        second_maps = compute_encoder_attention(model, second_ids)
        shares = []
        for first, second in zip(first_maps, second_maps, strict=True):
            shares.append(100 * compute_agreement(first, second))
        mean_share = float(np.mean(shares))
        values = {"head_agreement_printed": (mean_share, "percent", len(pairs))}

        same_codes: Sequence[bool | None] = [None] * len(pairs)
        coder = None
        if options.codes_from:
            coder = run_of.get(run.run._replace(**options.codes_from.model_dump()))
        if coder:
            codes = assign_codes(coder.load()[0], "source", range(len(words)))
            if codes is None:
                raise UserError(
                    f"displays.yaml: {coder} has no codes; name another model in `codes_from`"
                )
            has_same_codes = compare_codes(codes, first_ids, second_ids)
            same_codes = has_same_codes
            if coder.run == run.run:
                percentage = 100 * float(np.mean(has_same_codes))
                values["printed_same_codes"] = (percentage, "percent", len(pairs))
        result.scores += run.make_scores(values, split=split)
        for pair, share, same in zip(pairs, shares, same_codes, strict=True):
            columns = {
                "pair": pair.number,
                "first": pair.first,
                "second": pair.second,
                "agreement": share,
                "same_codes": same,
            }
            rows.append(run.columns | columns)
    result.files["pairs"] = pandas.DataFrame(rows, columns=COLUMNS)
    return result


def select_pairs(
    sources: Sequence[str], rows: Sequence[tuple[int, int]], words: Sequence[str]
) -> list[SentencePair]:
    """Select the pairs of `rows` that exist, have only `words` of the model and have one length."""
    vocabulary = set(words)
    pairs = []
    for number, (first_row, second_row) in enumerate(rows, start=1):
        if max(first_row, second_row) >= len(sources):
            continue
        first = sources[first_row].split()
        second = sources[second_row].split()
        if len(first) == len(second) and vocabulary.issuperset(first + second):
            pairs.append(SentencePair(number, sources[first_row], sources[second_row]))
    return pairs


def compare_codes(
    codes: Sequence[int], first_ids: Sequence[list[int]], second_ids: Sequence[list[int]]
) -> list[bool]:
    """Return for each pair of sentences (ids) whether they have one sequence of codes."""
    same = []
    for first, second in zip(first_ids, second_ids, strict=True):
        same.append([codes[id_] for id_ in first] == [codes[id_] for id_ in second])
    return same

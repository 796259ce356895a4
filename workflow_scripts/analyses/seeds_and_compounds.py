"""Odds ratios of compound error rates, with intervals over seeds and over seeds and compounds.

A claim on CoGnition counts seeds alone: it holds for more trainings on these compounds. This says
how it would be on other compounds, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow.compute as pc

from workflow_scripts.analyses.options.seeds_and_compounds import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.compounds import find_compound_errors
from workflow_scripts.evaluation.predictions import read_predictions
from workflow_scripts.evaluation.scores import make_scores
from workflow_scripts.evaluation.statistics import QUANTILE, Effect, compare_independent

SPLIT = "cg_test"


class NoOddsError(Exception):
    """A seed has no error, or nothing but errors: its odds have no logarithm."""


@dataclass(frozen=True)
class SideErrors:
    """The errors of one side.

    sentences [C]: the number of sentences of a compound. rates [seeds, C]: the share of them with
    an error.
    """

    compounds: tuple[str, ...]
    sentences: np.ndarray
    rates: np.ndarray

    def compute_log_odds(self) -> np.ndarray:
        """Return ln(p / (1 - p)) of the instance error rate p of each seed [seeds].

        Raises NoOddsError if a seed has no error or nothing but errors.
        """
        return self._compute_log_odds(self.rates @ self.sentences / self.sentences.sum())

    def compute_log_odds_without(self) -> np.ndarray:
        """Return the log odds of each seed without each compound in turn [seeds, C].

        Raises NoOddsError if a seed has no error or nothing but errors in the others.
        """
        errors = self.rates * self.sentences
        left = errors.sum(1, keepdims=True) - errors
        return self._compute_log_odds(left / (self.sentences.sum() - self.sentences))

    @staticmethod
    def _compute_log_odds(rate: np.ndarray) -> np.ndarray:
        if (rate <= 0).any() or (rate >= 1).any():
            raise NoOddsError
        return np.log(rate / (1 - rate))


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Compare models by the odds of an error in a compound of the split `cg_test`.

    Scores, in log odds, positive if the better one has fewer errors: `log_odds`, with the ends of
    95% intervals over seeds, `log_odds_low_seeds` and `log_odds_high_seeds`, and over seeds and
    compounds, `log_odds_low_both` and `log_odds_high_both`. The column item_set has the pair's
    name. A model with one seed has no interval, and a pair without runs or without log odds no row.
    """
    result = AnalysisResult()
    runs_of: dict[str, list[TrainedRun]] = {}
    for run in runs:
        runs_of.setdefault(run.series, []).append(run)
    errors_of = {}
    for series in dict.fromkeys(chain.from_iterable(options.pairs.values())):
        if series in runs_of:
            errors_of[series] = read_errors(runs_of[series])
    for name, (worse, better) in options.pairs.items():
        absent = [series for series in (worse, better) if series not in errors_of]
        if absent:
            result.notes.append(f"{name}: no run of {absent[0]}")
            continue
        worse_errors = errors_of[worse]
        better_errors = errors_of[better]
        try:
            over_seeds = compare_over_seeds(worse_errors, better_errors)
            over_both = compare_over_seeds_and_compounds(worse_errors, better_errors)
        except NoOddsError:
            result.notes.append(
                f"{name}: a seed has no error, or nothing but errors, in all compounds or in all "
                "but one: its odds have no logarithm"
            )
            continue
        compounds = len(worse_errors.compounds)
        values = {"log_odds": (over_seeds.value, "log odds", compounds)}
        for over, effect in (("seeds", over_seeds), ("both", over_both)):
            interval = effect.compute_interval(QUANTILE)
            if interval:
                low, high = interval
                values[f"log_odds_low_{over}"] = (low, "log odds", compounds)
                values[f"log_odds_high_{over}"] = (high, "log odds", compounds)
        columns = {
            "task": runs_of[worse][0].task,
            "split": SPLIT,
            "item_set": name,
            "protocol": runs_of[worse][0].protocol,
        }
        result.scores += make_scores(columns, values)
    return result


def read_errors(runs: Sequence[TrainedRun]) -> SideErrors:
    """Read the predictions of all seeds of a model.

    Raises UserError if seeds have other compounds, or not the predictions of the split.
    """
    seeds = [_read_seed(run) for run in sorted(runs, key=lambda run: run.seed)]
    if len({seed.compounds for seed in seeds}) > 1:
        raise UserError(
            f"the seeds of {runs[0].series} were scored on different compounds; evaluate them again"
        )
    rates = np.concatenate([seed.rates for seed in seeds])
    return SideErrors(seeds[0].compounds, seeds[0].sentences, rates)


def _read_seed(run: TrainedRun) -> SideErrors:
    """Read the predictions of a run: the errors of one seed.

    Raises UserError unless they are those of the sentences of the split.
    """
    file = run.files.evaluation.predictions
    predictions = read_predictions(file, run.readout)
    predictions = predictions.filter(pc.field("split") == SPLIT)
    compounds = read_table(run.data, SPLIT, ["compound"])["compound"].to_pylist()
    if predictions["row"].to_pylist() != list(range(len(compounds))):
        raise UserError(
            f"{file} has not one prediction of each sentence of the split '{SPLIT}'; evaluate the "
            "run again"
        )
    lexicon = read_json(DataFolder(run.data).lexicon)
    is_wrong = find_compound_errors(compounds, predictions["prediction"].to_pylist(), lexicon)
    names, index = np.unique(compounds, return_inverse=True)
    sentences = np.bincount(index)
    rates = np.bincount(index, weights=is_wrong) / sentences
    return SideErrors(tuple(names), sentences, rates[None])


def compare_over_seeds(worse: SideErrors, better: SideErrors) -> Effect:
    """Return the log odds ratio with Welch's t over seeds, as the claims have it."""
    return compare_independent(worse.compute_log_odds(), better.compute_log_odds())


def compare_over_seeds_and_compounds(worse: SideErrors, better: SideErrors) -> Effect:
    """Return the log odds ratio with Student's t over seeds and compounds.

    The variance is that over seeds plus that of a jackknife over compounds, which both sides share;
    degrees of freedom by Satterthwaite. It is rather too large than too small: what is special to a
    seed and a compound counts twice.
    """
    if worse.compounds != better.compounds:
        raise UserError("two models were scored on different compounds; evaluate them again")
    over_seeds = compare_over_seeds(worse, better)
    compounds = len(worse.compounds)
    if over_seeds.error is None or over_seeds.freedom is None:
        return over_seeds
    worse_without = worse.compute_log_odds_without().mean(0)
    better_without = better.compute_log_odds_without().mean(0)
    without = worse_without - better_without
    squares = float(((without - without.mean()) ** 2).sum())
    variance = (compounds - 1) / compounds * squares
    total = over_seeds.error**2 + variance
    below = over_seeds.error**4 / over_seeds.freedom + variance**2 / (compounds - 1)
    freedom = total**2 / below
    method = "Student's t over seeds and compounds"
    return Effect(over_seeds.value, math.sqrt(total), freedom, over_seeds.n, method)

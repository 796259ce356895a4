"""Pool the words of a trained model's prompts (CAP), replace words by synonyms, and score the answers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from scipy import stats
from torch import nn

from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import make_scores
from workflow_scripts.evaluation.statistics import QUANTILE
from workflow_scripts.interventions.candidates import Candidates, read_candidates
from workflow_scripts.interventions.cap import predict_with_cap
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.interventions.synonyms import perturb
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.objectives.hidden_states import find_blocks
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.prompt.problem import (
    FEW_ANSWERS,
    Prompts,
    encode_prompts,
    get_prompt_settings,
    read_prompts,
)
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, matches, predict_answers
from workflow_scripts.tasks.run_spec import ModelSpec

BATCH_TOKENS = 8192
# By readout: the name of the share of right answers, as in an evaluation, and the prefix of other metrics.
METRIC = {"vocabulary": "exact_match", "labels": "constrained"}
PREFIX = {"vocabulary": "", "labels": "constrained_"}


@dataclass
class AnsweredPrompts:
    """A model, N prompts whose answer is one token, and what interventions did to the answers.

    contents, answers, items: texts [N]; texts: of all tokens; labels [C]: ids of the distinct answers; readouts: with
    `labels` if these are few; encode: from other contents to prompts.
    """

    model: nn.Module
    device: torch.device
    prompts: Prompts
    contents: list[str]
    answers: list[str]
    items: list[str]
    texts: np.ndarray
    match: str
    labels: np.ndarray
    readouts: list[str]
    encode: Callable[[list[str]], Prompts]
    tables: list[pa.Table] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(
        cls, spec: ModelSpec, folder: Path, data: Path, split: str, match: str, device: torch.device
    ) -> "AnsweredPrompts":
        """Load the model of a checkpoint, and read its prompts."""
        s = get_prompt_settings(spec)
        model = load_causal_lm(folder, s.family).to(device).eval()
        prompts = read_prompts(spec, model, folder, data, split)
        table = read_table(data, split, ["content", "label", "item"]).take(prompts.items)
        contents, answers, items = (table[name].to_pylist() for name in ("content", "label", "item"))
        texts, labels = decode_vocabulary(folder, model), np.unique(prompts.label)
        readouts = ["vocabulary", "labels"] if len(labels) <= FEW_ANSWERS else ["vocabulary"]
        how = {"template": s.template, "bos": find_bos_id(model, s.bos, str(folder)), "label_space": s.label_space}
        encode = partial(encode_prompts, load_tokenizer(folder), labels=answers, **how)
        return cls(model, device, prompts, contents, answers, items, texts, match, labels, readouts, encode)

    @cached_property
    def correct(self) -> dict[str, np.ndarray]:
        """Readout -> [N] bool: whether the answers to the unchanged prompts are right."""
        return self.evaluate_answers(self.prompts)

    def evaluate_answers(self, prompts: Prompts) -> dict[str, np.ndarray]:
        """Return readout -> [N] bool: whether the most probable token (of the vocabulary, of the answers) is right."""
        found = predict_answers(self.model, prompts, self.labels, BATCH_TOKENS, self.device)
        return {name: self.compare_answers(ids, name) for name, ids in zip(self.readouts, found, strict=False)}

    def compare_answers(self, ids: np.ndarray, readout: str) -> np.ndarray:
        """Return [N] bool: whether the answers `ids` [N] are right."""
        if readout == "labels":
            return ids == self.prompts.label
        return matches(ids, self.prompts.label, self.texts, self.match)

    def record(self, right: np.ndarray, readout: str, kept: str, **where: Any) -> float | None:
        """Add the answers under the intervention `where`, a row per item, and the shares (percent) of `right` [N].

        The metric `kept` is of the items that were right before; returns it, or None without such an item.
        """
        before = self.correct[readout]
        kinds = {"intervention": pa.string(), "layer": pa.int32(), "pooling": pa.string(), "rate": pa.float64()}
        kinds |= {"intervention_seed": pa.int64(), "readout": pa.string()}
        where |= {"readout": readout}
        columns = {name: pa.array([where.get(name)] * len(right), kind) for name, kind in kinds.items()}
        self.tables.append(pa.table({"item": self.items, **columns, "correct_before": before, "correct": right}))
        self.scores += make_scores(where | {"item_set": "all"}, {METRIC[readout]: score_share(right)})
        share = score_share(right[before])
        self.scores += make_scores(where | {"item_set": "own_correct"}, {kept: share})
        return share[0]


def intervene(
    spec: ModelSpec,
    checkpoint: Path,
    data: Path,
    settings: Intervention,
    match: str,
    candidates: Path,
    device: torch.device,
    reporter: Reporter,
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (answers, score rows) under CAP and with synonyms.

    match: the rule for right answers, see `PromptEvaluation`.
    """
    subject = AnsweredPrompts.read(spec, checkpoint, data, settings.split, match, device)
    reporter.set_stage("pool words")
    evaluate_cap(subject, settings)
    reporter.advance()
    reporter.set_stage("replace words")
    evaluate_synonyms(subject, settings, read_candidates(candidates), reporter)
    return pa.concat_tables(subject.tables), subject.scores


def choose_blocks(count: int, wanted: int | str | list[int]) -> list[int]:
    """Return the blocks before which CAP pools: those of a list, "all" but block 0, or a number, evenly spaced."""
    if isinstance(wanted, list):
        return wanted
    if wanted == "all" or wanted >= count - 1:
        return list(range(1, count))
    return sorted({round(1 + k * (count - 2) / (wanted - 1)) for k in range(wanted)}) if wanted > 1 else [1]


def score_share(right: np.ndarray) -> tuple[float | None, str, int]:
    """Return (share in percent, its unit, n) of `right` [n] bool; None of none."""
    return 100 * float(right.mean()) if len(right) else None, "percent", len(right)


def compute_cv(values: Sequence[float]) -> dict[str, float]:
    """Compute `cv` of Eqn 13 over `values` [runs]: standard deviation (divided by n - 1) over mean, with 95% interval.

    Interval `cv_low` to `cv_high`: McKay's (1932) as modified by Vangel (1996, The American Statistician 50:21), for
    independent, normal runs and a CV under about a third; there is no `cv_high` if the data set no upper bound. Empty
    for fewer than two runs or a mean that is not positive.
    """
    runs = np.asarray(values, dtype=float)
    n = len(runs)
    if n < 2 or not runs.mean() > 0:
        return {}
    value = float(runs.std(ddof=1) / runs.mean())
    found = {"cv": value}
    for name, probability in (("cv_low", QUANTILE), ("cv_high", 1 - QUANTILE)):
        quantile = float(stats.chi2.ppf(probability, n - 1))
        below = ((quantile + 2) / n - 1) * value**2 + quantile / (n - 1)
        if below > 0:
            found[name] = value / math.sqrt(below)
    return found


def evaluate_cap(subject: AnsweredPrompts, settings: Intervention) -> None:
    """Record the answers under CAP by block, pooling and readout."""
    layers = choose_blocks(len(find_blocks(subject.model)), settings.blocks)
    chosen = bucket_texts(subject.prompts.length, BATCH_TOKENS)
    batches = [subject.prompts.make_batch(rows).to(subject.device) for rows in chosen]
    labels = torch.from_numpy(subject.labels) if "labels" in subject.readouts else None
    found = predict_with_cap(subject.model, batches, layers, settings.poolings, labels)
    for (layer, pooling, readout), ids in found.items():
        written = np.empty(len(ids), np.int64)
        written[np.concatenate(chosen)] = ids.numpy()
        where = {"intervention": "cap", "layer": layer, "pooling": pooling}
        subject.record(subject.compare_answers(written, readout), readout, METRIC[readout], **where)


def evaluate_synonyms(
    subject: AnsweredPrompts, settings: Intervention, candidates: Candidates, reporter: Reporter
) -> None:
    """Record the answers with synonyms by rate, seed and readout.

    `consistency` (ConsistSyn, Eqn 12) is the share of right answers that stay right; `cv` is over seeds.
    """
    for rate in settings.rates:
        consistent: dict[str, list[float]] = {readout: [] for readout in subject.readouts}
        for seed in settings.seeds:
            texts, shares = perturb(
                subject.contents, candidates, rate, seed, items=subject.items, labels=subject.answers
            )
            where = {"intervention": "synonyms", "rate": rate, "intervention_seed": seed}
            subject.scores += make_scores(where | {"item_set": "all"}, {"realised_rate": score_share(np.array(shares))})
            for readout, right in subject.evaluate_answers(subject.encode(texts)).items():
                share = subject.record(right, readout, PREFIX[readout] + "consistency", **where)
                consistent[readout] += [] if share is None else [share]
            reporter.advance()
        for readout, values in consistent.items():
            where = {"intervention": "synonyms", "rate": rate, "readout": readout, "item_set": "own_correct"}
            spread = compute_cv(values)
            ratios = {PREFIX[readout] + name: (value, "ratio", len(values)) for name, value in spread.items()}
            subject.scores += make_scores(where, ratios)

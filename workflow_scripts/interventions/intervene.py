"""Pool the words of a trained model's prompts (CAP), replace words by synonyms, and score the answers."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.interventions.candidates import read_candidates
from workflow_scripts.interventions.cap import predict_with_cap
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.interventions.synonyms import perturb
from workflow_scripts.interventions.variation import make_cv_rows
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.objectives.hidden_states import find_blocks
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.prompt.problem import (
    FEW_ANSWERS,
    Prompts,
    encode_prompts,
    read_prompt_settings,
    read_prompts,
)
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, matches, predict_answers

BATCH_TOKENS = 8192
# By readout: the name of the share of right answers, as in an evaluation, and the prefix of other metrics.
METRIC = {"vocabulary": "exact_match", "labels": "constrained"}
PREFIX = {"vocabulary": "", "labels": "constrained_"}


@dataclass
class AnsweredPrompts:
    """A model and N prompts whose answer is one token.

    contents, answers, items: texts [N]; texts: of all tokens; labels: ids of the answers if there are few, else None.
    """

    model: nn.Module
    folder: Path
    spec: dict[str, Any]
    device: torch.device
    prompts: Prompts
    contents: list[str]
    answers: list[str]
    items: list[str]
    texts: np.ndarray
    match: str
    labels: Tensor | None
    tokenizer: Tokenizer

    @classmethod
    def read(
        cls, spec: dict[str, Any], folder: Path, data: Path, split: str, match: str, device: torch.device
    ) -> "AnsweredPrompts":
        """Load the model of a checkpoint, and read its prompts."""
        model = load_causal_lm(folder, read_prompt_settings(spec).family).to(device).eval()
        prompts = read_prompts(spec, model, folder, data, split)
        table = read_table(data, split, ["content", "label", "item"]).take(prompts.items)
        columns = (table[name].to_pylist() for name in ("content", "label", "item"))
        texts, distinct = decode_vocabulary(folder, model), np.unique(prompts.label)
        labels = torch.from_numpy(distinct) if len(distinct) <= FEW_ANSWERS else None
        tokenizer = load_tokenizer(folder)
        return cls(model, folder, spec, device, prompts, *columns, texts, match, labels, tokenizer)

    @cached_property
    def correct(self) -> dict[str, np.ndarray]:
        """Readout -> [N] bool: whether the answers to the unchanged prompts are right."""
        return self.evaluate_answers(self.prompts)

    def evaluate_answers(self, prompts: Prompts) -> dict[str, np.ndarray]:
        """Return readout -> [N] bool: whether the most probable token (of the vocabulary, of the answers) is right."""
        among = np.unique(prompts.label) if self.labels is None else self.labels.numpy()
        written, chosen = predict_answers(self.model, prompts, among, BATCH_TOKENS, self.device)
        found = {"vocabulary": self.compare_answers(written, "vocabulary")}
        return found if self.labels is None else found | {"labels": self.compare_answers(chosen, "labels")}

    def answer(self, contents: list[str]) -> dict[str, np.ndarray]:
        """Evaluate the answers for the same items with other contents [N]."""
        s = read_prompt_settings(self.spec)
        bos = find_bos_id(self.model, s.bos, str(self.folder))
        prompts = encode_prompts(self.tokenizer, contents, self.answers, s.template, bos, s.label_space)
        return self.evaluate_answers(prompts)

    def compare_answers(self, ids: np.ndarray, readout: str) -> np.ndarray:
        """Return [N] bool: whether the answers `ids` [N] are right."""
        if readout == "labels":
            return ids == self.prompts.label
        return matches(ids, self.prompts.label, self.texts, self.match)

    def make_table(self, right: np.ndarray, **where: Any) -> pa.Table:
        """Return one row per item: whether it was right under the intervention `where`, and before."""
        kinds = {"intervention": pa.string(), "layer": pa.int32(), "pooling": pa.string(), "rate": pa.float64()}
        kinds |= {"intervention_seed": pa.int64(), "readout": pa.string()}
        columns = {name: pa.array([where.get(name)] * len(right), kind) for name, kind in kinds.items()}
        before = self.correct[where["readout"]]
        return pa.table({"item": self.items, **columns, "correct_before": before, "correct": right})


def intervene(
    spec: dict[str, Any],
    checkpoint: Path,
    data: Path,
    settings: Intervention,
    match: str,
    candidates: Path,
    device: torch.device,
    reporter: Reporter,
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (answers, score rows) under CAP and with synonyms. `match`: rule for right answers, see `Evaluation`."""
    subject = AnsweredPrompts.read(spec, checkpoint, data, settings.split, match, device)
    reporter.set_stage("pool words")
    tables, scores = evaluate_cap(subject, settings)
    reporter.advance()
    reporter.set_stage("replace words")
    more_tables, more_scores = evaluate_synonyms(subject, settings, candidates, reporter)
    return pa.concat_tables(tables + more_tables), scores + more_scores


def choose_blocks(count: int, wanted: int | str | list[int]) -> list[int]:
    """Return the blocks before which CAP pools: those of a list, "all" but block 0, or a number, evenly spaced."""
    if isinstance(wanted, list):
        return wanted
    if wanted == "all" or wanted >= count - 1:
        return list(range(1, count))
    return sorted({round(1 + k * (count - 2) / (wanted - 1)) for k in range(wanted)}) if wanted > 1 else [1]


def score_share(metric: str, right: np.ndarray, rows: np.ndarray, **where: Any) -> list[dict[str, Any]]:
    """Return [score row] of the share (percent) of `right` [N] among `rows` [N] bool; [] if no row is true."""
    count = int(rows.sum())
    value = {"metric": metric, "unit": "percent", "n": count, **where}
    return [value | {"value": 100 * float(right[rows].mean())}] if count else []


def evaluate_cap(subject: AnsweredPrompts, settings: Intervention) -> tuple[list[pa.Table], list[dict[str, Any]]]:
    """Run CAP: return (answers, score rows) by block, pooling, readout and item set."""
    layers = choose_blocks(len(find_blocks(subject.model)), settings.blocks)
    chosen = bucket_texts(subject.prompts.length, BATCH_TOKENS)
    batches = [subject.prompts.make_batch(rows).to(subject.device) for rows in chosen]
    how = layers, settings.poolings, subject.labels, settings.bos_in_first_word
    found = predict_with_cap(subject.model, batches, *how)
    tables, scores = [], []
    for (layer, pooling, readout), ids in found.items():
        written = np.empty(len(ids), np.int64)
        written[np.concatenate(chosen)] = ids.numpy()
        right = subject.compare_answers(written, readout)
        where = {"intervention": "cap", "layer": layer, "pooling": pooling, "readout": readout}
        everything = np.ones(len(right), bool)
        for item_set, rows in (("all", everything), ("own_correct", subject.correct[readout])):
            scores += score_share(METRIC[readout], right, rows, item_set=item_set, **where)
        tables.append(subject.make_table(right, **where))
    return tables, scores


def evaluate_synonyms(
    subject: AnsweredPrompts, settings: Intervention, candidates: Path, reporter: Reporter
) -> tuple[list[pa.Table], list[dict[str, Any]]]:
    """Run synonym replacement: return (answers, score rows) by rate and seed.

    `consistency` (ConsistSyn, Eqn 12) is the share of right answers that stay right. `cv` is its standard deviation
    over its mean across seeds (Eqn 13), with the 95% interval `cv_low` to `cv_high`; there is no `cv_high` if the data
    set no upper bound.
    """
    table = read_candidates(candidates)
    labels = None if settings.may_be_label else subject.answers
    tables, scores = [], []
    for rate in settings.rates:
        consistent: dict[str, list[float]] = {readout: [] for readout in subject.correct}
        for seed in settings.seeds:
            texts, shares = perturb(subject.contents, table, rate, seed, items=subject.items, labels=labels)
            where = {"intervention": "synonyms", "rate": rate, "intervention_seed": seed}
            everything = np.ones(len(texts), bool)
            scores.append({"metric": "realised_rate", "unit": "percent", "n": len(texts), "item_set": "all", **where})
            scores[-1]["value"] = 100 * float(np.mean(shares))
            for readout, right in subject.answer(texts).items():
                before = subject.correct[readout]
                scores += score_share(METRIC[readout], right, everything, item_set="all", readout=readout, **where)
                rows = score_share(
                    PREFIX[readout] + "consistency", right, before, item_set="own_correct", readout=readout, **where
                )
                consistent[readout] += [row["value"] for row in rows]
                scores += rows
                tables.append(subject.make_table(right, readout=readout, **where))
            reporter.advance()
        for readout, values in consistent.items():
            where = {"intervention": "synonyms", "rate": rate, "readout": readout, "item_set": "own_correct"}
            scores += make_cv_rows(PREFIX[readout], values, **where)
    return tables, scores

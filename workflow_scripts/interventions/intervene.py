"""Pool the words of a trained model's prompts (CAP), or replace words by synonyms.

The answers are scored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import Score, make_scores
from workflow_scripts.interventions.answer_scores import (
    METRIC,
    PREFIX,
    compute_cv,
    score_share,
)
from workflow_scripts.interventions.candidates import Candidates, read_candidates
from workflow_scripts.interventions.cap import PooledReadout, predict_with_cap
from workflow_scripts.interventions.saved_answers import SavedAnswers
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.interventions.synonyms import perturb
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer, place_on_device
from workflow_scripts.objectives.hidden_states import find_blocks
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, matches, predict_answers
from workflow_scripts.tasks.prompt.training_setup import (
    FEW_ANSWERS,
    Prompts,
    check_lengths,
    encode_prompts,
    get_prompt_settings,
    read_prompts,
)
from workflow_scripts.tasks.run_spec import ModelSpec

BATCH_TOKENS = 8192
# Columns of the answers that say under which intervention they were given.
INTERVENTION_COLUMNS = {
    "intervention": pa.string(),
    "layer": pa.int32(),
    "pooling": pa.string(),
    "rate": pa.float64(),
    "intervention_seed": pa.int64(),
    "readout": pa.string(),
}


@dataclass
class AnsweredPrompts:
    """A model, N prompts whose answer is one token, and what interventions did to the answers.

    contents, answers, items: texts [N]; texts: of all tokens; labels [C]: ids of the distinct
    answers; readouts: with `labels` if these are few; encode: from other contents to prompts;
    reporter: counts answered prompts; saved: answers by pass, also those of a killed job.
    """

    model: PreTrainedModel
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
    reporter: Reporter
    saved: SavedAnswers
    tables: list[pa.Table] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        spec: ModelSpec,
        folder: Path,
        data: Path,
        split: str,
        match: str,
        device: torch.device,
        reporter: Reporter,
        saved: SavedAnswers,
    ) -> "AnsweredPrompts":
        """Load the model of a checkpoint, and read its prompts."""
        settings = get_prompt_settings(spec)
        model = load_causal_lm(folder, settings.family).eval()
        place_on_device(model, device)
        prompts = read_prompts(spec, model, folder, data, split)
        table = read_table(data, split, ["content", "label", "item"]).take(prompts.items)
        answers = table["label"].to_pylist()
        labels = np.unique(prompts.label)
        readouts = ["vocabulary"]
        if len(labels) <= FEW_ANSWERS:
            readouts.append("labels")
        encode = partial(
            encode_prompts,
            load_tokenizer(folder),
            labels=answers,
            template=settings.template,
            bos=find_bos_id(model, settings.bos, str(folder)),
            label_space=settings.label_space,
        )
        return cls(
            model=model,
            device=device,
            prompts=prompts,
            contents=table["content"].to_pylist(),
            answers=answers,
            items=table["item"].to_pylist(),
            texts=decode_vocabulary(folder, model),
            match=match,
            labels=labels,
            readouts=readouts,
            encode=encode,
            reporter=reporter,
            saved=saved,
        )

    @cached_property
    def correct(self) -> dict[str, np.ndarray]:
        """Readout -> [N] bool: whether the answers to the unchanged prompts are right."""
        return self.evaluate_answers("unchanged", self.prompts)

    def evaluate_answers(self, name: str, prompts: Prompts) -> dict[str, np.ndarray]:
        """Return readout -> [N] bool: whether the most probable token is right.

        It is that of the vocabulary, or that of the answers. name: of the pass.
        """

        def predict() -> Tensor:
            predicted = predict_answers(
                self.model, prompts, self.labels, BATCH_TOKENS, self.device, self.reporter
            )
            return torch.from_numpy(np.stack(predicted))

        by_readout = zip(self.readouts, self.saved.find_or_compute(name, predict), strict=False)
        return {readout: self.compare_answers(ids.numpy(), readout) for readout, ids in by_readout}

    def compare_answers(self, ids: np.ndarray, readout: str) -> np.ndarray:
        """Return [N] bool: whether the answers `ids` [N] are right."""
        if readout == "labels":
            return ids == self.prompts.label
        return matches(ids, self.prompts.label, self.texts, self.match)

    def record(
        self, right: np.ndarray, readout: str, kept: str, **intervention: Any
    ) -> float | None:
        """Add the answers under an intervention to `tables`, a row per item, and their scores.

        right [N] bool: whether each answer is right. The scores are the percentage of right answers
        of all items, and, as the metric `kept`, of the items that were right before; returns the
        latter, or None without such an item. intervention: values of INTERVENTION_COLUMNS.
        """
        before = self.correct[readout]
        columns = intervention | {"readout": readout}
        table: dict[str, Any] = {"item": self.items}
        for name, kind in INTERVENTION_COLUMNS.items():
            table[name] = pa.array([columns.get(name)] * len(right), kind)
        table["correct_before"] = before
        table["correct"] = right
        self.tables.append(pa.table(table))
        of_all = {METRIC[readout]: score_share(right)}
        self.scores += make_scores(columns | {"item_set": "all"}, of_all)
        of_right_before = score_share(right[before])
        own_correct = columns | {"item_set": "own_correct"}
        self.scores += make_scores(own_correct, {kept: of_right_before})
        percentage, _unit, _n = of_right_before
        return percentage


def intervene(
    spec: ModelSpec,
    checkpoint: Path,
    data: Path,
    settings: Intervention,
    match: str,
    candidates: Path,
    device: torch.device,
    reporter: Reporter,
    saved: SavedAnswers,
) -> tuple[pa.Table, list[Score]]:
    """Return (answers, scores) under CAP and with synonyms.

    `match`: rule for right answers, see `PromptEvaluation`.
    """
    subject = AnsweredPrompts.read(
        spec, checkpoint, data, settings.split, match, device, reporter, saved
    )
    n_blocks = len(find_blocks(subject.model))
    layers = choose_blocks(n_blocks, settings.blocks)
    cap_passes = count_cap_passes(n_blocks, layers, len(settings.poolings))
    other_passes = 1 + len(settings.rates) * len(settings.seeds)  # 1: the unchanged prompts
    reporter.set_total(len(subject.items) * (cap_passes + other_passes))
    reporter.resume(count_saved_prompts(subject, cap_passes))
    reporter.set_stage("pool words")
    evaluate_cap(subject, layers, settings.poolings, cap_passes)
    reporter.set_stage("replace words")
    evaluate_synonyms(subject, settings, read_candidates(candidates))
    return pa.concat_tables(subject.tables), subject.scores


def count_saved_prompts(subject: AnsweredPrompts, cap_passes: int) -> int:
    """Count the prompts that a killed job has answered, those under CAP `cap_passes` times."""
    count = 0
    for name, answers in subject.saved.answers.items():
        prompts = answers.size(-1)
        count += cap_passes * prompts if name.startswith("cap") else prompts
    return count


def choose_blocks(count: int, blocks: int | str | list[int]) -> list[int]:
    """Return the blocks before which CAP pools, of a model with `count` blocks, in order.

    They are those of a list as it is, "all" but block 0, or a number of them, evenly spaced from
    block 1 to the last one. A larger number than the model has is "all"; of 1 it is block 1.
    Raises UserError for a model of one block, unless a list names it.
    """
    if isinstance(blocks, list):
        return blocks
    if count == 1:
        raise UserError(
            "CAP pools before block 1 or later ones, but the model has only block 0; "
            "set intervention.blocks to [0] to pool the embeddings"
        )
    if not isinstance(blocks, int) or blocks >= count - 1:
        return list(range(1, count))
    if blocks == 1:
        return [1]
    n_steps = blocks - 1
    distance = count - 2  # from block 1 to the last one; more than n_steps, so no block repeats
    return [round(1 + step * distance / n_steps) for step in range(blocks)]


def count_cap_passes(n_blocks: int, layers: list[int], n_poolings: int) -> int:
    """Estimate the work on a prompt under CAP, in passes through all blocks of the model.

    One pass is without CAP. Each layer and pooling takes the blocks from that layer on, as a share
    of a pass; that a pooled prompt is shorter is left out.
    """
    shares = sum((n_blocks - layer) / n_blocks for layer in layers)
    return 1 + round(n_poolings * shares)


def evaluate_cap(
    subject: AnsweredPrompts, layers: list[int], poolings: Sequence[str], passes: int
) -> None:
    """Record the answers under CAP by block, pooling and readout, in `subject`.

    passes: how many each prompt adds to the progress, as `count_cap_passes` estimates them.
    """
    readouts = [PooledReadout(*names) for names in product(layers, poolings, subject.readouts)]
    labels = None
    if "labels" in subject.readouts:
        labels = torch.from_numpy(subject.labels)

    def predict(rows: np.ndarray) -> Tensor:
        """Return the answers to the prompts `rows` [n], as ids [readouts, n]."""
        batch = subject.prompts.make_batch(rows).to(subject.device)
        predicted = predict_with_cap(
            subject.model,
            [batch],
            layers,
            poolings,
            labels,
            advance=lambda items: subject.reporter.advance(passes * items),
        )
        return torch.stack([predicted[readout] for readout in readouts])

    answers = np.empty((len(readouts), len(subject.items)), np.int64)
    for number, rows in enumerate(bucket_texts(subject.prompts.length, BATCH_TOKENS)):
        answers[:, rows] = subject.saved.find_or_compute(f"cap/{number}", partial(predict, rows))
    for ids, (layer, pooling, readout) in zip(answers, readouts, strict=True):
        right = subject.compare_answers(ids, readout)
        metric = METRIC[readout]
        subject.record(right, readout, metric, intervention="cap", layer=layer, pooling=pooling)


def evaluate_synonyms(
    subject: AnsweredPrompts, settings: Intervention, candidates: Candidates
) -> None:
    """Record the answers with synonyms by rate, seed and readout, in `subject`.

    `consistency` (ConsistSyn, Eqn 12) is the share of right answers that stay right; `cv` is over
    seeds.
    """
    for rate in settings.rates:
        # Readout -> percentage of each seed.
        consistencies: dict[str, list[float]] = {readout: [] for readout in subject.readouts}
        for seed in settings.seeds:
            texts, replaced_shares = perturb(
                subject.contents,
                candidates,
                rate,
                seed,
                items=subject.items,
                labels=subject.answers,
            )
            columns = {"intervention": "synonyms", "rate": rate, "intervention_seed": seed}
            realised_rate = {"realised_rate": score_share(np.array(replaced_shares))}
            subject.scores += make_scores(columns | {"item_set": "all"}, realised_rate)
            name = f"synonyms/{rate}/{seed}"
            prompts = subject.encode(texts)
            # A word may have more tokens than the one that it replaces.
            check_lengths(prompts, subject.model, name)
            for readout, right in subject.evaluate_answers(name, prompts).items():
                metric = PREFIX[readout] + "consistency"
                consistency = subject.record(right, readout, metric, **columns)
                if consistency is not None:
                    consistencies[readout].append(consistency)
        for readout, percentages in consistencies.items():
            columns = {
                "intervention": "synonyms",
                "rate": rate,
                "readout": readout,
                "item_set": "own_correct",
            }
            ratios = {}
            for name, value in compute_cv(percentages).items():
                ratios[PREFIX[readout] + name] = (value, "ratio", len(percentages))
            subject.scores += make_scores(columns, ratios)

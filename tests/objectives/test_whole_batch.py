"""Shares of a batch in several processes: together they have the loss and the gradient of the whole batch."""

import multiprocessing
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed

from workflow_scripts.models import causal_lm, pretraining, seq2seq
from workflow_scripts.objectives import (
    carma,
    compositional_pretraining,
    cross_entropy,
    language_modelling,
    masked_language_modelling,
)
from workflow_scripts.objectives.whole_batch import mean, total
from workflow_scripts.training.batches import Batch
from workflow_scripts.training.masked_batches import MaskedBatch
from workflow_scripts.training.prompt_batches import PromptBatch, TextBatch
from workflow_scripts.training.ranks import Ranks, Shares, join

CAUSAL = {"layers": 3, "heads": 2, "width": 16, "feed_forward": 32, "dropout": 0.0, "positions": 16}
PAIRS = {"layers": 1, "heads": 2, "width": 16, "feed_forward": 16, "dropout": 0.0}
# All possible negatives: none are drawn.
CARMA = {"weight": 0.3, "last_block_mi": 1, "last_block_stability": 2, "negatives": 0}
CAT = {"family": "cat", "layers": 2, "heads": 2, "width": 16, "feed_forward": 32, "dropout": 0.0, "codes": 5}
TASK = "workflow_scripts.objectives.next_token"
LENGTHS = torch.tensor([7, 6, 3, 5, 4])


def prompts() -> PromptBatch:
    """Five prompts; only the first and the last have words of two tokens, so that one share may have no pairs."""
    torch.manual_seed(1)
    real = torch.arange(7) < LENGTHS[:, None]
    words = torch.arange(7).expand(5, 7).clone()
    words[0], words[4] = torch.tensor([0, 0, 1, 1, 1, 2, 3]), torch.tensor([0, 1, 1, 2, 0, 0, 0])
    ids = torch.randint(4, 50, (5, 7)) * real
    return PromptBatch(ids, real, words.where(real, -1), LENGTHS - 1, torch.tensor([5, 6, 7, 8, 9]))


def pairs() -> Batch:
    """Five pairs whose targets have 7, 6, 3, 5 and 4 words."""
    ids = prompts().ids
    return Batch(ids.flip(0), ids.roll(1, dims=1).where(ids.ne(0), 0), ids)


def masked() -> MaskedBatch:
    """Five pairs; of the third no word is masked, and of the second none has sememes."""
    ids, real = prompts().ids, prompts().real
    labels = torch.where(real & ids.remainder(3).eq(0), ids, -100)
    labels[2] = -100
    share = (real & ids.remainder(2).eq(0)).float()
    share[1] = 0
    gold = torch.stack([ids.remainder(7), torch.full_like(ids, -1)], -1).int()
    return MaskedBatch(ids, ids.gt(20).long(), labels, real, torch.tensor([1, 0, 0, 1, 0]), share, gold)


def encoder(objective: Callable, family: str) -> Callable:
    def make() -> tuple[torch.nn.Module, Callable]:
        torch.manual_seed(0)
        sizes = CAT | ({"last_codes": 7} if family == "cat" else {"family": family})
        return pretraining.build({k: v for k, v in sizes.items() if family == "cat" or k != "codes"}, 50), objective({})

    return make


def causal(build: Callable, family: str, settings: dict) -> Callable:
    def make() -> tuple[torch.nn.Module, Callable]:
        torch.manual_seed(0)
        return causal_lm.build({**CAUSAL, "family": family}, 50), build(settings)

    return make


def sequence() -> tuple[torch.nn.Module, Callable]:
    torch.manual_seed(0)
    return seq2seq.build(PAIRS, 50, 50), cross_entropy.build({"label_smoothing": 0.1})


def case(name: str) -> tuple[torch.nn.Module, Callable, object]:
    """(model, objective, batch) by name. The model computes in float64, the losses in float32."""
    batch = {"seq2seq": pairs(), "text": TextBatch(prompts().ids, prompts().real), "masked": masked(), "cat": masked()}
    batch = batch.get(name, prompts())
    made = {
        "seq2seq": sequence,
        "text": causal(language_modelling.build, "gpt2", {"label_smoothing": 0.1}),
        "masked": encoder(masked_language_modelling.build, "bert"),
        "cat": encoder(compositional_pretraining.build, "cat"),
        "carma": causal(carma.build, "gpt2", {**CARMA, "task": TASK}),
        "carma, sums of positives": causal(
            carma.build, "llama", {**CARMA, "task": TASK, "positives": "logsum", "padding": True}
        ),
    }[name]
    model, objective = made()
    return model.double(), objective, batch


def result(name: str, ranks: Ranks, rows: int) -> dict[str, Tensor]:
    """Loss, parts and gradients of this process's share of the first `rows` sentences."""
    model, objective, batch = case(name)
    batch = replace(batch, **{field.name: getattr(batch, field.name)[:rows] for field in fields(batch)})
    loss, parts = objective(model, Shares([batch], ranks)[0])
    loss.backward()
    gradients = {key: parameter.grad for key, parameter in model.named_parameters() if parameter.grad is not None}
    return {"loss": loss.detach(), **parts, **gradients}


def one_of_several(ranks: Ranks, meeting: Path, cases: list[tuple[str, int]], found) -> None:
    torch.set_num_threads(1)
    join(ranks, meeting, torch.device("cpu"))
    values = {case: result(case[0], ranks, case[1]) for case in cases}
    values["total"] = total(torch.tensor([1.0, 2.0 + ranks.rank]))
    values["mean"] = mean(torch.tensor(float(ranks.rank)), 1 + ranks.rank)
    found.put((ranks.rank, {key: plain(value) for key, value in values.items()}))


def plain(value: object) -> object:
    """Lists instead of tensors, which would come through memory that their process keeps."""
    return {key: tensor.tolist() for key, tensor in value.items()} if isinstance(value, dict) else value.tolist()


CASES = [
    (name, rows)
    for name in ("seq2seq", "text", "masked", "cat", "carma", "carma, sums of positives")
    for rows in (5, 3, 2)
]
PROCESSES = 3


@pytest.fixture(scope="module")
def several(tmp_path_factory) -> list[dict]:
    """What each of the processes finds."""
    context = multiprocessing.get_context("spawn")
    found, meeting = context.Queue(), tmp_path_factory.mktemp("ranks") / "meeting"
    given = [(Ranks(rank, PROCESSES), meeting, CASES, found) for rank in range(PROCESSES)]
    processes = [context.Process(target=one_of_several, args=arguments, daemon=True) for arguments in given]
    for process in processes:
        process.start()
    values = dict(found.get(timeout=300) for _ in processes)
    for process in processes:
        process.join()
    return [values[rank] for rank in range(PROCESSES)]


@pytest.mark.parametrize(("name", "rows"), CASES)
def test_the_loss_is_that_of_the_whole_batch_and_so_is_the_sum_of_the_gradients(several, name, rows):
    """Of unequal shares, of one sentence each, and of fewer sentences than processes."""
    whole = result(name, Ranks(), rows)
    assert whole["loss"].isfinite() and any("weight" in key and whole[key].abs().max() > 1e-3 for key in whole)
    for key, expected in whole.items():
        own = [torch.tensor(process[name, rows][key], dtype=torch.float64) for process in several]
        if expected.dim() == 0 and key != "pairs":
            for value in own:
                torch.testing.assert_close(value, expected.double(), rtol=1e-6, atol=1e-7)
        elif key == "pairs":  # each process has the whole of a batch with fewer sentences than processes
            assert own[0] == expected * (1 if rows >= PROCESSES else PROCESSES)
        else:
            torch.testing.assert_close(sum(own), expected, rtol=1e-5, atol=1e-8)


def test_totals_and_means_by_hand(several):
    for process in several:
        assert process["total"] == [3, 9]
        assert process["mean"] == pytest.approx(8 / 6)


def test_one_process_gets_back_what_it_gave():
    value = torch.tensor(0.1, requires_grad=True)
    assert not distributed.is_initialized()
    assert total(value) is value and mean(value, 3) is value

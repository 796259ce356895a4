"""Loss and gradients of a batch: of all of it, or of its parts, one after the other.

Parts need less memory at a time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.base import AdditiveLoss, FinishesSteps, Loss, TrainingSetup
from workflow_scripts.tasks.batching import TensorBatch

# add_gradients(batch) -> (loss, parts of it): adds the gradients of the loss to those of the model
AddGradients = Callable[[Any], tuple[Tensor, dict[str, Tensor]]]


def make_gradients(setup: TrainingSetup, parts: int, autocast: torch.autocast) -> AddGradients:
    """Return a function that computes a batch in `parts` parts.

    Raises UserError for several parts if the loss of the setup is no AdditiveLoss, or if its model
    looks at whole batches.
    """
    if parts == 1:
        return partial(add_gradients_at_once, setup.loss, setup.model, autocast)
    if not isinstance(setup.loss, AdditiveLoss) or isinstance(setup.model, FinishesSteps):
        raise UserError(
            f"training.accumulate is {parts}, but the loss or the model of this training cannot be "
            "computed exactly from parts of a batch; set it to 1"
        )
    return partial(add_gradients_in_parts, setup.loss, setup.model, autocast, parts)


def add_gradients_at_once(
    loss: Loss, model: nn.Module, autocast: torch.autocast, batch: Any
) -> tuple[Tensor, dict[str, Tensor]]:
    """Add the gradients of a batch, and return (loss, parts of it)."""
    with autocast:
        value, logged = loss(model, batch)
    value.backward()
    return value, logged


def add_gradients_in_parts(
    loss: AdditiveLoss, model: nn.Module, autocast: torch.autocast, count: int, batch: TensorBatch
) -> tuple[Tensor, dict[str, Tensor]]:
    """Add the gradients of a batch from `count` parts, and return (loss, parts of it).

    A loss that is no sum of its terms needs the terms of the whole batch first, so each part is
    computed twice.
    """
    parts = batch.split(count)
    slopes = None
    if not loss.is_sum:
        slopes = compute_slopes(loss, compute_all_terms(loss, model, autocast, parts, batch))
    totals: dict[str, Tensor] = {}
    for part in parts:
        with autocast:
            terms = loss.compute_terms(model, part, batch)
            if slopes is None:
                value, _ = loss.combine(terms)
            else:
                value = torch.stack([slopes[name] * term for name, term in terms.items()]).sum()
        value.backward()
        add_terms(totals, terms)
    return loss.combine(totals)


def compute_all_terms(
    loss: AdditiveLoss,
    model: nn.Module,
    autocast: torch.autocast,
    parts: list[TensorBatch],
    batch: TensorBatch,
) -> dict[str, Tensor]:
    """Return the terms of a batch without gradients.

    The random numbers, those of dropout, are then drawn again.
    """
    device = next(model.parameters()).device
    used = [device] if device.type == "cuda" else []
    totals: dict[str, Tensor] = {}
    with torch.random.fork_rng(used), torch.no_grad():
        for part in parts:
            with autocast:
                terms = loss.compute_terms(model, part, batch)
            add_terms(totals, terms)
    return totals


def compute_slopes(loss: AdditiveLoss, terms: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the derivative of the loss by each of its terms, at their values."""
    variables = {name: term.detach().requires_grad_() for name, term in terms.items()}
    value, _ = loss.combine(variables)
    slopes = torch.autograd.grad(
        value, list(variables.values()), allow_unused=True, materialize_grads=True
    )
    return dict(zip(variables, slopes, strict=True))


def add_terms(totals: dict[str, Tensor], terms: dict[str, Tensor]) -> None:
    """Add the terms of a part to the sums so far."""
    for name, term in terms.items():
        totals[name] = totals.get(name, 0) + term.detach()

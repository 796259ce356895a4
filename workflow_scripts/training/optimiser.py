"""The optimiser, and the learning rate of each update."""

import torch
from torch import Tensor, nn

from workflow_scripts.training.settings import Training


def build_optimiser(
    model: nn.Module, settings: Training, capturable: bool = False
) -> torch.optim.AdamW:
    """Return AdamW with decoupled weight decay on all parameters, as fairseq's `adam`.

    capturable: whether its step can be part of a CUDA graph, which reads the learning rate from a
    tensor.
    """
    parameters = list(model.parameters())
    rate: float | Tensor = settings.learning_rate
    if capturable:
        rate = torch.tensor(settings.learning_rate, device=parameters[0].device)
    return torch.optim.AdamW(
        parameters,
        lr=rate,
        betas=settings.betas,
        eps=settings.adam_epsilon,
        weight_decay=settings.weight_decay,
        fused=True,
        capturable=capturable,
    )


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next update.

    That is in place if it is a tensor, which a CUDA graph reads.
    """
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def compute_learning_rate(settings: Training, step: int) -> float:
    """Return the learning rate of update `step`, from 1, so that resuming needs no scheduler state.

    It rises linearly to the peak during the warm-up. Then `inverse_square_root` is peak *
    sqrt(warm-up / step), and `linear` falls to 0 after `max_steps`, `constant_then_linear` only
    during the last `decay_steps`. As in Hugging Face's schedule, `linear` has the rate 0 at the
    first update of a warm-up; the others reach the peak at its last.
    """
    peak = settings.learning_rate
    warmup = settings.warmup
    n_updates = settings.n_updates
    if settings.schedule == "linear":
        done = step - 1
        if done < warmup:
            return peak * done / warmup
        return peak * (n_updates - done) / max(n_updates - warmup, 1)
    warmup = max(warmup, 1)
    if settings.schedule == "inverse_square_root":
        return peak * min(step / warmup, (warmup / step) ** 0.5)
    rate = peak * min(step / warmup, 1.0)
    if settings.schedule == "constant_then_linear":
        rate *= min((n_updates - step + 1) / settings.decay_steps, 1.0)
    return rate

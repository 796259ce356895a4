"""Collect what the updates return: loss, its parts and, if clipped, the gradient norm."""

import math

import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.training.history import LoggedValue
from workflow_scripts.training.state import TrainingState

ADVICE = (
    "the state saved before it is kept: lower training.learning_rate, raise training.warmup_steps "
    "or set training.clip_norm"
)
CHECKED = {"loss": "the loss", "gradient_norm": "the norm of the gradients"}


class UpdateLog:
    """The values of the updates since the last mean.

    They are tensors until `collect`, since reading the number of one waits for a GPU.
    """

    def __init__(self, state: TrainingState):
        self.state = state
        self.rows: list[dict[str, Tensor]] = []

    def add(self, values: dict[str, Tensor]) -> None:
        """Add the values of an update."""
        self.rows.append(values)

    def collect(self) -> None:
        """Move the values to `pending` of the state, as floats.

        Raises UserError for a loss or a norm of the gradients that is not finite.
        """
        names: dict[str, None] = {}
        for row in self.rows:
            names |= dict.fromkeys(row)
        for name in names:
            values = torch.stack([row[name] for row in self.rows if name in row]).tolist()
            self.state.pending.setdefault(name, []).extend(values)
        self.rows.clear()
        for name, what in CHECKED.items():
            check_finite(what, self.state.pending.get(name, []), self.state.step)

    def log_means(self, rate: float) -> dict[str, float]:
        """Append the mean of each collected value and the learning rate to the history.

        Return the mean loss.
        """
        state = self.state
        means = {name: math.fsum(values) / len(values) for name, values in state.pending.items()}
        for name, value in means.items():
            state.history.append(LoggedValue(state.step, name, value))
        state.history.append(LoggedValue(state.step, "learning_rate", rate))
        state.pending = {}
        return {"loss": means["loss"]}


def check_finite(what: str, values: list[float], last_step: int) -> None:
    """Raise UserError for a value that is not finite. `values` are those up to `last_step`."""
    for index, value in enumerate(values):
        if math.isfinite(value):
            continue
        step = last_step - len(values) + index + 1
        before = ", ".join(f"{earlier:.4g}" for earlier in values[max(index - 3, 0) : index])
        raise UserError(
            f"{what} is {value} at step {step} "
            f"(before it: {before or 'none in this interval'}); {ADVICE}"
        )


def check_weights(model: nn.Module, step: int) -> None:
    """Raise UserError unless all weights are finite. On a GPU this waits for its kernels."""
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise UserError(f"the weight {name} is not finite after step {step}; {ADVICE}")

"""The processes that train one run together, one for each device: every one holds all weights and works on a share of
each batch, and the sum of their gradients moves them all alike."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from workflow_scripts.training.loop import Task

# They wait for the first one, which alone validates and saves. The end of a process is noticed in another way.
PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Ranks:
    """How many processes train the run, and which of them, from 0, this is. Alone, it communicates with nobody."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that validates, saves and reports."""
        return self.rank == 0

    def agreed(self, *values: int) -> tuple[int, ...]:
        """The values of the first process, in every one."""
        if self.size == 1:
            return values
        told = torch.tensor(values)
        distributed.broadcast(told, 0)
        return tuple(told.tolist())

    def gathered(self, own: Any) -> list:
        """What each process gives, by rank."""
        if self.size == 1:
            return [own]
        found = [None] * self.size
        distributed.all_gather_object(found, own)
        return found


def join(ranks: Ranks, meeting: Path, device: torch.device) -> None:
    """Connect with the other processes of this machine; `meeting` is a file that does not exist yet."""
    # Nobody outside the machine has a part in this.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
        init_method=meeting.absolute().as_uri(),
        rank=ranks.rank,
        world_size=ranks.size,
        timeout=PATIENCE,
    )


@dataclass(frozen=True)
class Shares(Sequence):
    """Of each batch, a dataclass of tensors [B, ...], the sentences of one process: a contiguous share. The rows of a
    padded batch are equally long, so that equally many are equally many tokens.

    A batch with fewer sentences than processes goes to each as a whole: every sum over it, and every number of items,
    is as many times larger, so that no mean changes.
    """

    batches: Sequence[Any]
    ranks: Ranks

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Any:
        batch, ranks = self.batches[index], self.ranks
        tensors = {field.name: getattr(batch, field.name) for field in fields(batch)}
        sentences = len(next(iter(tensors.values())))
        if sentences < ranks.size:
            return batch
        first, end = (sentences * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        return replace(batch, **{name: tensor[first:end] for name, tensor in tensors.items()})


class Step(nn.Module):
    """The objective as the forward pass of a module, which is what DistributedDataParallel knows."""

    def __init__(self, task: "Task"):
        super().__init__()
        self.model, self.objective = task.model, task.objective

    def forward(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """(loss, parts), scalars."""
        return self.objective(self.model, batch)


def divided(task: "Task", ranks: Ranks, seed: int) -> "Task":
    """The task with this process's share of each batch, and an objective whose gradient is that of the whole batch."""
    # A parameter that no process has used keeps no gradient, as with one process. It also keeps the gradients in one
    # order from the first step on, so that a resumed run adds them as before.
    step = DistributedDataParallel(
        Step(task), forward_sync_buffers=False, find_unused_parameters=True, gradient_as_bucket_view=True
    )
    step.register_comm_hook(None, _summed)
    if not ranks.first:  # another dropout than the first process, which draws as one alone would
        torch.manual_seed(int(np.random.SeedSequence([seed, ranks.rank]).generate_state(1)[0]))
    return replace(task, objective=lambda _model, batch: step(batch), batches=Shares(task.batches, ranks))


def _summed(_state: None, bucket: distributed.GradBucket) -> torch.futures.Future[Tensor]:
    """Add up the gradients. DistributedDataParallel's own way is their mean: the loss is already that of the batch."""
    sums = distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
    return sums.then(lambda done: done.value()[0])

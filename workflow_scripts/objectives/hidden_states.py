"""Find the blocks of a model, and record their outputs while an objective runs it."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from torch import Tensor, nn

from workflow_scripts.common.errors import UserError


def find_blocks(model: nn.Module) -> nn.ModuleList:
    """Return the blocks of a model, first to last.

    The model is a Hugging Face language model, or a `Seq2Seq`, of which these are the encoder's.
    Raises UserError for a model without such a list.
    """
    inner = getattr(model, "base_model", model)
    for name in ("h", "layers", "encoder"):
        blocks = getattr(inner, name, None)
        if isinstance(blocks, nn.ModuleList):
            return blocks
    raise UserError(
        f"{type(model).__name__} has no list of blocks `h`, `layers` or `encoder`; use another "
        "model, or add the name of its list to workflow_scripts/objectives/hidden_states.py"
    )


@contextmanager
def record_outputs(modules: nn.ModuleList, indices: Iterable[int]) -> Iterator[dict[int, Tensor]]:
    """Yield a dict: index -> output of that block in the latest run.

    It is without a final norm, [B, S, d] or time-major.
    """
    states: dict[int, Tensor] = {}
    with ExitStack() as hooks:
        for index in indices:
            hook = modules[index].register_forward_hook(partial(_keep_output, states, index))
            hooks.callback(hook.remove)
        yield states


def _keep_output(
    states: dict[int, Tensor],
    index: int,
    module: nn.Module,
    inputs: tuple,
    output: Tensor | tuple,
) -> None:
    states[index] = output[0] if isinstance(output, tuple) else output

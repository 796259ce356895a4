"""Find the blocks of a model, and record their outputs while an objective runs it."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from torch import Tensor, nn

from workflow_scripts.common.errors import UserError


def find_blocks(model: nn.Module) -> nn.ModuleList:
    """Return the blocks, first to last, of a Hugging Face language model or of the encoder of a `Seq2Seq`."""
    inner = getattr(model, "base_model", model)
    for name in ("h", "layers", "encoder"):
        found = getattr(inner, name, None)
        if isinstance(found, nn.ModuleList):
            return found
    raise UserError(
        f"{type(model).__name__} has no list of blocks `h`, `layers` or `encoder`; use another model, or "
        "add the name of its list to workflow_scripts/objectives/hidden_states.py"
    )


@contextmanager
def record_outputs(modules: nn.ModuleList, indices: Iterable[int]) -> Iterator[dict[int, Tensor]]:
    """Yield a dict: index -> output of that block, without a final norm, in the latest run, [B, S, d] or time-major."""
    states: dict[int, Tensor] = {}

    def keep(index: int, module: nn.Module, inputs: tuple, output: Tensor | tuple) -> None:
        states[index] = output[0] if isinstance(output, tuple) else output

    with ExitStack() as hooks:
        for index in indices:
            hooks.callback(modules[index].register_forward_hook(partial(keep, index)).remove)
        yield states

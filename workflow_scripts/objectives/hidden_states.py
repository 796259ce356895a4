"""Find the blocks of a model, and record their outputs while an objective runs it."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

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
        f"objective: {type(model).__name__} has no list of blocks under the name h, layers or encoder; "
        "name another model, or teach workflow_scripts/objectives/hidden_states.py where this one keeps them"
    )


def is_time_major(model: nn.Module) -> bool:
    """Whether states are [S, N, d] (our encoders) instead of [B, S, d]."""
    return not hasattr(model, "base_model")


@contextmanager
def record_outputs(modules: nn.ModuleList, indices: Iterable[int]) -> Iterator[dict[int, Tensor]]:
    """Yield index -> output of that block, [B, S, d] or time-major, filled when the model runs (the last run counts).

    Block i's output is the residual stream after it, without a final norm of the model. The hooks are removed when the
    context ends, also after an exception.
    """
    states: dict[int, Tensor] = {}

    def keeper(index: int):
        def keep(module: nn.Module, inputs: tuple, output: Tensor | tuple) -> None:
            states[index] = output[0] if isinstance(output, tuple) else output

        return keep

    with ExitStack() as hooks:
        for index in indices:
            hooks.callback(modules[index].register_forward_hook(keeper(index)).remove)
        yield states

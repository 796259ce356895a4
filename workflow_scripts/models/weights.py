"""Weights as safetensors files."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError


def list_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers by name, tied ones once.

    They share memory with the model.
    """
    persistent_names = model.state_dict().keys()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor.detach() for name, tensor in tensors.items() if name in persistent_names}


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a safetensors file. Raises UserError if that fails, e.g. on a full disk."""
    try:
        path.touch()
        mode = path.stat().st_mode  # of the umask; safetensors would leave the file to its owner
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        # Hugging Face's loader asks for the format.
        save_file(contiguous, path, {"format": "pt"})
        path.chmod(mode)
    except SafetensorError as error:
        raise UserError(
            f"{path.parent} cannot be written ({error}); earlier files are unchanged"
        ) from error


def load_weights(model: nn.Module, tensors: dict[str, Tensor], origin: Path) -> None:
    """Copy `tensors` into the model, in place.

    Raises UserError with `origin` if names, shapes or kinds of numbers differ, or if a weight is
    not finite; the weights before it are copied then.
    """
    weights = list_weights(model)
    differing = sorted(weights.keys() ^ tensors.keys())
    if differing:
        lacking = "the file" if differing[0] in weights else "the model"
        raise UserError(
            f"{origin} belongs to another configuration: {lacking} has no {differing[0]}; "
            "train the run again"
        )
    for name, weight in weights.items():
        tensor = tensors[name]
        if weight.dtype.is_floating_point != tensor.dtype.is_floating_point:
            raise UserError(
                f"{origin}: {name} is {tensor.dtype}, not {weight.dtype}; train the run again"
            )
        if weight.shape != tensor.shape:
            shapes = f"{list(tensor.shape)}, the model needs {list(weight.shape)}"
            raise UserError(
                f"{origin} belongs to another configuration: {name} is {shapes}; "
                "train the run again"
            )
        if not tensor.isfinite().all():
            raise UserError(f"{origin}: {name} is not finite everywhere; train the run again")
        weight.copy_(tensor)


def load_weight_file(model: nn.Module, file: Path, shared: bool = False) -> None:
    """Copy the weights of a file into the model.

    With `shared` only the weights that both have count: a task may lack the head of another, or
    have one of its own. Raises UserError if the file is missing, broken or of another model.
    """
    tensors = read_weights(file)
    if shared:
        own = list_weights(model)
        in_both = {name: tensor for name, tensor in tensors.items() if name in own}
        tensors = own | in_both
    load_weights(model, tensors, file)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file. Raises UserError if it is missing or broken."""
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; train the run first") from error
    except SafetensorError as error:
        raise UserError(
            f"{path} cannot be read ({error}); delete it and train the run again"
        ) from error

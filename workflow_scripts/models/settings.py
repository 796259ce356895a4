"""Settings of the models, checked without importing torch, so that a wrong key is refused before any job starts."""

import difflib
import types
import typing
from dataclasses import dataclass, fields
from typing import Literal, TypeVar

from workflow_scripts.errors import UserError

Settings = TypeVar("Settings")


def read_settings(kind: type[Settings], given: dict, where: str) -> Settings:
    """`given` as a `kind` (a dataclass with defaults). Unknown keys, wrong types and wrong choices are a UserError."""
    hints = typing.get_type_hints(kind)
    allowed = [field.name for field in fields(kind)]
    for name, value in given.items():
        if name not in hints:
            close = difflib.get_close_matches(name, allowed, n=1, cutoff=0.0)[0]
            raise UserError(f"{where}: unknown key '{name}'; the nearest known one is '{close}'")
        _check(value, hints[name], f"{where}: {name}")
    try:
        return kind(**given)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def _check(value: object, hint: object, where: str) -> None:
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise UserError(f"{where} is {value!r}; choose one of {', '.join(map(str, choices))}")
    elif typing.get_origin(hint) is types.UnionType:
        if value is not None:
            _check(value, typing.get_args(hint)[0], where)
    else:
        accepted = (int, float) if hint is float else hint
        if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
            raise UserError(f"{where} is {value!r}; it must be of type {hint.__name__}")


@dataclass
class Seq2SeqSettings:
    """Encoder-decoder Transformer. The defaults are those of the paper's SCAN and COGS models."""

    layers: int = 3  # of the encoder and of the decoder, each
    heads: int = 4
    width: int = 256
    feed_forward: int = 512
    dropout: float = 0.3
    positions: Literal["relative", "sinusoidal"] = "relative"
    gated: bool = True  # gated ("highway") feed-forward part
    max_relative_position: int = 20  # distances are clipped to -20 .. 20

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "width", "feed_forward", "max_relative_position"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it must lie in [0, 1)")

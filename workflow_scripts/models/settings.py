"""Settings of the models, checked without importing torch, so that a wrong key is refused before any job starts."""

import difflib
import typing
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from workflow_scripts.common.errors import UserError

Settings = TypeVar("Settings")


def without_module(section: dict[str, Any]) -> dict[str, Any]:
    """Of a section of a spec, `model` or `objective`, what is not the name of its module: the module's settings."""
    return {key: value for key, value in section.items() if key != "module"}


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
    else:
        accepted = (int, float) if hint is float else hint
        if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
            raise UserError(f"{where} is {value!r}; it must be of type {hint.__name__}")


def check_at_least_one(settings: object, *names: str) -> None:
    """Raise ValueError for the first of these settings that is less."""
    for name in names:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} is {getattr(settings, name)}; it must be at least 1")


def check_dropout(settings: object, name: str) -> None:
    """Raise ValueError where the setting is no probability of dropout."""
    if not 0 <= getattr(settings, name) <= 0.99:
        raise ValueError(f"{name} is {getattr(settings, name)}; it must lie in [0, 0.99]")


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
        check_at_least_one(self, "layers", "heads", "width", "feed_forward", "max_relative_position")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.positions == "sinusoidal" and self.width % 2:
            raise ValueError(f"width is {self.width}; sinusoidal positions need an even one")
        check_dropout(self, "dropout")


@dataclass
class SQTransformerSettings(Seq2SeqSettings):
    """SQ-Transformer. The defaults are those of the official code for SCAN."""

    attention: Literal["sal", "srl", "none"] = "sal"
    # How the decoder's cross-attention works under SAL. code: one attention whose queries are the codes; its result
    # goes to both streams (official code). word: each stream asks with its own states (paper, A.5). systematic: queries
    # and keys are the codes, for both streams.
    cross_query: Literal["code", "word", "systematic"] = "code"
    # Which of the final outputs predicts the code of the next token.
    next_code_stream: Literal["word", "code"] = "word"
    # brown: p(z | codes of the context); mmi: p(z | words of the context) (Stratos 2019); none: plain VQ.
    clustering: Literal["brown", "mmi", "none"] = "brown"
    source_codes: int = 6
    target_codes: int = 4
    similarity: Literal["euclidean", "cosine"] = "euclidean"
    straight_through: bool = True  # the code stream's gradient goes to the word embeddings, else to the codes
    ema_decay: float = 0.999  # 1: codes move by their gradient alone
    codebook_gradient: bool = True  # false: codes move by the moving average alone (paper, 3.1)
    padding_moves_codes: bool = False  # whether padding counts as a member of its nearest code (official code: yes)
    source_predictor: Literal["masked", "causal"] = "masked"
    source_predictor_layers: int = 3
    # cross: left context and the encoder's output (official code); causal: left context alone (paper).
    target_predictor: Literal["cross", "causal"] = "cross"
    target_predictor_layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positions != "relative":
            raise ValueError("positions must be relative: a position added to a word would change the word's code")
        check_at_least_one(self, "source_codes", "target_codes", "source_predictor_layers", "target_predictor_layers")
        if not 0 <= self.ema_decay <= 1:
            raise ValueError(f"ema_decay is {self.ema_decay}; it must lie in [0, 1]")
        if self.ema_decay == 1 and not self.codebook_gradient:
            raise ValueError("codebook_gradient is false and ema_decay 1: the codes would never move")
        if not self.codebook_gradient and not self.straight_through:
            raise ValueError("straight_through is false: it gives the codes a gradient, but codebook_gradient is false")
        if self.attention == "none" and self.next_code_stream == "code":
            raise ValueError("next_code_stream 'code' needs a stream of codes: set attention to sal or srl")


@dataclass
class CausalLMSettings:
    """A causal language model. The sizes are of a model drawn at random; one that is read has its own."""

    family: Literal["gpt2", "llama", "qwen2", "gemma"] = "gpt2"
    template: str = ""  # of a prompt; {content} stands for the item's text
    bos: bool = False  # whether prompts and texts begin with the tokenizer's BOS
    label_space: bool = False  # whether answers are tokenised with a space before them
    layers: int = 4
    heads: int = 4
    key_value_heads: int = 0  # 0: as many as heads
    width: int = 128
    feed_forward: int = 512
    dropout: float = 0.1
    positions: int = 256

    def __post_init__(self) -> None:
        check_at_least_one(self, "layers", "heads", "width", "feed_forward", "positions")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.key_value_heads and self.heads % self.key_value_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of key_value_heads {self.key_value_heads}")
        check_dropout(self, "dropout")
        if self.template and self.template.count("{content}") != 1:
            raise ValueError(f"template is {self.template!r}; it must hold {{content}} once")


# Where the settings of a model module stand.
SETTINGS = {
    "workflow_scripts.models.causal_lm": CausalLMSettings,
    "workflow_scripts.models.seq2seq": Seq2SeqSettings,
    "workflow_scripts.models.sq_transformer": SQTransformerSettings,
}

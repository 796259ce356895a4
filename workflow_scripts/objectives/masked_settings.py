"""Settings of the objectives of pre-training on masked words; in a module of their own. No torch here."""

from dataclasses import dataclass, fields
from typing import Literal


@dataclass
class MaskedSettings:
    """BERT's pre-training: masked words and, unless `next_sentence` is false, whether the second sentence follows."""

    next_sentence: bool = True
    longest: int = 128  # tokens of a pair, with the three special ones

    def __post_init__(self) -> None:
        if self.longest < 5:
            raise ValueError(f"longest is {self.longest}; a pair has at least 5 tokens")


@dataclass
class CompositionalSettings(MaskedSettings):
    """CAT's pre-training. The first seven are weights of its terms, and all are 1 in paper and official code but for
    `sparsity`, which has no gradient in the code. The defaults are the paper's where its text says enough."""

    mixed: float = 1.0  # semantic sufficiency of h_mix, h_cont and h_comp
    contextual: float = 1.0  # 2 where L_task is added to it, as the paper's sum literally has it
    compositional: float = 1.0
    consistency: float = 1.0  # mean square over tokens and features
    nuance: float = 1.0
    decomposition: float = 1.0
    sparsity: float = 1.0  # mean |O| over tokens, codes and layers
    beta: float = 0.1
    beta_on: Literal["contextual", "compositional"] = "contextual"  # compositional: official code
    # Of the weights of wrong codes of a word: their mean (paper) or their sum (official code).
    wrong_codes: Literal["mean", "sum"] = "mean"
    masked_words: bool = True  # whether the word behind a mask is decomposed, too (official code: no)
    several_pieces: bool = True  # whether words of several pieces are decomposed (official code: no)
    # exp(-NSP) + exp(-MLM) (Eqn 10 and official code), or exp(-(NSP + MLM)) (Eqn 7).
    nuance_task: Literal["two", "sum"] = "two"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in (float, "float") and value < 0:
                raise ValueError(f"{field.name} is {value}; it must not be negative")
        if self.beta >= 1:
            raise ValueError(f"beta is {self.beta}; it must lie in [0, 1)")


# Where the settings of an objective's module stand.
SETTINGS = {
    "workflow_scripts.objectives.compositional_pretraining": CompositionalSettings,
    "workflow_scripts.objectives.masked_language_modelling": MaskedSettings,
}

"""Settings of the objectives, checked without importing torch."""

from dataclasses import dataclass, fields
from typing import Literal


@dataclass
class CrossEntropySettings:
    """Cross-entropy of the next word or token."""

    label_smoothing: float = 0.0  # share of the probability that is spread over the vocabulary

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}; it must lie in [0, 1)")


@dataclass
class StructuralQuantisationSettings(CrossEntropySettings):
    """Weights of the terms beside the word cross-entropy; the defaults are those of the official code for SCAN.

    A term that the model does not produce (no predictors, no second stream) counts nothing, whatever its weight.
    """

    cluster_source: float = 0.1  # cross-entropy of q(z | x) and p(z | context)
    cluster_target: float = 0.1
    entropy_source: float = 0.1  # entropy H(Z), maximised
    entropy_target: float = 0.1
    commitment_source: float = 0.1  # embedding to its code
    commitment_target: float = 0.1
    next_code_source: float = 0.5  # final output predicts the next code
    next_code_target: float = 0.5
    output_commitment_source: float = 0.1  # final output to its nearest code
    output_commitment_target: float = 0.1
    distance_source: float = 0.001  # words to codes after each layer (SRL)
    distance_target: float = 0.001
    distance_stops_gradient: bool = True  # whether the codes are left alone by it (paper: not said)
    # H(Z) of a side counts only in batches whose longest sequence on that side has at least so many positions, the end
    # symbol among them. 3 leaves out batches of single words (official code: of the source alone).
    entropy_min_length_source: int = 3
    entropy_min_length_target: int = 0
    padding_counts: bool = False  # whether the means over source positions include padding (official code: yes)

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(f"{field.name} is {getattr(self, field.name)}; it must not be negative")


@dataclass
class CarmaSettings:
    """CARMA: L = (1 - weight) task + weight (mi L_MI + stability L_stability).

    Blocks count from 0, and both ends of a range belong to it. The defaults are those of the official code, but for
    what it does beside the paper's equations (words of other sentences, padding, BOS); these are options.
    """

    task: str = "workflow_scripts.objectives.next_token"  # module of the task's own objective, built without settings
    weight: float = 0.2  # lambda
    mi: float = 0.2  # gamma
    stability: float = 0.3  # eta
    first_block: int = 0
    last_block_mi: int = 7
    last_block_stability: int = 7
    # Instead of these numbers, a third of the model's blocks, rounded, and at least two.
    third: Literal["none", "first", "middle", "last"] = "none"
    # code: (first, first + 1) .. (last - 1, last). paper: also (last, last + 1) (Eqn 6).
    stability_pairs: Literal["code", "paper"] = "code"
    temperature: float = 0.1
    negatives: int = 5  # drawn anew for each term and step, one draw for all blocks; 0: every possible one
    similarity: Literal["cosine", "dot"] = "cosine"
    spans: Literal["own", "batch"] = "own"  # batch: words of all sentences, at the same places in each (official code)
    # pairwise: each pair of a word's tokens is a term (official code). logsum: each token is, with all others of its
    # word in one sum (Eqn 16).
    positives: Literal["pairwise", "logsum"] = "pairwise"
    padding: bool = False  # whether padding counts in stability and among the negatives (official code: yes)
    bos: bool = False  # whether a first token without a word joins word 1 and counts (official code: yes)

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1:
            raise ValueError(f"weight is {self.weight}; it must lie in [0, 1), or the task would not count")
        for name in ("mi", "stability", "first_block", "negatives"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative")
        if self.weight and not self.mi and not self.stability:
            raise ValueError("mi and stability are both 0; set weight to 0 for the task alone")
        if self.temperature <= 0:
            raise ValueError(f"temperature is {self.temperature}; it must be positive")
        if self.third != "none" and self.stability_pairs == "paper":
            raise ValueError("third names all blocks that are read: set stability_pairs to code")
        if self.third != "none":
            return
        if self.mi and not self.mi_blocks():
            raise ValueError(f"last_block_mi is {self.last_block_mi}; it must be at least first_block")
        if self.stability and len(self.stability_blocks()) < 2:
            raise ValueError(
                f"last_block_stability is {self.last_block_stability}; it must be above first_block, or equal with "
                "stability_pairs paper: a pair needs two blocks"
            )

    def mi_blocks(self, count: int | None = None) -> range:
        """The blocks whose states L_MI reads, of a model that has `count`."""
        return self._third(count) or range(self.first_block, self.last_block_mi + 1)

    def stability_blocks(self, count: int | None = None) -> range:
        """The blocks that L_stability compares, each with the next, of a model that has `count`."""
        last = self.last_block_stability + (1 if self.stability_pairs == "paper" else 0)
        return self._third(count) or range(self.first_block, last + 1)

    def _third(self, count: int | None) -> range | None:
        if self.third == "none":
            return None
        size = max(2, round(count / 3))
        first = {"first": 0, "middle": (count - size) // 2, "last": count - size}[self.third]
        return range(first, first + size)


# Where the settings of an objective's module stand.
SETTINGS = {
    "workflow_scripts.objectives.carma": CarmaSettings,
    "workflow_scripts.objectives.cross_entropy": CrossEntropySettings,
    "workflow_scripts.objectives.language_modelling": CrossEntropySettings,
    "workflow_scripts.objectives.next_token": CrossEntropySettings,
    "workflow_scripts.objectives.structural_quantisation": StructuralQuantisationSettings,
}

"""Settings of CARMA's objective."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workflow_scripts.common.validation import NonNegative, StrictModel


class Settings(StrictModel):
    """CARMA: L = (1 - weight) task + weight (mi L_MI + stability L_stability).

    Blocks count from 0, and ranges include both ends. The defaults are the official code's, except
    where it differs from the paper's equations (words of other sentences, padding, BOS).
    """

    weight: Annotated[float, Field(ge=0, lt=1)] = 0.2  # lambda
    mi: NonNegative = 0.2  # gamma
    stability: NonNegative = 0.3  # eta
    first_block: Annotated[int, Field(ge=0)] = 0
    last_block_mi: int = 7
    last_block_stability: int = 7
    # A third of the model's blocks in place of these numbers, rounded, at least two.
    third: Literal["none", "first", "middle", "last"] = "none"
    # code: (first, first + 1) .. (last - 1, last). paper: also (last, last + 1) (Eqn 6).
    stability_pairs: Literal["code", "paper"] = "code"
    temperature: Annotated[float, Field(gt=0)] = 0.1
    # Negatives per term, sampled in each step, the same for all blocks. 0: all possible ones.
    negatives: Annotated[int, Field(ge=0)] = 5
    similarity: Literal["cosine", "dot"] = "cosine"
    # batch: words of all sentences, at the same positions (official code)
    spans: Literal["own", "batch"] = "own"
    # pairwise: each pair of a word's tokens is a term (official code). logsum: each token is a
    # term, with the sum over the other tokens of its word (Eqn 16).
    positives: Literal["pairwise", "logsum"] = "pairwise"
    # whether padding counts in stability and among the negatives (official code: yes)
    padding: bool = False
    # whether a first token without a word joins word 1 and counts (official code: yes)
    bos: bool = False

    @model_validator(mode="after")
    def _check_losses_and_blocks(self) -> Self:
        if self.weight and not self.mi and not self.stability:
            raise ValueError("mi and stability are both 0; set weight to 0 for the task alone")
        if self.third != "none" and self.stability_pairs == "paper":
            raise ValueError("third sets the blocks of both losses: set stability_pairs to code")
        if self.third != "none":
            return self
        if self.mi and not self.list_mi_blocks():
            raise ValueError(
                f"last_block_mi is {self.last_block_mi}; it must be at least first_block"
            )
        if self.stability and len(self.list_stability_blocks()) < 2:
            raise ValueError(
                f"last_block_stability is {self.last_block_stability}; it must be above first_block"
            )
        return self

    def list_mi_blocks(self, count: int = 0) -> range:
        """Return the blocks that L_MI reads in a model with `count` blocks.

        A third needs `count`, at least 2.
        """
        if self.third != "none":
            return self._list_third(count)
        return range(self.first_block, self.last_block_mi + 1)

    def list_stability_blocks(self, count: int = 0) -> range:
        """Return the blocks that L_stability reads in a model with `count` blocks.

        Each but the last is compared with the next. A third needs `count`, at least 2.
        """
        if self.third != "none":
            return self._list_third(count)
        last = self.last_block_stability
        if self.stability_pairs == "paper":
            last += 1
        return range(self.first_block, last + 1)

    def check_blocks(self, count: int) -> None:
        """Raise ValueError if a model with `count` blocks lacks a block that a loss reads."""
        if not self.weight:
            return
        if self.third != "none" and count < 2:
            raise ValueError(f"third reads at least 2 blocks, but the model has {count}")
        blocks_of = {}
        if self.mi:
            blocks_of["last_block_mi"] = self.list_mi_blocks(count)
        if self.stability:
            blocks_of["last_block_stability"] = self.list_stability_blocks(count)
        for key, blocks in blocks_of.items():
            last = blocks[-1]
            if last >= count:
                raise ValueError(
                    f"{key} {getattr(self, key)} reads block {last}, "
                    f"but the model has {count} blocks (0 to {count - 1}); lower it"
                )

    def _list_third(self, count: int) -> range:
        """Return a third of `count` blocks: the first, the middle or the last ones."""
        assert count >= 2, "check_blocks refuses smaller models"
        size = max(2, round(count / 3))
        first_of = {"first": 0, "middle": (count - size) // 2, "last": count - size}
        first = first_of[self.third]
        return range(first, first + size)

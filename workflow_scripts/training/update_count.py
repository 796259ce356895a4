"""What an update needs, and the sizes by which it is counted; `update_flops` counts it."""

from dataclasses import dataclass

BYTES_PER_PARAMETER = 16  # of a parameter: its weight, gradient and two moments, in fp32


@dataclass(frozen=True)
class BatchSizes:
    """What follows from the data: the sizes of a batch and of the vocabularies.

    sentences: of a batch. tokens, vocabulary: of a text, or of source and target.
    """

    sentences: int
    tokens: tuple[int, ...]
    vocabulary: tuple[int, ...]

    @property
    def batch_tokens(self) -> int:
        """The tokens of a batch, of source and target together."""
        return self.sentences * sum(self.tokens)


@dataclass(frozen=True)
class UpdateCount:
    """What an update needs.

    flops: of forward and backward pass. operations: that the CPU starts one by one, 0 if unknown.
    memory: bytes of weights, gradients, moments, and of what is stored for the backward pass, in
    fp32. how: what was counted, in words.
    """

    flops: int
    operations: int
    parameters: int
    memory: int
    how: str

    def count_memory_in_parts(self, parts: int) -> int:
        """Return the memory if the batch is computed in parts, one after the other."""
        states = BYTES_PER_PARAMETER * self.parameters
        return states + (self.memory - states) // parts

"""Settings of the objectives, checked without importing torch."""

from dataclasses import dataclass


@dataclass
class CrossEntropySettings:
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}; it must lie in [0, 1)")

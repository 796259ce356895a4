"""Settings of the objectives, checked without importing torch."""

from dataclasses import dataclass, fields


@dataclass
class CrossEntropySettings:
    label_smoothing: float = 0.0

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
    # H(Z) of the source counts only in batches whose longest source has at least this many positions.
    entropy_min_length: int = 3
    padding_counts: bool = False  # whether the means over source positions include padding (official code: yes)

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(f"{field.name} is {getattr(self, field.name)}; it must not be negative")


# Where the settings of an objective's module stand.
SETTINGS = {
    "workflow_scripts.objectives.cross_entropy": CrossEntropySettings,
    "workflow_scripts.objectives.structural_quantisation": StructuralQuantisationSettings,
}

"""The terms of a training step by name."""

from torch import Tensor

from workflow_scripts.models.sq_transformer.terms import SQTransformerOutput


def name_terms(output: SQTransformerOutput) -> dict[str, Tensor]:
    """`source_prior` and the like -> its value. Those that the model does not have are left out."""
    assert output.terms is not None
    terms = {}
    for side in ("source", "target"):
        of_side = getattr(output.terms, side)
        names = ("embedded", "real", "output", "next_codes", "next_real", "layers")
        terms |= {f"{side}_{name}": getattr(of_side, name) for name in names}
        terms[f"{side}_codes"] = of_side.quantised.codes
        terms[f"{side}_vectors"] = of_side.quantised.vectors
        terms[f"{side}_output_scores"] = of_side.nearest.scores
        terms[f"{side}_output_vectors"] = of_side.nearest.vectors
        if of_side.prediction:
            terms |= {f"{side}_{name}": value for name, value in vars(of_side.prediction).items()}
    return {name: value for name, value in terms.items() if value is not None}

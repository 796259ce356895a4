"""Gradient checkpointing, where the settings of a training ask for it."""

from transformers import PreTrainedModel

from workflow_scripts.models.hugging_face import use_gradient_checkpointing
from workflow_scripts.training.settings import RecomputingTraining, Training


def set_gradient_checkpointing(model: PreTrainedModel, settings: Training) -> None:
    """Make a model recompute its activations if the settings of its training say so."""
    assert isinstance(settings, RecomputingTraining)
    if settings.gradient_checkpointing:
        use_gradient_checkpointing(model)

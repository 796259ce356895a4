"""The model of a pre-trained encoder, with the heads of its pre-training."""

from torch import nn

from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.masked_lm import scoring


def load_model(checkpoint: Checkpoint) -> nn.Module:
    """Load encoder and heads of a checkpoint. Raises UserError if a file is missing or broken."""
    return scoring.load_model(checkpoint.spec, checkpoint.folder)

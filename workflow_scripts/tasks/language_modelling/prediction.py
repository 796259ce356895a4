"""The model of a pre-trained causal language model."""

from torch import nn

from workflow_scripts.common.options import drop_name
from workflow_scripts.models.causal_lm.model import load_causal_lm
from workflow_scripts.tasks.checkpoints import Checkpoint


def load_model(checkpoint: Checkpoint) -> nn.Module:
    """Load the model of a checkpoint. Raises UserError if a file is missing or broken."""
    return load_causal_lm(checkpoint.folder, drop_name(checkpoint.spec["model"]))

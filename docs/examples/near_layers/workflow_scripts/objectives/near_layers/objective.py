"""The loss of the task, plus the squared distance between the first and the last encoder layer."""

from torch import Tensor, nn

from workflow_scripts.data.token_ids import PAD
from workflow_scripts.objectives.hidden_states import find_blocks, record_outputs
from workflow_scripts.objectives.near_layers.settings import Settings
from workflow_scripts.tasks.base import Loss, average_over
from workflow_scripts.tasks.batching import Batch


def build(settings: Settings, loss: Loss) -> Loss:
    """Return the loss with the new term, which validation leaves out."""

    def compute_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        if not model.training:
            return loss(model, batch)
        layers = find_blocks(model)  # of the encoder
        first, last = 0, len(layers) - 1
        with record_outputs(layers, [first, last]) as states:
            value, parts = loss(model, batch)  # runs the model, which fills `states`
        distance = (states[last] - states[first]).square().mean(dim=2)  # [S, B, d] -> [S, B]
        is_word = batch.source.ne(PAD).t()  # [B, S] -> [S, B], False on padding
        penalty = average_over(distance, is_word)
        return value + settings.weight * penalty, {**parts, "distance": penalty.detach()}

    return compute_loss

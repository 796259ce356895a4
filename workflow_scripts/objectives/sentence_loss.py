"""The loss of fine-tuning on sentences: cross-entropy of classes, mean square of scores."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from workflow_scripts.models.settings import read_settings
from workflow_scripts.objectives.sentence_settings import SentenceSettings

if TYPE_CHECKING:
    from workflow_scripts.models.sentence import SentenceModel
    from workflow_scripts.training.sentence_batches import SentenceBatch, StateBatch


def sentence_loss(predicted: Tensor, label: Tensor) -> Tensor:
    """Of scores of classes [B, C], the mean of -log p(label), in nats; of numbers [B], the mean of their squared
    distance to `label` [B] float32, which holds the numbers of the classes in the first case."""
    if predicted.dim() == 1:
        return mse_loss(predicted.float(), label)
    return cross_entropy(predicted.float(), label.long())


def build(
    settings: dict,
) -> Callable[["SentenceModel", "SentenceBatch | StateBatch"], tuple[Tensor, dict[str, Tensor]]]:
    """objective(model, batch) -> (loss, parts). `settings`: those of the model's head, see SentenceSettings."""
    read_settings(SentenceSettings, settings, "objective")

    def objective(model: "SentenceModel", batch: "SentenceBatch | StateBatch") -> tuple[Tensor, dict[str, Tensor]]:
        loss = sentence_loss(model(batch), batch.label)
        return loss, {"sentence": loss.detach()}

    return objective

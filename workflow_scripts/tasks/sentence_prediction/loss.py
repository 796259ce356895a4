"""Loss of fine-tuning on sentences: cross-entropy of classes, mean squared error of scores."""

from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from workflow_scripts.tasks.sentence_prediction.batches import SentenceBatch, StateBatch
from workflow_scripts.tasks.sentence_prediction.model import SentenceModel


def prediction_loss(predicted: Tensor, label: Tensor) -> Tensor:
    """Mean of -log p(label) of class scores [B, C], in nats, or mean squared error of numbers [B].

    `label` [B] float32 holds the numbers of the classes in the first case.
    """
    if predicted.dim() == 1:
        return mse_loss(predicted.float(), label)
    return cross_entropy(predicted.float(), label.long())


def compute_sentence_loss(model: SentenceModel, batch: SentenceBatch | StateBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (`prediction_loss` of the model's predictions, parts)."""
    loss = prediction_loss(model(batch), batch.label)
    return loss, {"sentence": loss.detach()}

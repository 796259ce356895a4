"""Loss of fine-tuning on sentences."""

from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from workflow_scripts.tasks.sentence_prediction.batches import SentenceBatch, StateBatch
from workflow_scripts.tasks.sentence_prediction.model import SentenceModel


def compute_sentence_loss(model: SentenceModel, batch: SentenceBatch | StateBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean of -log p(label) of classes, in nats, or mean squared error of scores; parts)."""
    predicted = model(batch).float()
    loss = mse_loss(predicted, batch.label) if predicted.dim() == 1 else cross_entropy(predicted, batch.label.long())
    return loss, {"sentence": loss.detach()}

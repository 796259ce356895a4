"""Loss of finding a span: its first and last token."""

from torch import Tensor
from torch.nn.functional import cross_entropy

from workflow_scripts.tasks.question_answering.batches import SpanBatch
from workflow_scripts.tasks.question_answering.model import SpanModel


def compute_span_loss(model: SpanModel, batch: SpanBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over windows of the mean of -log p(first token) and -log p(last token), in nats; parts).

    In a window without the answer both tokens are [CLS].
    """
    scores = model(batch).float()  # [B, 2, S]
    loss = cross_entropy(scores.flatten(0, 1), batch.ends.flatten())
    return loss, {"span": loss.detach()}

"""The loss of finding a span: where it begins and where it ends."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import cross_entropy

from workflow_scripts.models.settings import read_settings
from workflow_scripts.objectives.sentence_settings import SpanSettings

if TYPE_CHECKING:
    from workflow_scripts.models.span import SpanModel
    from workflow_scripts.training.span_batches import SpanBatch


def build(settings: dict) -> Callable[["SpanModel", "SpanBatch"], tuple[Tensor, dict[str, Tensor]]]:
    """objective(model, batch) -> (mean over windows of the mean of -log p(first token) and -log p(last token), in nats;
    parts). In a window without the answer both are [CLS]. `settings`: see SpanSettings."""
    read_settings(SpanSettings, settings, "objective")

    def objective(model: "SpanModel", batch: "SpanBatch") -> tuple[Tensor, dict[str, Tensor]]:
        scores = model(batch).float()  # [B, 2, S]
        loss = cross_entropy(scores.flatten(0, 1), batch.ends.flatten())
        return loss, {"span": loss.detach()}

    return objective

"""Transformer with a choice of how word vectors and positions are scaled (Csordás et al. 2021)."""

from torch import Tensor, nn

from workflow_scripts.models.scaled_embedding.settings import Settings
from workflow_scripts.models.transformer.model import Seq2Seq, make_sinusoids


class ScaledEmbedding(Seq2Seq):
    """Transformer; the initial word vectors follow from the scaling, as in the official code."""

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        self.scaling = settings.scaling
        for table in (self.source_embedding, self.target_embedding):
            if settings.scaling == "up" or settings.positions == "relative":
                nn.init.xavier_uniform_(table.weight)
            elif settings.scaling == "none":
                nn.init.normal_(table.weight)
            else:
                nn.init.kaiming_normal_(table.weight)
            nn.init.zeros_(table.weight[0])

    def embed(self, table: nn.Embedding, ids: Tensor, offset: int = 0) -> Tensor:
        """Return the dropped-out sum of word vectors and positions.

        ids [B, S], from position `offset` on -> [S, B, d].
        """
        width, states = self.settings.width, table(ids.t())
        if self.scaling == "up":
            states = states * width**0.5
        if self.settings.positions == "sinusoidal":
            positions = make_sinusoids(ids.size(1), width, offset, ids.device)
            states = states + (positions * width**-0.5 if self.scaling == "down" else positions)
        return self.dropout(states)


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> ScaledEmbedding:
    """Build the model with random weights."""
    return ScaledEmbedding(settings, source_vocabulary, target_vocabulary)

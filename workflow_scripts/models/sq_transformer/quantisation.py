"""Vector quantisation of word embeddings: each word gets one code of a small codebook."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot


@dataclass
class Quantised:
    """codes [S, B] (ids); scores [S, B, K]; vectors [S, B, d]: codebook rows of the codes, with their gradient."""

    codes: Tensor
    scores: Tensor
    vectors: Tensor


def score_by_distance(embedded: Tensor, codebook: Tensor) -> Tensor:
    """s_k(x) = -||e_x - z_k||^2 + ||e_x||^2: embedded [..., d], codebook [K, d] -> [..., K].

    The term ||e_x||^2 is the same for all codes: neither arg max nor softmax sees it, and without it less is rounded.
    """
    return 2 * embedded @ codebook.t() - codebook.square().sum(dim=1)


def score_by_cosine(embedded: Tensor, codebook: Tensor) -> Tensor:
    """s_k(x) = cos(e_x, z_k) (paper, A.4): embedded [..., d], codebook [K, d] -> [..., K]."""
    return normalize(embedded, dim=-1) @ normalize(codebook, dim=-1).t()


def apply_straight_through(vectors: Tensor, embedded: Tensor) -> Tensor:
    """The value of `vectors` (exactly), with the gradient going to `embedded` instead; both [..., d]."""
    return vectors.detach() + (embedded - embedded.detach())


class Quantiser(nn.Module):
    """A codebook Z [K, d] that is trained by its gradient, follows the words assigned to it (`ema_decay` < 1), or both.

    With `mask_code` one more row, never assigned, stands for a code that a predictor must guess. Without `gradient`
    that row keeps its first value.
    """

    def __init__(
        self,
        codes: int,
        width: int,
        mask_code: bool,
        cosine: bool,
        ema_decay: float,
        count_padding: bool,
        gradient: bool,
    ):
        super().__init__()
        self.codes = codes
        directions = normalize(torch.empty(codes + mask_code, width).uniform_(-1, 1))
        self.codebook = nn.Parameter(directions, requires_grad=gradient)
        self.cosine = cosine
        self.ema_decay = ema_decay
        self.count_padding = count_padding
        self.directions: Tensor | None = None

    def score_codes(self, embedded: Tensor) -> Tensor:
        """Similarity to each code, -inf for the mask code: [..., d] -> [..., K]; q(z | x) is their softmax."""
        # In half precision near codes could not be told apart.
        with torch.autocast(embedded.device.type, enabled=False):
            scores = (score_by_cosine if self.cosine else score_by_distance)(embedded.float(), self.codebook)
        if self.codebook.size(0) > self.codes:
            scores = scores.masked_fill(torch.arange(scores.size(-1), device=scores.device) >= self.codes, -torch.inf)
        return scores

    def forward(self, embedded: Tensor) -> Quantised:
        """Nearest code of each embedding, the first on a tie (Eqn 1): embedded [S, B, d] -> Quantised."""
        scores = self.score_codes(embedded)
        codes = scores.argmax(dim=-1)
        return Quantised(codes, scores, nn.functional.embedding(codes, self.codebook))

    @torch.no_grad()
    def observe(self, embedded: Tensor, codes: Tensor, real: Tensor) -> None:
        """Remember, for the next `finish_step`, the sum of the directions e_n / ||e_n|| of each code's members.

        embedded [S, B, d], codes [S, B], real [S, B] (False on padding).
        """
        if self.ema_decay == 1:
            return
        embedded = embedded.float()
        members = one_hot(codes, self.codebook.size(0)).float()
        if not self.count_padding:
            members *= real[..., None]
        # Padding has a zero embedding: counted, it gives a code that holds nothing else the direction 0. The count of
        # the members, in the last column, tells such a code from one without members.
        directions = torch.cat([normalize(embedded, dim=-1), torch.ones_like(embedded[..., :1])], dim=-1)
        with torch.autocast(embedded.device.type, enabled=False):
            sums = members.flatten(0, 1).t() @ directions.flatten(0, 1)
        self.directions = sums if self.directions is None else self.directions + sums

    @torch.no_grad()
    def finish_step(self) -> None:
        """z_k <- lambda z_k + (1 - lambda) normalise(sum of its members' directions).

        A code without members moves towards its own direction.
        """
        if self.directions is None:
            return
        towards = torch.where(self.directions[:, -1:] > 0, self.directions[:, :-1], self.codebook)
        self.codebook.lerp_(normalize(towards, dim=1), 1 - self.ema_decay)
        self.directions = None

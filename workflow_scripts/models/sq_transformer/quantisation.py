"""Structure-oriented vector quantisation (SoVQ).

Each word embedding gets one code of a small codebook.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from workflow_scripts.models.sq_transformer.settings import Settings


@dataclass
class Quantised:
    """Code ids [S, B], scores of all codes [S, B, K], codebook rows of the codes [S, B, d]."""

    codes: Tensor
    scores: Tensor
    vectors: Tensor


def apply_straight_through(vectors: Tensor, embedded: Tensor) -> Tensor:
    """Return exactly the value of `vectors`, its gradient passed to `embedded`; both [..., d]."""
    return vectors.detach() + (embedded - embedded.detach())


class Quantiser(nn.Module):
    """Codebook Z [K, d].

    It is trained by its gradient, by a moving average of its words (`ema_decay` < 1), or both.
    With `has_mask_code` there is one more row, which is never assigned: the input for a code that a
    predictor must guess. It is trained by its gradient; the moving average, as of any code without
    members, only takes its length towards 1.
    """

    def __init__(self, n_codes: int, settings: Settings, has_mask_code: bool = False):
        super().__init__()
        self.n_codes = n_codes
        self.settings = settings
        rows = torch.empty(n_codes + has_mask_code, settings.width).uniform_(-1, 1)
        self.codebook = nn.Parameter(normalize(rows), requires_grad=settings.codebook_gradient)
        # Of each code: the sum of its members' directions [d], and their number.
        self.member_sums: Tensor | None = None

    @property
    def mask_code(self) -> int:
        """The id of the mask code."""
        return self.n_codes

    def score_codes(self, embedded: Tensor) -> Tensor:
        """Return the similarity to each code, -inf for the mask code: [..., d] -> [..., K].

        q(z | x) is the softmax of
        s_k(x) = -||e_x - z_k||^2 + ||e_x||^2, or cos(e_x, z_k) (paper, A.4). ||e_x||^2 is equal for
        all codes, so it changes neither arg max nor softmax; without it there is less rounding.
        """
        # In half precision or TF32, codes that are close would get equal scores. These products are
        # small: autocast is off, and TF32 is only for products of fp32.
        with torch.autocast(embedded.device.type, enabled=False):
            embedded = embedded.double()
            codebook = self.codebook.double()
            if self.settings.similarity == "cosine":
                scores = normalize(embedded, dim=-1) @ normalize(codebook, dim=-1).t()
            else:
                scores = 2 * embedded @ codebook.t() - codebook.square().sum(dim=1)
            scores = scores.float()
        if self.codebook.size(0) > self.n_codes:
            number = torch.arange(scores.size(-1), device=scores.device)
            scores = scores.masked_fill(number >= self.n_codes, -torch.inf)
        return scores

    def forward(self, embedded: Tensor) -> Quantised:
        """Assign the nearest code to each embedding [S, B, d], the first on a tie (Eqn 1)."""
        scores = self.score_codes(embedded)
        codes = scores.argmax(dim=-1)
        return Quantised(codes, scores, nn.functional.embedding(codes, self.codebook))

    @torch.no_grad()
    def observe(self, embedded: Tensor, codes: Tensor, real: Tensor) -> None:
        """Sum the directions e_n / ||e_n|| of each code's members, for the next `finish_step`.

        embedded [S, B, d], codes [S, B], real [S, B] (False on padding).
        """
        if self.settings.ema_decay == 1:
            return
        embedded = embedded.float()
        every_code = torch.arange(self.codebook.size(0), device=codes.device)
        members = codes[..., None].eq(every_code) & real[..., None]
        # The last column counts the members, to tell a code without any.
        ones = torch.ones_like(embedded[..., :1])
        summands = torch.cat([normalize(embedded, dim=-1), ones], dim=-1)
        with torch.autocast(embedded.device.type, enabled=False):
            self.member_sums = members.flatten(0, 1).t().float() @ summands.flatten(0, 1)

    @torch.no_grad()
    def finish_step(self) -> None:
        """Move the codes towards their members.

        z_k <- lambda z_k + (1 - lambda) normalise(sum of its members' directions).
        lambda is `ema_decay`. A code without members moves towards its own direction.
        """
        if self.member_sums is None:
            return
        count = self.member_sums[:, -1:]
        towards = torch.where(count > 0, self.member_sums[:, :-1], self.codebook)
        self.codebook.lerp_(normalize(towards, dim=1), 1 - self.settings.ema_decay)
        self.member_sums = None

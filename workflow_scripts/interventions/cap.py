"""Constituent-aware pooling (CAP).

A language model predicts after each word became a single position. CAP(s) pools the hidden states
that enter block s over the tokens of each word. Blocks s, s+1, ..., the final norm and the
unembedding then run on the m words, with an m x m causal mask and positions 0..m-1:

    r_j = pool(h_a, ..., h_e), feature by feature, for word j with tokens a..e and pool one of max,
    mean, sum

The model's own forward pass runs the pooled sequences: it gets one row of m tokens, and a hook
before block s replaces the states of that row by the pooled ones of all items. So masks, rotary
angles, norms and the scaling of logits are always those of the model. The poolings of all requested
blocks share one pass: each block adds its rows to those of the blocks before it.

Models are in evaluation mode. Items are right-padded and need no attention mask, because attention
is causal.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.causal_lm.model import get_unembedding
from workflow_scripts.objectives.hidden_states import find_blocks

POOLINGS = ("max", "mean", "sum")


class Groups(NamedTuple):
    """Groups of neighbouring tokens with the same number in `words`; each group is pooled."""

    # [B, S] int64: the group of each token, 0..m-1 within its row; padding has larger numbers
    number: Tensor
    real: Tensor  # [B, S] bool: not padding
    n_groups: Tensor  # [B] int64: groups of each row, m
    length: Tensor  # [B] int64: tokens of each row


def group_tokens(words: Tensor) -> Groups:
    """Group tokens by the numbers of their words.

    words [B, S] int64: the number of the word (or phrase) of each token, -1 for BOS and padding. A
    token of -1 before the last word is a group of its own; tokens after the last word are padding.
    Raises UserError if a row has no word.
    """
    in_word = words >= 0
    empty = (~in_word.any(dim=1)).nonzero()[:, 0].tolist()
    if empty:
        raise UserError(
            f"CAP: item {empty[0]} of the batch has no word; leave prompts without words out"
        )
    starts = torch.ones_like(in_word)
    starts[:, 1:] = (words[:, 1:] != words[:, :-1]) | (words[:, 1:] < 0)
    after_last_word = in_word.flip(1).int().argmax(dim=1)  # tokens of a row after its last word
    length = words.size(1) - after_last_word
    real = torch.arange(words.size(1), device=words.device) < length[:, None]
    number = starts.cumsum(dim=1) - 1
    n_groups = (starts & real).sum(dim=1)
    return Groups(number, real, n_groups, length)


def pool(states: Tensor, groups: Groups, poolings: Sequence[str]) -> Tensor:
    """Pool states [B, S, d] over each group -> [P, B, M, d].

    M is the largest number of groups; there are zeros after the last group of a row. A group of one
    token keeps its state exactly. Sums are taken in float32 at least.
    """
    batch = len(groups.number)
    width = int(groups.n_groups.max())
    # Tokens of a group are neighbours, so the real tokens of all rows, in order, are consecutive
    # segments.
    first_group = torch.arange(batch, device=groups.number.device)[:, None] * width
    segment = (first_group + groups.number)[groups.real]
    segments, lengths = segment.unique_consecutive(return_counts=True)
    tokens = states[groups.real].to(torch.promote_types(states.dtype, torch.float32))
    pooled = states.new_zeros(len(poolings), batch * width, states.size(-1))
    for row, pooling in zip(pooled, poolings, strict=True):
        reduced = torch.segment_reduce(tokens, pooling, lengths=lengths, axis=0, unsafe=True)
        row[segments] = reduced.to(states.dtype)
    return pooled.view(len(poolings), batch, width, -1)


class PooledReadout(NamedTuple):
    """What CAP predicts with: the block whose input is pooled, how, and a readout."""

    layer: int
    pooling: str
    readout: str


def predict_with_cap(
    model: PreTrainedModel,
    batches: Iterable[Any],
    layers: Sequence[int],
    poolings: Sequence[str] = POOLINGS,
    labels: Tensor | None = None,
    rows: int = 1024,
    advance: Callable[[int], object] | None = None,
) -> dict[PooledReadout, Tensor]:
    """Predict the token after the last word of each of N items: int64 [N] on the CPU.

    The readout `vocabulary` compares all tokens; `labels`, if token ids [C] are given, only these.
    batches: objects with right-padded `ids` and `words` [B, S] (see `group_tokens`). layers: blocks
    whose input is pooled. rows: of a pass over pooled items, to limit memory. advance: called with
    the number of items that a pass has answered. Raises UserError for an unknown layer or an item
    without words.
    """
    readouts: dict[str, Tensor | None] = {"vocabulary": None}
    if labels is not None:
        readouts["labels"] = labels
    keys = [PooledReadout(*names) for names in product(layers, poolings, readouts)]
    predicted: dict[PooledReadout, list[Tensor]] = {key: [] for key in keys}
    for batch in batches:
        run = _Run(model, batch.ids, batch.words, layers, poolings)
        # [layers, poolings, B]. Where CAP changes nothing, the answer is that without CAP.
        answers: dict[str, Tensor] = {}
        for readout, token_ids in readouts.items():
            without_cap = _choose(run.logits, token_ids)
            answers[readout] = without_cap.repeat(len(run.layers), len(poolings), 1)
        if advance:
            advance(int((~run.touched).sum()))
        for items, logits in run.run_suffixes(rows):
            for readout, token_ids in readouts.items():
                answers[readout][:, :, items.cpu()] = _choose(logits, token_ids)
            if advance:
                advance(len(items))
        for key, parts in predicted.items():
            layer = run.layers.index(key.layer)
            pooling = run.poolings.index(key.pooling)
            parts.append(answers[key.readout][layer, pooling])
    return {key: torch.cat(parts) for key, parts in predicted.items()}


class _Run:
    """A run of a batch without CAP.

    logits [B, V]: at the last tokens. states: by block, the states [B, S, d] that enter it.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        ids: Tensor,
        words: Tensor,
        layers: Sequence[int],
        poolings: Sequence[str],
    ):
        count = len(find_blocks(model))
        for layer in layers:
            if not 0 <= layer < count:
                raise UserError(f"CAP: no block {layer}; the model has blocks 0 to {count - 1}")
        device = model.device
        self.model = model
        self.ids = ids.to(device)
        self.layers = sorted(set(layers))
        self.poolings = list(poolings)
        self.groups = group_tokens(words.to(device))
        self.touched = self.groups.n_groups < self.groups.length
        self.states: dict[int, Tensor] = {}
        blocks = find_blocks(model)
        hooks = {blocks[layer]: partial(self.states.setdefault, layer) for layer in self.layers}
        self.logits = _compute_last_logits(model, self.ids, self.groups.length - 1, hooks)

    def run_suffixes(self, rows: int = 1024) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield (items [n], logits [K, P, n, V]) for all items that CAP touches.

        K counts the layers, in ascending order, and P the poolings. rows: at most, of a pass, K P
        for each item. Items with similar numbers of words are in one pass, which needs little
        padding.
        """
        items = self.touched.nonzero()[:, 0]
        rows_of_item = len(self.layers) * len(self.poolings)
        if not len(items) or not rows_of_item:
            return
        by_words = self.groups.n_groups[items].argsort(descending=True, stable=True)
        for part in items[by_words].split(max(1, rows // rows_of_item)):
            groups = Groups(*[values[part] for values in self.groups])
            yield part, self._run_suffix(part, groups)

    def _run_suffix(self, items: Tensor, groups: Groups) -> Tensor:
        """Return logits [K, P, n, V] of `items` [n], whose tokens are grouped by `groups`."""

        def enter(layer: int, states: Tensor) -> Tensor:
            """Return the states of the layers before, with the pooled ones of this layer added."""
            pooled = pool(self.states[layer][items], groups, self.poolings).flatten(0, 1)
            if layer == self.layers[0]:
                return pooled
            return torch.cat([states, pooled])

        blocks = find_blocks(self.model)
        hooks = {blocks[layer]: partial(enter, layer) for layer in self.layers}
        last = (groups.n_groups - 1).repeat(len(self.layers) * len(self.poolings))
        # The ids only set the length of the pass, so any m tokens will do.
        ids = self.ids[:1, : int(groups.n_groups.max())]
        logits = _compute_last_logits(self.model, ids, last, hooks)
        return logits.view(len(self.layers), len(self.poolings), len(items), -1)


@torch.inference_mode()
def _compute_last_logits(
    model: PreTrainedModel, ids: Tensor, last: Tensor, hooks: dict[nn.Module, Callable]
) -> Tensor:
    """Return logits [N, V] at position last [N] of each of N sequences.

    These are the sequences that reach the unembedding. hooks: module -> function of the states
    [N, S, d] that enter it, which returns the states that replace them; they are removed at the
    end.
    """

    def select(states: Tensor) -> Tensor:
        """Return the states at the last positions alone: [N, S, d] -> [N, 1, d]."""
        rows = torch.arange(len(last), device=states.device)
        return states[rows, last.to(states.device)][:, None]

    def apply_change(
        change: Callable[[Tensor], Tensor], module: nn.Module, args: tuple, kwargs: dict
    ) -> tuple[tuple, dict]:
        """Return a module's arguments with its states changed; a forward hook."""
        if args:
            return (change(args[0]), *args[1:]), kwargs
        return args, kwargs | {"hidden_states": change(kwargs["hidden_states"])}

    changes = hooks | {get_unembedding(model): select}
    with ExitStack() as stack:
        for module, change in changes.items():
            hook = partial(apply_change, change)
            handle = module.register_forward_pre_hook(hook, with_kwargs=True)
            stack.enter_context(handle)
        return model(input_ids=ids, use_cache=False).logits[:, 0]


def _choose(logits: Tensor, token_ids: Tensor | None) -> Tensor:
    """Return the most probable token ids, of all tokens or of `token_ids` [C]; on the CPU."""
    if token_ids is None:
        return logits.argmax(dim=-1).cpu()
    choices = token_ids.to(logits.device)
    return choices[logits[..., choices].argmax(dim=-1)].cpu()

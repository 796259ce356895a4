"""Constituent-aware pooling (CAP): what a language model predicts once each word is a single position.

CAP(s) pools the hidden states that enter block s over the tokens of each word, then runs blocks s, s+1, ..., the final
norm and the unembedding on the m words, which see each other through an m x m causal mask and stand at positions
0..m-1:

    r_j = pool(h_a, ..., h_e), feature by feature, for word j with tokens a..e and pool one of max, mean, sum

The model's own forward pass runs the pooled sequences: it is called with one row of m tokens, and a hook before block
s exchanges the states of that row for the pooled ones of all items. Masks, rotary angles, norms and the scaling of
logits are thus always those of the model, and what rests on the installed version of transformers is small: where the
blocks are, and that a block takes hidden states first. The poolings of all requested blocks share one such pass: each
block adds its rows to those of the blocks before.

Models are in evaluation mode. Items are right-padded; no attention mask is needed, since nothing sees what follows it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.objectives.hidden_states import find_blocks

POOLINGS = ("max", "mean", "sum")


@dataclass(frozen=True)
class Groups:
    """Which tokens are pooled into one: runs of neighbouring tokens that have the same number in `words`."""

    index: Tensor  # [B, S] int64: the group of each token, 0..m-1 within its row; padding goes on counting
    real: Tensor  # [B, S] bool: not padding
    count: Tensor  # [B] int64: groups of each row, m
    length: Tensor  # [B] int64: tokens of each row

    def select(self, rows: Tensor) -> "Groups":
        """Those of `rows` [R]."""
        return Groups(self.index[rows], self.real[rows], self.count[rows], self.length[rows])


@dataclass(frozen=True)
class CapPredictions:
    """Token ids that a model prefers for N items, in the order of the batches; on the CPU, int64.

    A readout is `vocabulary` (the most probable of all tokens) or `labels` (of those that were handed in).
    """

    clean: dict[str, Tensor]  # readout -> [N]: without an intervention
    pooled: dict[tuple[int, str, str], Tensor]  # (layer, pooling, readout) -> [N]
    touched: Tensor  # [N] bool: some group of the item has several tokens. Elsewhere CAP is the clean run


def group_words(words: Tensor, bos_in_first_word: bool = False) -> Groups:
    """Groups from words [B, S] int64: the number of the word (or phrase) of each token, -1 for BOS and padding.

    A token of -1 before the last word is a group of its own; what follows the last word is padding.
    With `bos_in_first_word` the tokens before the first word belong to it, as in the authors' code.
    Raises UserError if a row has no word.
    """
    known = words >= 0
    empty = (~known.any(dim=1)).nonzero()[:, 0].tolist()
    if empty:
        raise UserError(f"CAP: item {empty[0]} of the batch has no word; leave prompts without words out")
    if bos_in_first_word:
        first = words.gather(1, known.int().argmax(dim=1, keepdim=True))
        words = torch.where(known.cumsum(dim=1) == 0, first, words)
    starts = torch.ones_like(known)
    starts[:, 1:] = (words[:, 1:] != words[:, :-1]) | (words[:, 1:] < 0)
    length = words.size(1) - known.flip(1).int().argmax(dim=1)
    real = torch.arange(words.size(1), device=words.device) < length[:, None]
    return Groups(starts.cumsum(dim=1) - 1, real, (starts & real).sum(dim=1), length)


def pool(states: Tensor, groups: Groups, poolings: Sequence[str]) -> Tensor:
    """Pool states [B, S, d] over each group -> [P, B, M, d], M the most groups of a row; zeros behind a row's last.

    A group of one token keeps its state exactly. Sums are taken in float32 at least.
    """
    real, index = groups.real, groups.index
    width = int(groups.count.max())
    # Tokens of a group are neighbours, so the real tokens of all rows in order are segments one behind the other.
    place = (torch.arange(len(index), device=index.device)[:, None] * width + index)[real]
    filled, lengths = place.unique_consecutive(return_counts=True)
    tokens = states[real].to(torch.promote_types(states.dtype, torch.float32))
    pooled = states.new_zeros(len(poolings), len(index) * width, states.size(-1))
    for row, pooling in zip(pooled, poolings, strict=True):
        row[filled] = torch.segment_reduce(tokens, pooling, lengths=lengths, axis=0, unsafe=True).to(states.dtype)
    return pooled.view(len(poolings), len(index), width, -1)


def predict_with_cap(
    model: nn.Module,
    batches: Iterable[Any],
    layers: Sequence[int],
    poolings: Sequence[str] = POOLINGS,
    labels: Tensor | None = None,
    bos_in_first_word: bool = False,
    rows: int = 1024,
) -> CapPredictions:
    """Predictions at the last word of each item, without and with CAP, for all layers and poolings in one job.

    batches: objects with `ids` and `words`, both [B, S] (see `group_words`), right-padded, on any device.
    layers: the blocks s whose input is pooled, each 0..L-1; poolings: of `max`, `mean`, `sum`.
    labels: token ids [C] of the readout `labels`; without them the only readout is `vocabulary`.
    rows: most sequences that a pass over pooled items holds, a bound on memory.
    Raises UserError for a layer or pooling that there is not, and for an item without words.
    """
    readouts = {"vocabulary": _best} if labels is None else {"vocabulary": _best, "labels": _best_of(labels)}
    clean = {name: [] for name in readouts}
    pooled = {(layer, pooling, name): [] for layer in layers for pooling in poolings for name in readouts}
    touched = []
    for batch in batches:
        run = _Run(model, batch.ids, batch.words, layers, poolings, bos_in_first_word)
        touched.append(run.touched.cpu())
        found = {}
        for name, read in readouts.items():
            clean[name].append(read(run.logits).cpu())
            found[name] = clean[name][-1].expand(len(run.layers), len(poolings), -1).clone()
        for items, logits in run.run_suffixes(rows):
            for name, read in readouts.items():
                found[name][:, :, items.cpu()] = read(logits).cpu()
        for layer, pooling, name in pooled:
            pooled[layer, pooling, name].append(found[name][run.layers.index(layer), run.poolings.index(pooling)])
    return CapPredictions(
        {name: _joined(parts) for name, parts in clean.items()},
        {key: _joined(parts) for key, parts in pooled.items()},
        _joined(touched).bool(),
    )


def compute_cap_logits(
    model: nn.Module,
    ids: Tensor,
    words: Tensor,
    layers: Sequence[int],
    pooling: str,
    bos_in_first_word: bool = False,
) -> Tensor:
    """Logits at the last word under CAP(s) for each s of `layers`: ids, words [B, S] -> [len(layers), B, V].

    Items whose groups all have one token get the logits of the clean run. Arguments and errors as `predict_with_cap`.
    """
    run = _Run(model, ids, words, layers, [pooling], bos_in_first_word)
    logits = run.logits.repeat(len(run.layers), 1, 1)
    for items, found in run.run_suffixes():
        logits[:, items] = found[:, 0]
    return logits[[run.layers.index(layer) for layer in layers]]


class _Run:
    """The clean run of a batch, kept to pool: `logits` [B, V] at each last token, states [B, S, d] entering blocks."""

    def __init__(
        self, model: nn.Module, ids: Tensor, words: Tensor, layers: Sequence[int], poolings: Sequence[str], bos: bool
    ):
        _check(layers, poolings, len(find_blocks(model)))
        device = model.get_input_embeddings().weight.device
        self.model, self.ids = model, ids.to(device)
        self.layers, self.poolings = sorted(set(layers)), list(poolings)
        self.groups = group_words(words.to(device), bos)
        self.touched = self.groups.count < self.groups.length
        self.states: dict[int, Tensor] = {}

        def keep(layer: int) -> Callable[[Tensor], Tensor]:
            return lambda states: self.states.setdefault(layer, states)

        hooks = {find_blocks(model)[layer]: keep(layer) for layer in self.layers}
        self.logits = _last_logits(model, self.ids, self.groups.length - 1, hooks)

    def run_suffixes(self, rows: int = 1024) -> Iterator[tuple[Tensor, Tensor]]:
        """(items [n], their logits [K, P, n, V]) of the K layers, ascending, until all items that CAP touches were met.

        Items of about as many words go together, so that little is padded.
        """
        items = self.touched.nonzero()[:, 0]
        items = items[self.groups.count[items].argsort(descending=True, stable=True)]
        stacked = len(self.layers) * len(self.poolings)
        for some in items.split(max(1, rows // stacked)) if len(items) and stacked else ():
            yield some, self._suffix(some)

    def _suffix(self, items: Tensor) -> Tensor:
        groups = self.groups.select(items)
        width = int(groups.count.max())

        def enter(layer: int) -> Callable[[Tensor], Tensor]:
            def exchange(states: Tensor) -> Tensor:
                new = pool(self.states[layer][items], groups, self.poolings).flatten(0, 1)
                return new if layer == self.layers[0] else torch.cat([states, new])

            return exchange

        hooks = {find_blocks(self.model)[layer]: enter(layer) for layer in self.layers}
        last = (groups.count - 1).repeat(len(self.layers) * len(self.poolings))
        # Any m tokens do: they only give the pass its length.
        logits = _last_logits(self.model, self.ids[:1, :width], last, hooks)
        return logits.view(len(self.layers), len(self.poolings), len(items), -1)


@torch.inference_mode()
def _last_logits(model: nn.Module, ids: Tensor, last: Tensor, hooks: dict[nn.Module, Callable]) -> Tensor:
    """Logits [N, V] at position last [N] of each of the N sequences that reach the unembedding."""

    def select(states: Tensor) -> Tensor:
        return states[torch.arange(len(last), device=states.device), last.to(states.device)][:, None]

    with _entering(hooks | {model.get_output_embeddings(): select}):
        return model(input_ids=ids, use_cache=False).logits[:, 0]


@contextmanager
def _entering(hooks: dict[nn.Module, Callable[[Tensor], Tensor]]) -> Iterator[None]:
    """Have each function map the states [N, S, d] that enter its module; undone at the end, after an error too."""

    def mapped(change: Callable[[Tensor], Tensor]) -> Callable:
        def hook(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
            if args:
                return (change(args[0]), *args[1:]), kwargs
            return args, kwargs | {"hidden_states": change(kwargs["hidden_states"])}

        return hook

    with ExitStack() as stack:
        for module, change in hooks.items():
            stack.enter_context(module.register_forward_pre_hook(mapped(change), with_kwargs=True))
        yield


def _check(layers: Sequence[int], poolings: Sequence[str], count: int) -> None:
    for layer in layers:
        if not 0 <= layer < count:
            raise UserError(f"CAP: no block {layer}; the model has {count} blocks, choose layers of 0 to {count - 1}")
    for pooling in poolings:
        if pooling not in POOLINGS:
            raise UserError(f"CAP: no pooling {pooling!r}; choose of {', '.join(POOLINGS)}")


def _best(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1)


def _best_of(labels: Tensor) -> Callable[[Tensor], Tensor]:
    def best(logits: Tensor) -> Tensor:
        choices = labels.to(logits.device)
        return choices[logits[..., choices].argmax(dim=-1)]

    return best


def _joined(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.long)

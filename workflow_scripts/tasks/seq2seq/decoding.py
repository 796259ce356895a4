"""Greedy and beam search for encoder-decoder models, over whole batches, and scores of the outputs.

Both searches return ids [B, T], T <= max_length: each row ends with the end symbol (unless cut at
max_length), then padding. max_length is one for all sentences, or one for each, [B].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from workflow_scripts.common.plug_ins import MEASURES, import_function
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.token_ids import EOS, PAD
from workflow_scripts.evaluation.measures import parse_measure_options
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.tasks.batching import bucket_by_length, to_sequences
from workflow_scripts.tasks.seq2seq.settings import Decoding

COLUMNS = ["source", "target", "subset", "source_ids", "target_ids"]


class Seq2SeqModel(Protocol):
    """What decoding needs of a model.

    The memory is what `decode_step` reads of B sources. A cache holds the states of B hypotheses up
    to now; `select(rows)` returns that of some of them.
    """

    def encode(self, source: Tensor) -> Any:
        """Return the memory of sources [B, S]."""

    def start_cache(self, memory: Any) -> Any:
        """Return the cache of hypotheses without a token."""

    def decode_step(self, memory: Any, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Return the logits [B, V] after the last tokens [B], and the new cache.

        A cache of None is that of `start_cache`.
        """
        ...


@torch.no_grad()
def decode_greedily(model: Seq2SeqModel, source: Tensor, max_length: int | Tensor) -> Tensor:
    """Choose the most probable token at every step: source [B, S] -> ids [B, T]."""
    limit, longest = _compute_limits(max_length, source)
    memory = model.encode(source)
    cache = None
    output = source.new_full((source.size(0), longest), PAD)
    rows = torch.arange(source.size(0), device=source.device)
    tokens = torch.full_like(rows, EOS)
    alive = torch.ones_like(rows, dtype=torch.bool)
    for step in range(longest):
        logits, cache = model.decode_step(memory, cache, tokens)
        logits[:, PAD] = -torch.inf
        tokens = logits.argmax(dim=-1).masked_fill(~alive, PAD)
        output[rows, step] = tokens
        alive &= tokens.ne(EOS) & (limit > step + 1)
        if not alive.any():
            break
        if _is_worth_dropping(alive):
            cache = cache.select(alive.nonzero()[:, 0])
            rows = rows[alive]
            limit = limit[alive]
            tokens = tokens[alive]
            alive = alive[alive]
    return _remove_padding(output)


@torch.no_grad()
def decode_with_beam(
    model: Seq2SeqModel,
    source: Tensor,
    beam: int,
    max_length: int | Tensor,
    length_penalty: float = 1.0,
) -> Tensor:
    """Find the best of `beam` hypotheses that reach the end symbol: source [B, S] -> ids [B, T].

    A hypothesis of T tokens (with the end symbol) has the score sum_t log p(y_t) /
    T^length_penalty. The search for a sentence stops when `beam` hypotheses have ended, or at
    max_length; without an ended one the best open one counts.
    """
    device = source.device
    sentences = source.size(0)
    limit, longest = _compute_limits(max_length, source)
    memory = model.encode(source)
    sentence_of_hypothesis = torch.arange(sentences, device=device).repeat_interleave(beam)
    cache = model.start_cache(memory).select(sentence_of_hypothesis)
    search = BeamSearch(source, beam, limit, longest, length_penalty)
    last = source.new_full((sentences * beam,), EOS)
    for step in range(longest):
        logits, cache = model.decode_step(memory, cache, last)
        candidates = search.rank_candidates(logits)
        search.record_ended(candidates, step)
        search.update_hypotheses(candidates, step)
        search.record_cut(step)
        alive = search.ended < beam
        if not alive.any():
            break
        if _is_worth_dropping(alive):
            kept = alive.nonzero()[:, 0]
            search.keep(kept)
            cache = cache.select((kept[:, None] * beam + search.parents).flatten())
        else:
            searched = torch.arange(len(search.rows), device=device)
            origins = (searched[:, None] * beam + search.parents).flatten()
            cache = cache.select(origins, same_sentences=True)
        last = search.tokens.flatten()
    return _remove_padding(search.output)


class Candidates(NamedTuple):
    """Extensions of hypotheses by a token, best first, all [B, C].

    scores: sum_t log p(y_t). parents: numbers of the hypotheses. tokens: the last ones.
    """

    scores: Tensor
    parents: Tensor
    tokens: Tensor


class BeamSearch:
    """The hypotheses of the B sentences that are still searched, and the outputs of all.

    rows [B]: a sentence's row in the output [sentences, longest]. limit [B]: its tokens, at most.
    hypotheses [B, beam, longest], best first. scores [B, beam]: their sum_t log p(y_t). tokens,
    parents [B, beam]: their last tokens, and the hypotheses that these extend. ended [B]: number of
    hypotheses that have reached the end symbol. best [B]: the score of the best of these, which is
    in the output.
    """

    def __init__(
        self, source: Tensor, beam: int, limit: Tensor, longest: int, length_penalty: float
    ):
        sentences = source.size(0)
        device = source.device
        self.beam = beam
        self.length_penalty = length_penalty
        self.limit = limit
        self.output = source.new_full((sentences, longest), PAD)
        self.rows = torch.arange(sentences, device=device)
        self.hypotheses = source.new_full((sentences, beam, longest), PAD)
        # All start from one.
        self.scores = torch.full((sentences, beam), -torch.inf, device=device)
        self.scores[:, 0] = 0.0
        self.ended = torch.zeros(sentences, dtype=torch.long, device=device)
        self.best = torch.full((sentences,), -torch.inf, device=device)

    def rank_candidates(self, logits: Tensor) -> Candidates:
        """Return the best candidates of each sentence, by logits [B beam, V] of the next token."""
        beam = self.beam
        logits = logits.float()
        logits[:, PAD] = -torch.inf
        # Of 2 beam candidates at most beam are end symbols (one per hypothesis), so beam open ones
        # remain. No more than 2 beam of them come from one hypothesis: only these get their
        # probability and enter the comparison.
        width = min(2 * beam, logits.size(-1))
        values, words = logits.topk(width, dim=1)
        log_probabilities = values - logits.logsumexp(dim=1, keepdim=True)
        values = log_probabilities.view(-1, beam, width) + self.scores[..., None]
        scores, index = values.flatten(1).topk(min(2 * beam, beam * width), dim=1)
        tokens = words.view(-1, beam * width).gather(1, index)
        return Candidates(scores, parents=index // width, tokens=tokens)

    def record_ended(self, candidates: Candidates, step: int) -> None:
        """Count the candidates that end, and write the best of them if none before was better."""
        scores = candidates.scores[:, : self.beam]
        is_end = candidates.tokens[:, : self.beam].eq(EOS)
        ending = is_end & scores.isfinite() & (self.ended < self.beam)[:, None]
        final = scores / (step + 1) ** self.length_penalty
        final = final.masked_fill(~ending, -torch.inf)
        value, slot = final.max(dim=1)
        better = (value > self.best).nonzero()[:, 0]
        self.best[better] = value[better]
        parents = candidates.parents[better, slot[better]]
        self.output[self.rows[better]] = self.hypotheses[better, parents]
        self.output[self.rows[better], step] = EOS
        self.ended += ending.sum(dim=1)

    def update_hypotheses(self, candidates: Candidates, step: int) -> None:
        """Make the best candidates that do not end the new hypotheses."""
        is_end = candidates.tokens.eq(EOS)
        open_scores = candidates.scores.masked_fill(is_end, -torch.inf)
        self.scores, slots = open_scores.topk(self.beam, dim=1)
        self.parents = candidates.parents.gather(1, slots)
        self.tokens = candidates.tokens.gather(1, slots)
        parents = self.parents[..., None].expand_as(self.hypotheses)
        self.hypotheses = self.hypotheses.gather(1, parents)
        self.hypotheses[..., step] = self.tokens

    def record_cut(self, step: int) -> None:
        """End the search at the limits. Without an ended hypothesis, the best open one counts."""
        is_cut = (self.limit == step + 1) & self.best.eq(-torch.inf)
        self.output[self.rows[is_cut]] = self.hypotheses[is_cut, 0]
        self.ended = self.ended.masked_fill(self.limit <= step + 1, self.beam)

    def keep(self, kept: Tensor) -> None:
        """Search only the sentences `kept`."""
        self.rows = self.rows[kept]
        self.limit = self.limit[kept]
        self.hypotheses = self.hypotheses[kept]
        self.scores = self.scores[kept]
        self.tokens = self.tokens[kept]
        self.parents = self.parents[kept]
        self.ended = self.ended[kept]
        self.best = self.best[kept]


def _compute_limits(max_length: int | Tensor, source: Tensor) -> tuple[Tensor, int]:
    """Return (maximum tokens of each sentence [B], the largest of them)."""
    limit = torch.as_tensor(max_length, device=source.device).expand(source.size(0))
    return limit, int(limit.max())


def _is_worth_dropping(alive: Tensor) -> bool:
    """Whether enough sentences are finished to pay for copying the cache without them.

    alive [B] is False where a sentence is finished.
    """
    return bool(alive.sum() <= 0.75 * alive.numel())


def _remove_padding(output: Tensor) -> Tensor:
    """Remove the columns that are padding in every row."""
    return output[:, : int(output.ne(PAD).sum(dim=1).max())]


def decode(
    model: Seq2SeqModel,
    table: pa.Table,
    target_words: list[str],
    settings: Decoding,
    device: torch.device,
    reporter: Reporter | None = None,
) -> list[str]:
    """Decode each row of a split (columns `source`, `source_ids`). Words are joined by one space.

    Identical sources are decoded once.
    """
    coded = table["source"].combine_chunks().dictionary_encode()
    source_of_row = coded.indices.to_numpy()
    _, first_rows = np.unique(source_of_row, return_index=True)
    sources = to_sequences(table["source_ids"].take(first_rows))
    outputs: list[str] = [""] * len(sources)
    length = sources.length + 1
    max_length = (settings.max_length_ratio * length).astype(np.int64) + settings.max_length
    batch_tokens = max(settings.batch_tokens, int(length.max()))
    for rows in bucket_by_length(length, length, batch_tokens):
        source = torch.from_numpy(sources.pad(rows)).to(device)
        limit = torch.from_numpy(max_length[rows]).to(device)
        if settings.beam == 1:
            ids = decode_greedily(model, source, limit)
        else:
            ids = decode_with_beam(model, source, settings.beam, limit)
        for row, sentence in zip(rows.tolist(), ids.tolist(), strict=True):
            outputs[row] = _join_words(sentence, target_words)
        if reporter:
            reporter.advance(len(rows))
    return [outputs[index] for index in source_of_row]


def _join_words(ids: list[int], target_words: list[str]) -> str:
    """Return the words of a decoded row up to its end symbol, joined by one space."""
    if EOS in ids:
        ids = ids[: ids.index(EOS)]
    return " ".join(target_words[token] for token in ids if token != PAD)


def join_tokens(texts: Sequence[str], into: str) -> list[str]:
    """Join space-separated tokens as `Decoding.joined` says.

    `tokens` leaves them unchanged, `words` joins parts of words, and `text` makes one text.
    """
    if into == "tokens":
        return list(texts)
    words = [text.replace("@@ ", "").removesuffix("@@") for text in texts]
    if into == "words":
        return words
    return [text.replace(" ", "") for text in words]


def score_with_modules(
    outputs: list[str], references: list[str], data: Path, split: str, settings: Decoding
) -> list[Score]:
    """Return the scores of the metric modules that the settings name.

    outputs, references: one text per row of the split, already joined by `join_tokens`.
    """
    scores = []
    for name, content in settings.measures.items():
        score_outputs = import_function(name, "score_outputs", MEASURES)
        options = parse_measure_options(name, content, f"evaluation.measures.{name}")
        scores += score_outputs(outputs, references, read_table(data, split), data, options)
    return scores

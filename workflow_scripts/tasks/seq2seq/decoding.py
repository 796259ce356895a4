"""Greedy and beam search for encoder-decoder models, over whole batches, and the scores of the joined outputs.

Both searches return ids [B, T], T <= max_length: each row ends with the end symbol (unless cut at max_length), then
padding. max_length is one for all sentences, or one for each, [B].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from workflow_scripts.common.plug_ins import MEASURES, import_function
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.measures import parse_measure_options
from workflow_scripts.tasks.batching import EOS, PAD, bucket_by_length, to_sequences
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation

COLUMNS = ["source", "target", "subset", "source_ids", "target_ids"]


@torch.no_grad()
def decode_greedily(model: nn.Module, source: Tensor, max_length: int | Tensor) -> Tensor:
    """Choose the most probable token at every step: source [B, S] -> ids [B, T]."""
    limit, longest = _limits(max_length, source)
    memory, cache = model.encode(source), None
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
        if _worth_dropping(alive):
            cache = cache.select(alive.nonzero()[:, 0])
            rows, limit, tokens, alive = rows[alive], limit[alive], tokens[alive], alive[alive]
    return _cut(output)


@torch.no_grad()
def decode_with_beam(
    model: nn.Module,
    source: Tensor,
    beam: int,
    max_length: int | Tensor,
    length_penalty: float = 1.0,
) -> Tensor:
    """Find the best of `beam` hypotheses that reach the end symbol: source [B, S] -> ids [B, T].

    A hypothesis of T tokens (with the end symbol) has the score sum_t log p(y_t) / T^length_penalty. The search for a
    sentence stops when `beam` hypotheses have ended, or at max_length; without an ended one the best open one counts.
    """
    sentences, device = source.size(0), source.device
    limit, longest = _limits(max_length, source)
    memory = model.encode(source)
    cache = model.start(memory).select(
        torch.arange(sentences, device=device).repeat_interleave(beam)
    )
    output = source.new_full((sentences, longest), PAD)
    # Of each sentence still searched: its row in the output, and its hypotheses, best first. All start from one.
    rows = torch.arange(sentences, device=device)
    hypotheses = source.new_full((sentences, beam, longest), PAD)
    scores = torch.full((sentences, beam), -torch.inf, device=device)
    scores[:, 0] = 0.0
    ended = torch.zeros(sentences, dtype=torch.long, device=device)
    best = torch.full((sentences,), -torch.inf, device=device)
    last = source.new_full((sentences * beam,), EOS)
    for step in range(longest):
        logits, cache = model.decode_step(memory, cache, last)
        logits = logits.float()
        logits[:, PAD] = -torch.inf
        # Of 2 beam candidates at most beam are end symbols (one per hypothesis), so beam open ones remain. No more than
        # 2 beam of them come from one hypothesis: only these get their probability and enter the comparison.
        width = min(2 * beam, logits.size(-1))
        values, words = logits.topk(width, dim=1)
        values = (values - logits.logsumexp(dim=1, keepdim=True)).view(-1, beam, width) + scores[
            ..., None
        ]
        candidates, index = values.flatten(1).topk(min(2 * beam, beam * width), dim=1)
        parents, tokens = index // width, words.view(-1, beam * width).gather(1, index)
        is_end = tokens.eq(EOS)

        ending = is_end[:, :beam] & candidates[:, :beam].isfinite() & (ended < beam)[:, None]
        final = (candidates[:, :beam] / (step + 1) ** length_penalty).masked_fill(
            ~ending, -torch.inf
        )
        value, slot = final.max(dim=1)
        better = (value > best).nonzero()[:, 0]
        best[better] = value[better]
        output[rows[better]] = hypotheses[better, parents[better, slot[better]]]
        output[rows[better], step] = EOS
        ended += ending.sum(dim=1)

        scores, slots = candidates.masked_fill(is_end, -torch.inf).topk(beam, dim=1)
        parents, tokens = parents.gather(1, slots), tokens.gather(1, slots)
        hypotheses = hypotheses.gather(1, parents[..., None].expand_as(hypotheses))
        hypotheses[..., step] = tokens
        # At the limit without an ended hypothesis, the best open one counts.
        cut = (limit == step + 1) & best.eq(-torch.inf)
        output[rows[cut]] = hypotheses[cut, 0]
        ended = ended.masked_fill(limit <= step + 1, beam)

        alive = ended < beam
        if not alive.any():
            break
        if _worth_dropping(alive):
            kept = alive.nonzero()[:, 0]
            rows, ended, best, limit = rows[kept], ended[kept], best[kept], limit[kept]
            hypotheses, scores, tokens, parents = (
                x[kept] for x in (hypotheses, scores, tokens, parents)
            )
            cache = cache.select((kept[:, None] * beam + parents).flatten())
        else:
            searched = torch.arange(len(rows), device=device)
            cache = cache.select(
                (searched[:, None] * beam + parents).flatten(), same_sentences=True
            )
        last = tokens.flatten()
    return _cut(output)


def _limits(max_length: int | Tensor, source: Tensor) -> tuple[Tensor, int]:
    """Return (maximum tokens of each sentence [B], the largest of them)."""
    limit = torch.as_tensor(max_length, device=source.device).expand(source.size(0))
    return limit, int(limit.max())


def _worth_dropping(alive: Tensor) -> bool:
    """Whether enough sentences are finished (alive [B] is False) to pay for copying the cache without them."""
    return bool(alive.sum() <= 0.75 * alive.numel())


def _cut(output: Tensor) -> Tensor:
    """Remove the columns that are padding in every row."""
    return output[:, : int(output.ne(PAD).sum(dim=1).max())]


def decode(
    model: nn.Module,
    table: pa.Table,
    target_words: list[str],
    settings: Seq2SeqEvaluation,
    device: torch.device,
    reporter: Reporter | None = None,
) -> list[str]:
    """Decode each row of a split (columns `source`, `source_ids`). Words are joined by one space."""
    coded = table["source"].combine_chunks().dictionary_encode()
    which = coded.indices.to_numpy()
    first = np.unique(which, return_index=True)[1]
    sources = to_sequences(table["source_ids"].take(first))
    length = sources.length + 1
    outputs: list[str] = [""] * len(first)
    longest = (settings.max_length_ratio * length).astype(np.int64) + settings.max_length
    for rows in bucket_by_length(length, length, max(settings.batch_tokens, int(length.max()))):
        source, limit = (
            torch.from_numpy(values).to(device) for values in (sources.pad(rows), longest[rows])
        )
        if settings.beam == 1:
            ids = decode_greedily(model, source, limit)
        else:
            ids = decode_with_beam(model, source, settings.beam, limit)
        for row, sentence in zip(rows.tolist(), ids.tolist(), strict=True):
            end = sentence.index(EOS) if EOS in sentence else len(sentence)
            outputs[row] = " ".join(target_words[token] for token in sentence[:end] if token != PAD)
        if reporter:
            reporter.advance(len(rows))
    return [outputs[index] for index in which]


def join_tokens(texts: Sequence[str], into: str) -> list[str]:
    """Join space-separated tokens as `Seq2SeqEvaluation.joined` says: `tokens` (unchanged), `words`, or one `text`."""
    if into == "tokens":
        return list(texts)
    words = [text.replace("@@ ", "").removesuffix("@@") for text in texts]
    return words if into == "words" else [text.replace(" ", "") for text in words]


def score_with_modules(
    outputs: list[str], references: list[str], data: Path, split: str, settings: Seq2SeqEvaluation
) -> list[dict[str, Any]]:
    """Return the score rows of the metric modules of the settings. Outputs and references are joined."""
    rows = []
    for name, content in settings.measures.items():
        score_outputs = import_function(name, "score_outputs", MEASURES)
        options = parse_measure_options(name, content, f"evaluation.measures.{name}")
        rows += score_outputs(outputs, references, read_table(data, split), data, options)
    return rows

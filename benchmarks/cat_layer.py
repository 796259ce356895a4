"""CAT against what it is added to: a layer against BERT's, in time and memory; sparse codebook
attention against dense; a step of pre-training against Hugging Face's BertForPreTraining; the share
of a step that waits for its batch.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from rich.console import Console
from torch import Tensor, nn
from transformers import BertForPreTraining
from transformers.models.bert.modeling_bert import BertLayer

from benchmarks.fuse_attention import both_ways, saved_bytes
from benchmarks.training_step import step
from benchmarks.turns import ratio, show, take_turns
from workflow_scripts.data.formats import mapped_pairs
from workflow_scripts.data.formats.mapped_pairs import SIDES
from workflow_scripts.models.cat import model as cat_model
from workflow_scripts.models.cat.model import CatConfig, CodebookAttention, StreamMixer
from workflow_scripts.models.cat.settings import Settings as CatSettings
from workflow_scripts.models.encoder import model as encoder
from workflow_scripts.models.encoder.model import SpecialTokens
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.objectives.compositional import objective as compositional
from workflow_scripts.tasks.batching import RaggedSequences
from workflow_scripts.tasks.masked_lm import model as pretraining
from workflow_scripts.tasks.masked_lm.batches import (
    MaskedBatch,
    SentencePairs,
    Vocabulary,
    bucket_pairs,
    read_ordered_sentences,
)
from workflow_scripts.tasks.masked_lm.model import MaskedLoss
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, SememeLexicon, hash_words
from workflow_scripts.tasks.run_spec import parse_named_settings

# Width, feed-forward width, heads, codes, codes of the last layer, vocabulary: of the paper and of
# the small scale.
SIZES = {"paper": (768, 3072, 12, 1000, 3152, 30522), "small": (128, 512, 4, 256, 3152, 8192)}
LAYERS, DROPOUT = 4, 0.1
MAPPED = 200_000  # pairs in files


def settings(name: str, model: str) -> dict:
    """Of the model `encoder`, which is BERT, or `cat`."""
    width, feed_forward, heads, codes, last, _ = SIZES[name]
    sizes = {
        "layers": LAYERS,
        "width": width,
        "feed_forward": feed_forward,
        "heads": heads,
        "dropout": DROPOUT,
    }
    sizes |= {"tied": True}  # as in BertForPreTraining
    return sizes | ({"codes": codes, "last_codes": last} if model == "cat" else {})


class Layer(nn.Module):
    """One layer of a model: the block, and, where `codes` are given, codebook attention and mixing
    after it.
    """

    def __init__(self, config: CatConfig, codes: int | None):
        super().__init__()
        self.block = BertLayer(config, layer_idx=0)
        self.codebook = CodebookAttention(config, codes) if codes else None
        if self.codebook:
            # else it is what the memory held
            nn.init.normal_(self.codebook.codebook, std=config.initializer_range)
        self.mixing = StreamMixer(config) if codes else None

    def forward(self, states: Tensor) -> Tensor:
        states = self.block(states)
        if self.codebook is None or self.mixing is None:
            return states
        return self.mixing(states, self.codebook(states)[0], None)


def layers(name: str, rounds: int, sentences: int, length: int) -> None:
    """Time and memory of a layer, forward and backward, and of codebook attention alone."""
    width, _, _, codes, last, _ = SIZES[name]
    states = torch.randn(sentences, length, width, requires_grad=True)
    config = cat_model.build_cat_config(CatSettings(**settings(name, "cat")), 100)
    config._attn_implementation = "sdpa"  # what a model chooses
    models = {
        "BERT layer": None,
        f"CAT layer, {codes} codes": codes,
        f"CAT layer, {last} codes": last,
    }
    made = {title: Layer(config, count) for title, count in models.items()}
    calls = {title: both_ways(layer, lambda m=layer: m(states)) for title, layer in made.items()}
    show(f"{name}: a layer, {sentences} x {length} tokens", take_turns(calls, rounds), "BERT layer")
    kept = {title: saved_bytes(lambda m=layer: m(states)) for title, layer in made.items()}
    for title, size in kept.items():
        Console().print(
            f"{title}: keeps {size / 1e6:.1f} MB, {size / kept['BERT layer']:.2f} times BERT's"
        )
    attention = {}
    for title, kind in (("sparse", "relu"), ("dense", "softmax")):
        config.attention = kind
        module = CodebookAttention(config, last)
        nn.init.normal_(module.codebook)
        attention[title] = both_ways(module, lambda m=module: m(states)[0])
    show(f"{name}: codebook attention, {last} codes", take_turns(attention, rounds), "dense")


def random_pairs(vocabulary: int, count: int, longest: int, sememes: int) -> SentencePairs:
    """Pairs of random words, each with three sememes."""
    rng = np.random.default_rng(0)

    def sentences() -> RaggedSequences:
        length = rng.integers(longest // 3, longest + 1, count)
        return RaggedSequences(
            rng.integers(5, vocabulary, length.sum()).astype(np.int32),
            np.cumsum(length) - length,
            length,
        )

    special = SpecialTokens(2, 3)
    known = Vocabulary(special, 4, np.arange(5, vocabulary), np.zeros(vocabulary, bool))
    tokens = np.arange(5, vocabulary)
    keys = hash_words(tokens, np.arange(len(tokens)), np.arange(len(tokens)))
    table = np.append(rng.integers(0, sememes, (len(tokens), 3)), [[NONE] * 3], 0).astype(np.int32)
    order = np.argsort(keys)
    lexicon = SememeLexicon(
        keys[order], np.append(table[order], table[-1:], 0), np.append(np.full(len(tokens), 3), 0)
    )
    return SentencePairs(sentences(), sentences(), known, 128, True, lexicon)


def mapped(pairs: SentencePairs, folder: Path) -> SentencePairs:
    """The same pairs from files that are mapped into memory, as Wikipedia's are."""
    columns = {}
    for side in SIDES:
        ragged = getattr(pairs, side)
        offsets = np.append(ragged.start, ragged.start[-1] + ragged.length[-1]).astype(np.int32)
        columns[f"{side}_ids"] = pa.ListArray.from_arrays(offsets, pa.array(ragged.ids))
    pq.write_table(pa.table(columns), folder / "train.parquet")
    mapped_pairs.write_mapped_pairs(folder, "train")
    first, second, orders = read_ordered_sentences(folder, "train")
    return replace(pairs, first=first, second=second, orders=orders)


def making(pairs: SentencePairs, batch_tokens: int, times: int = 20) -> float:
    """Seconds to make a batch, on average over random ones."""
    rows, rng = bucket_pairs(pairs, batch_tokens, None), np.random.default_rng(0)
    chosen = [rows[int(i)] for i in rng.integers(0, len(rows), times)]
    began = time.perf_counter()
    for one in chosen:
        pairs.make_batch(one, rng)
    return (time.perf_counter() - began) / times


def theirs(model: BertForPreTraining, batch: MaskedBatch) -> Tensor:
    """The loss of Hugging Face's model; 0 is its label of a sentence that follows."""
    return model(
        input_ids=batch.ids,
        attention_mask=batch.real,
        token_type_ids=batch.types,
        labels=batch.labels,
        next_sentence_label=1 - batch.follows,
    ).loss


def steps(name: str, rounds: int, batch_tokens: int) -> None:
    """A training step of BERT, of Hugging Face's, of CAT; tokens a second; the share of making the
    batch.
    """
    vocabulary, sememes = SIZES[name][5], SIZES[name][4]
    pairs = random_pairs(vocabulary, 4 * batch_tokens // 64, 60, sememes)
    rows, rng = bucket_pairs(pairs, batch_tokens, None)[-2], np.random.default_rng(0)
    batch = pairs.make_batch(rows, rng)
    bert, cat = (
        pretraining.build(
            parse_named_settings({"name": model, **settings(name, model)}, "model", "sizes"),
            vocabulary,
        )
        for model in ("encoder", "cat")
    )
    config = encoder.build_encoder_config(EncoderSettings(**settings(name, "encoder")), vocabulary)
    hugging = BertForPreTraining._from_config(config).train()
    masked = MaskedLoss()
    composed = compositional.build(compositional.Settings(), masked)
    calls = {
        "BERT, ours": step(bert, lambda: masked(bert, batch)[0]),
        "BertForPreTraining": step(hugging, lambda: theirs(hugging, batch)),
        "CAT": step(cat, lambda: composed(cat, batch)[0]),
    }
    seconds = take_turns(calls, rounds)
    show(
        f"{name}: a step of pre-training, {batch.ids.size(0)} x {batch.ids.size(1)} tokens",
        seconds,
        "BERT, ours",
    )
    tokens = int(batch.real.sum())
    for title, times in seconds.items():
        Console().print(f"{title}: {tokens / np.median(times):.0f} tokens/s")
    faster = ratio(seconds, "BertForPreTraining", "BERT, ours")
    Console().print(f"BertForPreTraining / ours: {faster:.2f}; target: at least 1")
    with TemporaryDirectory() as folder:
        waiting = {"in memory": making(pairs, batch_tokens)}
        waiting["mapped"] = making(
            mapped(random_pairs(vocabulary, MAPPED, 60, sememes), Path(folder)), batch_tokens
        )
    for title in ("BERT, ours", "CAT"):
        for where, taken in waiting.items():
            share = 100 * taken / (taken + np.median(seconds[title]))
            Console().print(
                f"{title}: {share:.2f}% of a step makes the batch, pairs {where}; target: below 5%"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", choices=SIZES, action="append")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    for name in args.size or SIZES:
        layers(name, args.rounds, sentences=16, length=64)
        steps(name, args.rounds, batch_tokens=1024)


if __name__ == "__main__":
    main()

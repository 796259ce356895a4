"""Greedy decoding of COGS test sentences with and without the key/value cache."""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.turns import show, take_turns
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.data.token_ids import EOS
from workflow_scripts.tasks.batching import make_bucketed_batches
from workflow_scripts.tasks.seq2seq.batches import read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.decoding import decode_greedily


def decode_uncached(model: Any, source: Tensor, length: int) -> Tensor:
    """Greedy decoding of `length` tokens that recomputes the whole prefix at every step."""
    memory, prefix = model.encode(source), source.new_full((source.size(0), 1), EOS)
    for _ in range(length):
        tokens = model.decode(memory, prefix)[:, -1, 1:].argmax(-1, keepdim=True) + 1
        prefix = torch.cat([prefix, tokens], dim=1)
    return prefix[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("results/small/data/cogs"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    spec = resolve_run(load_catalogue(), Run.parse("cogs/transformer/default/seed-1"), "full")
    model = build_model(spec.model, read_vocabularies(args.data)).eval()
    # An untrained model does not end its sentences: every output has the length of the longest
    # reference of the batch.
    batches = make_bucketed_batches(read_pairs(args.data, "test"), 4096)
    batch = batches[len(batches) // 2]
    length = batch.target_out.size(1)
    print(
        f"{batch.source.size(0)} sentences of {batch.source.size(1)} words, outputs of {length} words"
    )
    contenders = {
        "cached": lambda: decode_greedily(model, batch.source, length),
        "uncached": lambda: decode_uncached(model, batch.source, length),
    }
    with torch.inference_mode():
        show("Greedy decoding on COGS", take_turns(contenders, args.rounds, warm_up=1), "cached")


if __name__ == "__main__":
    main()

"""An epoch of bucketed batches against fixed batches of as many sentences, on the real training
set.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.training_step import objective_of, step
from benchmarks.turns import show, take_turns
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.tasks.batching import make_bucketed_batches
from workflow_scripts.tasks.seq2seq.batches import read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import build_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("results/small/data/scan-jump-x2"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=128, help="of a fixed batch")
    parser.add_argument(
        "--share", type=float, default=0.02, help="of the epoch that is run, evenly spread"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    spec = resolve_training(
        load_catalogue(), Run.parse("scan-jump-x2/transformer/default/seed-1"), "full"
    )
    model = build_model(spec.model, read_vocabularies(args.data)).train()
    objective = objective_of(spec, model)
    pairs = read_pairs(args.data, "train")
    order, size = np.random.default_rng(0).permutation(len(pairs)), args.sentences
    fixed = [pairs.make_batch(order[first : first + size]) for first in range(0, len(order), size)]
    epochs = {
        "bucketed": make_bucketed_batches(pairs, spec.training.batch_tokens),
        f"fixed, {args.sentences} sentences": fixed,
    }
    contenders = {}
    for name, batches in epochs.items():
        words = sum(int(batch.target_out.ne(0).sum()) for batch in batches)
        slots = sum(batch.target_out.numel() for batch in batches)
        print(f"{name}: {len(batches)} batches, {slots / words:.2f} target positions for each word")
        some = batches[:: max(1, round(1 / args.share))]
        contenders[name] = lambda some=some: [
            step(model, lambda b=batch: objective(model, b)[0])() for batch in some
        ]
    show("The same share of an epoch", take_turns(contenders, rounds=3, warm_up=1), "bucketed")


if __name__ == "__main__":
    main()

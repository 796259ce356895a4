"""A training step of this checkout against the same step of another checkout, in turns in one
process.

    python -m benchmarks.against ../other-checkout

It answers whether a change of losses, models or the loop has made training slower. Without another
checkout it compares this one with itself: the ratio that noise alone gives.
"""

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.turns import ratio, take_turns

PACKAGE = "workflow_scripts"
RUNS = {
    "SAL": "scan-jump-x2/sq-transformer/sal/seed-1",
    "SRL": "cogs/sq-transformer/srl/seed-1",
    "Transformer": "scan-jump-x2/transformer/default/seed-1",
    "LRF": "cognition/lrf/default/seed-1",
}


@contextmanager
def package_of(checkout: Path) -> Iterator[None]:
    """Let imports of the package in this block find the package of a checkout, and not one that is
    imported already.
    """
    others = {name: module for name, module in sys.modules.items() if name.split(".")[0] == PACKAGE}
    for name in others:
        del sys.modules[name]
    sys.path.insert(0, str(checkout.resolve()))
    try:
        with chdir(checkout):
            yield
    finally:
        sys.path.remove(str(checkout.resolve()))
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
        sys.modules.update(others)


def import_module(name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{name}")


def make_step(checkout: Path, run: str, tables: tuple[torch.Tensor, ...]) -> Callable[[], None]:
    """Return a function that makes one optimiser step of a run at `small`: forward, backward,
    AdamW.
    """
    with package_of(checkout):
        catalogue = import_module("config.loading").load_catalogue()
        name = import_module("common.run_names").Run.parse(run)
        spec = import_module("config.specs").resolve_run(catalogue, name, "small")
        torch.manual_seed(0)
        vocabulary = {"source": ["w"] * 30, "target": ["w"] * 30}
        model = (
            import_module("tasks.seq2seq.checkpoint").build_model(spec.model, vocabulary).train()
        )
        folder = Path(sys.modules[type(model).__module__].__file__ or "")
        assert folder.is_relative_to(checkout.resolve()), f"{folder} is not of {checkout}"
        loss = import_module("tasks.seq2seq.word_loss").WordLoss(0.0)
        if spec.objective:
            loss = import_module(f"objectives.{spec.objective.name}.objective").build(
                spec.objective.settings, loss
            )
        batch = import_module("tasks.batching").Batch(*tables)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        loss(model, batch)[0].backward()
        optimiser.step()
        optimiser.zero_grad()
        if hasattr(model, "finish_step"):
            model.finish_step()

    return step


def make_tables(
    sentences: int = 64, source_words: int = 9, target_words: int = 15
) -> tuple[torch.Tensor, ...]:
    """Return source, target_in and target_out of random words, a tenth of them padding."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(4, 30, (sentences, source_words), generator=generator)
    target = torch.randint(4, 30, (sentences, target_words), generator=generator)
    for table in (source, target):
        for sentence in range(0, sentences, 3):
            table[sentence, -2:] = 0
    return source, target, target


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "other", type=Path, nargs="?", default=Path(), help="folder of another checkout"
    )
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tables = make_tables()
    ratios = {}
    for name, run in RUNS.items():
        steps = {
            "ours": make_step(Path(), run, tables),
            "other": make_step(args.other, run, tables),
        }
        seconds = take_turns(steps, args.rounds)
        ratios[name] = round(ratio(seconds, "ours", "other"), 3)
        milliseconds = 1000 * statistics.median(seconds["ours"])
        Console().print(f"{name}: {milliseconds:.0f} ms, time of ours / other {ratios[name]:.3f}")
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()

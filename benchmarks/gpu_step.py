"""An update at the papers' sizes on a GPU: eager, as CUDA graphs, in TF32 and bf16, compiled, in
several processes.

    .venv/bin/python -m benchmarks.gpu_step [--seconds 3]

Each time comes with its bound: the larger of FLOPs over the measured rate of matrix products, and
bytes over the measured bandwidth. Bytes are counted as the operations are written, each reading its
inputs and writing its results once; compiled layers need fewer.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.training_setup import list_compilable
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training import loop
from workflow_scripts.training.machine import set_precision
from workflow_scripts.training.optimiser import build_optimiser, set_learning_rate
from workflow_scripts.training.run import add_objective, compile_layers

GPU = torch.device("cuda")
UPDATES_IN_BLOCK = 20
PROCESSES = (1, 2, 4)


@dataclass(frozen=True)
class Contender:
    """A run, the sizes of its vocabularies, and the sentences, source and target words of its
    median batch.
    """

    run: str
    source_words: int
    target_words: int
    shape: tuple[int, int, int]


# Median batches of the data at `full`: ADDJUMP 2x, COGS, and the 17,824 pairs of CoGnition's
# validation and test sets.
CONTENDERS = {
    "SAL, SCAN": Contender("scan-jump-x2/sq-transformer/sal", 25, 18, (215, 10, 19)),
    "Transformer, SCAN": Contender("scan-jump-x2/transformer/default", 25, 18, (215, 10, 19)),
    "SRL, COGS": Contender("cogs/sq-transformer/srl", 750, 690, (77, 11, 53)),
    "LRF, CoGnition": Contender("cognition/lrf/default", 2300, 6200, (546, 14, 15)),
}


@dataclass(frozen=True)
class Mode:
    """How an update is run."""

    name: str
    precision: str
    graphed: bool = True
    compiled: bool = False


MODES = (
    Mode("eager, fp32", "fp32", graphed=False),
    Mode("graphs, fp32", "fp32"),
    Mode("graphs, tf32", "tf32"),
    Mode("graphs, tf32, compiled", "tf32", compiled=True),
    Mode("graphs, bf16", "bf16"),
    Mode("graphs, bf16, compiled", "bf16", compiled=True),
)
SHARED = ("graphs, fp32", "graphs, tf32")  # measured in several processes


class ByteCounter(TorchDispatchMode):
    """Counts the bytes that operations read and write; views read and write nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = [
            leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)
        ]
        if not func.is_view:
            self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return result


def make_batches(contender: Contender, shapes: int = 3) -> list[Batch]:
    """Return batches of random words around the median shape, a few of them padded."""
    generator = torch.Generator().manual_seed(0)
    sentences, source_length, target_length = contender.shape
    batches = []
    for more in range(shapes):
        source = torch.randint(
            4, contender.source_words, (sentences, source_length + more), generator=generator
        )
        target = torch.randint(
            4, contender.target_words, (sentences, target_length + more), generator=generator
        )
        source[::20, -1] = 0
        target[::20, -1] = 0
        batches.append(Batch(source, target, target).to(GPU))
    return batches


def make_updates(
    contender: Contender, mode: Mode
) -> tuple[Callable[[], None], Callable[[], object]]:
    """Return a function that makes the next update, and one that makes it without graphs."""
    spec = resolve_training(load_catalogue(), Run.parse(f"{contender.run}/seed-1"), "full")
    settings = spec.training.model_copy(
        update={"precision": mode.precision, "compiled": mode.compiled}
    )
    set_precision(mode.precision, GPU)
    torch.manual_seed(0)
    vocabulary = {
        "source": ["w"] * contender.source_words,
        "target": ["w"] * contender.target_words,
    }
    model = build_model(spec.model, vocabulary).to(GPU).train()
    setup = TrainingSetup(
        model, WordLoss(spec.problem.label_smoothing), [], dict, compilable=list_compilable(model)
    )
    setup = add_objective(setup, spec.objective)
    if mode.compiled:
        compile_layers(setup, GPU)
    optimiser = build_optimiser(model, settings, capturable=mode.graphed)
    set_learning_rate(optimiser, 1e-5)
    update = loop.make_update(setup, settings, optimiser, GPU, mode.graphed, print)
    eager = loop.make_update(setup, settings, optimiser, GPU, False, print)
    batches = make_batches(contender)
    turn = 0

    def next_update() -> None:
        nonlocal turn
        set_learning_rate(optimiser, 1e-5)
        update(batches[turn % len(batches)])
        turn += 1

    return next_update, lambda: eager(batches[0])


def measure(name: str, mode: Mode, seconds: float) -> dict[str, Any]:
    """Return milliseconds of an update (median of blocks), seconds of its preparation, memory,
    FLOPs and bytes.
    """
    began = time.perf_counter()
    next_update, eager_update = make_updates(CONTENDERS[name], mode)
    for _ in range(9):  # three shapes: without a graph, captured, repeated
        next_update()
    torch.cuda.synchronize()
    prepared = time.perf_counter()
    times = []
    while time.perf_counter() < prepared + seconds:
        block = time.perf_counter()
        for _ in range(UPDATES_IN_BLOCK):
            next_update()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - block) / UPDATES_IN_BLOCK)
    row = {
        "name": name,
        "mode": mode.name,
        "ms": statistics.median(times),
        "slowest_ms": max(times),
        "preparation_s": prepared - began,
        "gb": torch.cuda.max_memory_reserved() / 1e9,
    }
    if mode.compiled or not mode.graphed:
        return row
    with FlopCounterMode(display=False) as flops, ByteCounter() as counted:
        eager_update()
    return row | {"gflop": flops.get_total_flops() / 1e9, "gbyte": counted.bytes / 1e9}


def measure_rates() -> dict[str, float]:
    """Return TFLOP/s of matrix products of a layer's size in each precision, and TB/s of a copy
    (read and written).
    """
    rates = {}
    for precision, dtype in (
        ("fp32", torch.float32),
        ("tf32", torch.float32),
        ("bf16", torch.bfloat16),
    ):
        set_precision(precision, GPU)
        a, b = (torch.randn(8192, 8192, device=GPU, dtype=dtype) for _ in range(2))
        rates[precision] = 2 * 8192**3 / time_call(lambda a=a, b=b: a @ b) / 1e12
    source = torch.empty(2**30, device=GPU, dtype=torch.uint8)
    target = torch.empty_like(source)
    rates["bandwidth"] = 2 * 2**30 / time_call(lambda: target.copy_(source)) / 1e12
    return rates


def time_call(call: Callable[[], object], times: int = 10) -> float:
    """Return the mean seconds of a call on the GPU."""
    for _ in range(3):
        call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000 / times


def start_process(names: list[str], mode: Mode, seconds: float) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu_step",
        "--seconds",
        str(seconds),
        "--one",
        mode.name,
        *names,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
    )


def read_rows(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    lines = process.communicate()[0].splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def show_times(rows: list[dict[str, Any]], rates: dict[str, float]) -> None:
    """Print the time of each mode with its bound, and how much faster than eager it is."""
    work = {row["name"]: row for row in rows if row["mode"] == "graphs, fp32"}
    table = Table(
        "",
        "",
        "ms",
        "slowest",
        "eager / it",
        "bound ms",
        "GFLOP",
        "GB moved",
        "GB memory",
        "prepared in s",
    )
    precisions = {mode.name: mode.precision for mode in MODES}
    for row in rows:
        done = next(
            (
                r
                for r in rows
                if (r["name"], r["mode"]) == (row["name"], row["mode"]) and "gflop" in r
            ),
            None,
        )
        done = done or work.get(row["name"])
        bound = ""
        if done:
            arithmetic = done["gflop"] / rates[precisions[row["mode"]]]
            bound = f"{max(arithmetic, done['gbyte'] / rates['bandwidth']):.2f}"
        eager = next(
            (r["ms"] for r in rows if (r["name"], r["mode"]) == (row["name"], "eager, fp32")), None
        )
        table.add_row(
            row["name"],
            row["mode"],
            f"{row['ms']:.2f}",
            f"{row['slowest_ms']:.2f}",
            f"{eager / row['ms']:.1f}" if eager else "",
            bound,
            f"{done['gflop']:.0f}" if done else "",
            f"{done['gbyte']:.1f}" if done else "",
            f"{row['gb']:.2f}",
            f"{row['preparation_s']:.1f}",
        )
    Console(width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3, help="that each time is measured")
    parser.add_argument(
        "--one", choices=[mode.name for mode in MODES], help="one mode in this process, as JSON"
    )
    parser.add_argument("names", nargs="*", help=f"some of: {'; '.join(CONTENDERS)}")
    args = parser.parse_args()
    names = args.names or list(CONTENDERS)
    if not torch.cuda.is_available():
        print("skipped: torch finds no GPU here")
        return
    if args.one:
        mode = next(mode for mode in MODES if mode.name == args.one)
        for name in names:
            print(json.dumps(measure(name, mode, args.seconds)), flush=True)
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    rates = measure_rates()
    print(
        ", ".join(f"{name} {rate:.3g}" for name, rate in rates.items()),
        "TFLOP/s and TB/s",
        flush=True,
    )
    rows = []
    for mode in MODES:  # a process each: what fails costs its own rows
        found = read_rows(start_process(names, mode, args.seconds))
        print(f"{mode.name}: {[round(row['ms'], 2) for row in found] or 'failed'}", flush=True)
        rows += found
    show_times(rows, rates)
    for mode in (mode for mode in MODES if mode.name in SHARED):
        for count in PROCESSES:
            processes = [start_process(names[:1], mode, args.seconds) for _ in range(count)]
            found = [row for process in processes for row in read_rows(process)]
            if found:
                rate = sum(1000 / row["ms"] for row in found)
                print(
                    f"{names[0]}, {mode.name}, {len(found)} processes: {rate:.0f} updates a second",
                    flush=True,
                )


if __name__ == "__main__":
    main()

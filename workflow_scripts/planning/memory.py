"""What a training holds on its GPU, counted from its sizes; here of a causal language model, in `encoder_memory` of an
encoder. Nothing heavy is imported."""

from collections.abc import Iterable

from workflow_scripts.catalogue.loading import Catalogue
from workflow_scripts.catalogue.run_specs import parent, resolve_run
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.catalogue.task_specs import resolve_data
from workflow_scripts.data.sources import load_repositories
from workflow_scripts.models.encoder_settings import SETTINGS as ENCODERS
from workflow_scripts.models.settings import CausalLMSettings, read_settings, without_module
from workflow_scripts.objectives.settings import CarmaSettings
from workflow_scripts.planning import encoder_memory
from workflow_scripts.planning.gpu_bytes import FLOAT, Batch, Memory, largest_batch
from workflow_scripts.schema import Config

# Models whose memory is counted here; those of the other modules are small.
MODULE = "workflow_scripts.models.causal_lm"


def parameters(s: CausalLMSettings, vocabulary: int) -> int:
    """Parameters of a model with these sizes; the output layer is the table of embeddings."""
    d, f, narrow = s.width, s.feed_forward, (s.key_value_heads or s.heads) * s.width // s.heads
    if s.family == "gpt2":  # with biases, LayerNorm of two vectors, and a table of positions
        block = 4 * d * d + 2 * d * f + 9 * d + f
        return vocabulary * d + s.positions * d + s.layers * block + 2 * d
    block = 2 * d * d + 2 * d * narrow + 3 * d * f + 2 * d + (d + 2 * narrow if s.family == "qwen2" else 0)
    return vocabulary * d + s.layers * block + d


def block_bytes(s: CausalLMSettings, length: int, bf16: bool) -> int:
    """What the backward pass of one block needs, bytes per token of a sentence of `length` tokens.

    Under bf16 the residual stream and the norms stay in float32, and each matrix product has an input of its own.
    """
    d, f, narrow, size = s.width, s.feed_forward, (s.key_value_heads or s.heads) * s.width // s.heads, 2 if bf16 else 4
    if s.family == "gpt2":
        masks = 2 * d if s.dropout else 0
        # Two residual streams; inputs of four products, q, k and v; the GELU's input and output.
        return FLOAT * (2 * d + s.heads + 4) + size * (6 * d + 2 * f) + masks
    inputs = 5 if bf16 else 2
    if bf16 or narrow == d:
        attention = FLOAT * s.heads + size * (2 * d + 2 * narrow)
    else:  # the kernels of float32 have no groups of heads: k and v are repeated, and all scores of a sentence kept
        attention = FLOAT * (4 * d + s.heads * length)
    return FLOAT * (4 * d + 2) + size * (inputs * d + 4 * f) + attention


def carma_bytes(s: CarmaSettings, layers: int, width: int, length: int) -> int:
    """What CARMA's losses keep, bytes per token; the states themselves are the blocks' own."""
    if not s.weight:
        return 0
    # Products and cosines of all pairs of tokens; terms for one token of two, each with its scores twice.
    pairs = 3 * length * len(s.mi_blocks(layers)) if s.mi else 0
    differences = width * (len(s.stability_blocks(layers)) - 1) if s.stability else 0
    return FLOAT * (pairs + differences)


def training_memory(
    s: CausalLMSettings,
    carma: CarmaSettings,
    vocabulary: int,
    count: int,
    batch: Batch,
    checkpointed: bool,
    bf16: bool,
    shared: bool = False,
) -> Memory:
    """Of full fine-tuning with AdamW in float32, of a model with `count` parameters, at its peak.

    The peak lies where the backward pass begins, with all activations and the gradient of the output layer, or where it
    ends, with all gradients: between the two, both change in step. With `shared` batches each process keeps room for
    all gradients, from which they are sent to the others.
    """
    weights, table = FLOAT * count, FLOAT * vocabulary * s.width
    block = batch.tokens * block_bytes(s, batch.length, bf16)
    # Gradients of the feed-forward part's inner states, while they are computed.
    working = batch.tokens * 2 * s.feed_forward * (2 if bf16 else FLOAT)
    # The final norm, and the losses.
    outside = batch.tokens * (FLOAT * 3 * s.width + carma_bytes(carma, s.layers, s.width, batch.length))
    # The scores in float32 with their logarithms or gradients and, before that, in bf16.
    logits = batch.scored * vocabulary * (2 * FLOAT + (2 if bf16 else 0))
    if checkpointed:
        kept = s.layers * batch.tokens * FLOAT * s.width + outside + (table // 2 if bf16 else 0)
        working += block  # one block anew
    else:
        kept = s.layers * block + outside + (weights // 2 if bf16 else 0)  # bf16: the products' copies of the weights
    # The scores are gone before the last block's turn. The table is read at both ends: the gradient of its second use
    # is whole before it is added.
    begin, end = table + kept + max(logits, working), max(working, table)
    peak = 4 * weights + max(begin, end) if shared else 3 * weights + max(begin, weights + end)
    return Memory(weights, weights, 2 * weights, kept + working, logits, peak, checkpointed)


def estimate(catalogue: Catalogue, run: Run, scale: str, precision: str) -> Memory | None:
    """Of a run; None where it trains neither a causal language model nor an encoder."""
    spec = resolve_run(catalogue, run, scale, precision)
    if spec["model"]["module"] in ENCODERS:
        return encoder_memory.estimate(catalogue, run, spec, scale, precision)
    if spec["model"]["module"] != MODULE or not spec["training"]["max_steps"]:
        return None
    sizes = read_settings(CausalLMSettings, without_module(spec["model"]), "model")
    carma = read_settings(CarmaSettings, without_module(spec["objective"]), "objective")
    if spec["init"] and "hub" in spec["init"]:
        repository = load_repositories()[spec["init"]["hub"]]
        vocabulary, count = repository.vocabulary, repository.parameters
    else:
        origin = parent(catalogue, run, scale, precision) or run
        vocabulary = resolve_data(catalogue, origin.task, scale)["options"]["vocabulary_size"]
        count = parameters(sizes, vocabulary)
    if not vocabulary or not count:
        return None
    batch = largest_batch(spec, catalogue.tasks[run.task].longest or sizes.positions)
    checkpointed = spec["training"].get("gradient_checkpointing", False)
    shared = spec["training"].get("gpus", 1) > 1
    bf16 = spec["training"]["precision"] == "bf16"
    return training_memory(sizes, carma, vocabulary, count, batch, checkpointed, bf16, shared)


def report(catalogue: Catalogue, config: Config, runs: Iterable[Run]) -> list[str]:
    """A line for each model on each task, of the variant that needs most, and one for those over `gpu_memory`.

    Tasks on which a model needs the same share a line, and so do models that all need less than 1 GB.
    """
    found: dict[str, tuple[Memory, str]] = {}
    for task, method, variant in dict.fromkeys(run.unseeded for run in runs):
        memory = estimate(catalogue, Run(task, method, variant, seed=0), config.scale, config.precision)
        name = f"{task}/{method}"
        if memory and (name not in found or memory.peak > found[name][0].peak):
            found[name] = memory, variant
    alike: dict[tuple[str, str], list[str]] = {}
    for name, (memory, variant) in found.items():
        if memory.peak >= 1e9:
            alike.setdefault((name.split("/")[1], str(memory)), []).append(f"{name}/{variant}")
    lines = [
        f"{first}{f' and {len(more)} tasks more' if more else ''}: {said}"
        for (_, said), (first, *more) in alike.items()
    ]
    if found and not lines:
        lines.append("less than 1 GB for the largest model")
    return lines + [said for said in [over(catalogue, config, runs)] if said]


def over(catalogue: Catalogue, config: Config, runs: Iterable[Run]) -> str:
    """Which models need more than `gpu_memory` on which tasks; empty if none does."""
    needed = {run: estimate(catalogue, run, config.scale, config.precision) for run in runs}
    names = dict.fromkeys(f"{run.task}/{run.method}" for run, memory in needed.items() if _over(memory, config))
    return f"more than the {config.gpu_memory} GB of config.yaml's gpu_memory: {', '.join(names)}" if names else ""


def _over(memory: Memory | None, config: Config) -> bool:
    return memory is not None and memory.peak > 1e9 * config.gpu_memory

"""What a training of an encoder holds on its GPU, counted from its sizes. Nothing heavy is imported."""

from workflow_scripts.catalogue.loading import Catalogue
from workflow_scripts.catalogue.run_specs import parent
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.catalogue.task_specs import resolve_data
from workflow_scripts.data.sources import load_repositories
from workflow_scripts.models.encoder_settings import SETTINGS, CatSettings, EncoderSettings
from workflow_scripts.models.settings import read_settings, without_module
from workflow_scripts.planning.gpu_bytes import FLOAT, Batch, Memory, largest_batch

# The pre-trained tokenizer whose vocabulary no option of the data says.
TOKENIZER, ITS_MODEL = "bert/tokenizer.json", "google-bert/bert-base-uncased"
MASKED_SHARE = 0.15  # of the tokens, `training.masked_batches.MASKED`


def vocabulary(catalogue: Catalogue, task: str, scale: str) -> int | None:
    """Pieces of the vocabulary of a task's data, where they are known before these are prepared."""
    data = resolve_data(catalogue, task, scale)
    if TOKENIZER in data["sources"]:
        return load_repositories()[ITS_MODEL].vocabulary
    return data["options"].get("vocabulary_size") or data["options"].get("merges")


def parameters(s: EncoderSettings, words: int) -> int:
    """Parameters of an encoder with these sizes and a vocabulary of that many words, without heads."""
    d, f = s.width, s.feed_forward
    square, norm = d * d + d, 2 * d
    types = {"bert": 2, "cat": 2, "roberta": 1, "distilbert": 0}[s.family]
    positions = s.positions + (s.family == "roberta")  # from the padding's number on
    total = (words + positions + types) * d + norm + s.layers * (4 * square + 2 * d * f + d + f + 2 * norm)
    if isinstance(s, CatSettings):
        codes = (s.layers - 1) * s.codes + s.last_codes
        total += codes * d + s.layers * (3 * square - d * (not s.value_bias) + d * d * s.output_projection + 1)
        mixings = {"shared": 1, "per_layer": s.layers, "mean": 0}[s.mixing]
        total += mixings * (4 * square + norm * s.mixing_residual)
    return total


def head_parameters(s: EncoderSettings, words: int, kind: str, objective: dict) -> int:
    """Of what a kind of task puts on an encoder; of several classes, two stand for all."""
    d = s.width
    if kind == "masked":
        return words + (0 if s.tied else words * d) + 2 * d + 2
    if objective.get("head_layers", 1) == 2:
        return (d + 1) * objective["head_width"] + 2 * (objective["head_width"] + 1)
    return 2 * d + 2


def layer_bytes(s: EncoderSettings, codes: int, bf16: bool) -> list[tuple[int, int]]:
    """Of each part of a layer, bytes per token: (what its backward pass needs, what that computes on the way).

    Under bf16 the sums before a norm stay in float32.
    """
    d, f, size = s.width, s.feed_forward, 2 if bf16 else FLOAT
    # Two sums and their statistics; inputs of four products, q, k and v; the GELU's input and output; dropout's masks.
    # Under bf16 q, k and v are made from a copy of the layer's input each, if that is a norm's.
    copies = 2 if bf16 and not (isinstance(s, CatSettings) and not s.mixing_residual) else 0
    block = FLOAT * (2 * d + s.heads + 4) + size * ((6 + copies) * d + 2 * f) + (2 * d if s.dropout else 0)
    parts = [(block, size * 2 * f)]
    if isinstance(s, CatSettings):
        # Input and queries; the weights; their sum over codes, before and behind the scale. Four gradients of weights.
        weights = 2 if s.code_dropout else 1
        kept = size * ((3 if s.score == "cosine" else 2) * d + weights * codes) + FLOAT * (2 * d + 3)
        parts.append((kept + codes * bool(s.code_dropout), 4 * size * codes))
        if s.mixing != "mean":
            # Both representations, three products of each, the sums of both, and the mean of these.
            kept = size * (2 + 6 + 2 + 1) * d + FLOAT * (2 + (d + 2) * s.mixing_residual)
            parts.append((kept, size * 6 * d))
    return parts


def training_memory(
    s: EncoderSettings,
    kind: str,
    words: int,
    counts: tuple[int, int],
    batch: Batch,
    checkpointed: bool,
    bf16: bool,
    shared: bool = False,
) -> Memory:
    """Of training with AdamW in float32, at its peak; counts: parameters of the encoder, and of its head.

    The peak lies where the backward pass begins, with all activations, or where it ends, with all gradients. A frozen
    encoder has neither gradients nor moments, and is read once, without a backward pass.
    """
    encoder, head = (FLOAT * count for count in counts)
    trained = head + encoder * (not s.frozen)
    tokens, codes, size = batch.tokens, codebooks(s), 2 if bf16 else FLOAT
    layers = [layer_bytes(s, count, bf16) for count in codes]
    whole = [sum(kept for kept, _ in parts) for parts in layers]
    working = tokens * max(way for parts in layers for _, way in parts)
    readouts, terms, read = 1, 0, 0
    if kind == "masked" and isinstance(s, CatSettings):
        # h_mix, h_cont, h_comp and the last gap predict words; of each layer's gap its logarithms and their exponents
        # are kept, and itself and the weights of the codes until the loss has read them. Five states more stand in for
        # what the terms of the last layer and the embeddings keep.
        readouts, terms = 4, tokens * FLOAT * s.width * (2 * s.layers + 5)
        read = tokens * (FLOAT * s.width * s.layers + size * sum(codes) * checkpointed)
    scored = round(MASKED_SHARE * tokens) if kind == "masked" else 0
    # Of each readout the logarithms are kept; one at a time has its scores, or gradients, too.
    logits = scored * words * ((readouts + 1) * FLOAT + (2 if bf16 else 0))
    if s.frozen:
        kept, working = 0, tokens * max(whole)
    elif checkpointed:
        # The inputs of each part, and one part anew: what it keeps goes as its gradients come.
        kept = tokens * FLOAT * s.width * sum(map(len, layers)) + terms
        working = tokens * max(part + way // 2 for parts in layers for part, way in parts)
    else:
        kept = tokens * sum(whole) + terms + (encoder // 2 if bf16 else 0)  # bf16: the products' copies of the weights
    # A table that is read at both ends: the gradient of its second use is whole before it is added.
    tied = FLOAT * words * s.width if kind == "masked" and s.tied else 0
    begin, end = (tied or head) + kept + max(logits + read, working), max(working, tied)
    fixed = encoder + head + 2 * trained
    peak = fixed + trained + max(begin, end) if shared else fixed + max(begin, trained + end)
    return Memory(encoder + head, trained, 2 * trained, kept + working, logits, peak, checkpointed)


def codebooks(s: EncoderSettings) -> list[int]:
    """Codes of each layer; 0 where there are none."""
    return [s.codes] * (s.layers - 1) + [s.last_codes] if isinstance(s, CatSettings) else [0] * s.layers


def estimate(catalogue: Catalogue, run: Run, spec: dict, scale: str, precision: str) -> Memory | None:
    """Of the run of `spec`; None where nothing is trained, or the vocabulary is not known."""
    training, objective = spec["training"], spec["objective"]
    before = parent(catalogue, run, scale, precision) or run
    while after := parent(catalogue, before, scale, precision):
        before = after
    words = vocabulary(catalogue, before.task, scale)
    if not training["max_steps"] or not words:
        return None
    s = read_settings(SETTINGS[spec["model"]["module"]], without_module(spec["model"]), "model")
    longest = min(catalogue.tasks[run.task].longest or s.positions, objective["longest"])
    counts = parameters(s, words), head_parameters(s, words, spec["kind"], objective)
    return training_memory(
        s,
        spec["kind"],
        words,
        counts,
        largest_batch(spec, longest),
        training.get("gradient_checkpointing", False),
        training["precision"] == "bf16",
        training.get("gpus", 1) > 1,
    )

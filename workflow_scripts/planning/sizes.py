"""Sizes and times that nobody has measured, reckoned from the settings of a run. Nothing heavy is imported.

All are upper estimates, meant for what a job asks for. They grow with the model, the batch, the steps and the data.
"""

from functools import cache
from pathlib import Path

from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.modules import MODULES
from workflow_scripts.catalogue.run_specs import parent, resolve_evaluation, resolve_run
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.catalogue.task_specs import resolve_data
from workflow_scripts.data.sources import load_repositories, load_sources
from workflow_scripts.files import read_json
from workflow_scripts.models.encoder_settings import CatSettings, EncoderSettings
from workflow_scripts.models.fused_settings import RobertaTransformerSettings
from workflow_scripts.models.settings import (
    CausalLMSettings,
    Seq2SeqSettings,
    SQTransformerSettings,
    read_settings,
    without_module,
)
from workflow_scripts.planning import encoder_memory
from workflow_scripts.planning.memory import parameters as causal_parameters

# Floating-point operations a second: of a GPU that computes in float32 and is not kept busy by small matrices, and of
# one thread of a CPU.
GPU_OPERATIONS, THREAD_OPERATIONS = 5e12, 2e10
# Least time of one layer, for starting its kernels: in an update, and in a forward pass.
LAYER_SECONDS, LAYER_SECONDS_SCORING = 0.004, 0.001
# Words of one side of a task whose vocabulary is made of its data.
VOCABULARY = 8000
# Bytes of prepared sentences in memory for a byte of the (mostly compressed) sources.
UNPACKED = 4
# Sentences that are scored where the data have not been prepared yet, at most; and bytes of one in the sources.
MOST_ROWS, BYTES_OF_ROW = 25_000, 60
# Tokens that a sentence has, for limits that are relative to it.
SENTENCE = 30


@cache
def model_parameters(run: Run, scale: str) -> int:
    """Parameters of the model of a run: of the hub's model that it starts from, or counted from its settings."""
    spec = resolve_run(load_catalogue(), run, scale)
    sizes = _sizes(spec["model"])
    hub = load_repositories()[spec["init"]["hub"]].parameters if spec["init"] and "hub" in spec["init"] else None
    origin = parent(load_catalogue(), run, scale) or run
    vocabulary = encoder_memory.vocabulary(load_catalogue(), origin.task, scale) or VOCABULARY
    if isinstance(sizes, CausalLMSettings):
        return hub or causal_parameters(sizes, vocabulary)
    if isinstance(sizes, EncoderSettings):
        return hub or encoder_memory.parameters(sizes, vocabulary) + vocabulary * sizes.width
    return (hub or 0) + seq2seq_parameters(sizes, vocabulary, read_encoder=hub is not None)


def _sizes(model: dict) -> Seq2SeqSettings | CausalLMSettings | EncoderSettings:
    return read_settings(MODULES["model"][model["module"]], without_module(model), model["module"])


def seq2seq_parameters(s: Seq2SeqSettings, vocabulary: int, read_encoder: bool = False) -> int:
    """Of an encoder-decoder, with all that a variant may add to its layers; `read_encoder`: of the rest only."""
    d, square = s.width, s.width**2
    inner = (4 if s.gated else 2) * d * s.feed_forward
    encoder_layer, decoder_layer = 4 * square + inner, 8 * square + inner
    if hasattr(s, "fuse_in"):  # an attention for each layer
        encoder_layer, decoder_layer = encoder_layer + 4 * square, decoder_layer + 4 * square
    total = s.layers * decoder_layer + 2 * vocabulary * d
    if isinstance(s, RobertaTransformerSettings):
        wide = s.encoder_width
        total += s.layers * 4 * d * wide
        layer = 4 * wide**2 + 2 * wide * s.encoder_feed_forward
        table = (vocabulary + s.encoder_positions) * wide
        return total if read_encoder else total + s.encoder_layers * layer + table
    total += s.layers * encoder_layer
    if isinstance(s, SQTransformerSettings):  # predictors of codes, and the codes' own projections
        total += s.source_predictor_layers * encoder_layer + s.target_predictor_layers * decoder_layer
        total += 12 * s.layers * square + (s.source_codes + s.target_codes) * d
    return total


def layers(run: Run, scale: str) -> int:
    """Layers that work one after the other in a step."""
    s = _sizes(resolve_run(load_catalogue(), run, scale)["model"])
    if isinstance(s, CausalLMSettings):
        return s.layers
    if isinstance(s, EncoderSettings):
        return s.layers * (3 if isinstance(s, CatSettings) else 1)  # codebook and mixing follow each block of CAT
    predictors = s.source_predictor_layers + s.target_predictor_layers if isinstance(s, SQTransformerSettings) else 0
    return s.layers + (s.encoder_layers if isinstance(s, RobertaTransformerSettings) else s.layers) + predictors


def operations(device: str, threads: int) -> float:
    """Floating-point operations a second."""
    return GPU_OPERATIONS if device == "cuda" else THREAD_OPERATIONS * threads


def step_seconds(parameters: int, layers: int, batch_tokens: int, device: str, threads: int) -> float:
    """Of one update: forwards and twice as much backwards, 2 operations each for a parameter and a token."""
    return max(6 * parameters * batch_tokens / operations(device, threads), layers * LAYER_SECONDS)


def scoring_seconds(parameters: int, layers: int, tokens: int, forwards: float, device: str, threads: int) -> float:
    """Of reading or writing so many tokens in so many forward passes."""
    return 2 * parameters * tokens / operations(device, threads) + forwards * layers * LAYER_SECONDS_SCORING


def run_step_seconds(run: Run, scale: str, device: str) -> float:
    """Estimate for a step of a run whose like was never measured."""
    training = resolve_run(load_catalogue(), run, scale)["training"]
    longest = load_catalogue().tasks[run.task].longest or training["batch_tokens"]
    tokens = min(training["batch_tokens"], (training.get("batch_sentences") or training["batch_tokens"]) * longest)
    return step_seconds(model_parameters(run, scale), layers(run, scale), tokens, device, training["torch_threads"])


def run_scoring_seconds(run: Run, scale: str, device: str) -> float:
    """Estimate for the evaluation of a run: of a translation each token of each hypothesis takes a forward pass, of a
    prompt the answer takes one."""
    spec = resolve_run(load_catalogue(), run, scale)
    given = resolve_evaluation(load_catalogue(), run, scale)
    rows = scored_rows(run.task, scale, tuple(given["splits"]))
    if spec["kind"] == "seq2seq":
        length = given["max_length"] + int((given.get("max_length_ratio") or 0) * SENTENCE)
        tokens = rows * given["beam"] * length
        forwards = tokens / given["batch_tokens"] * length
    else:
        tokens = rows * SENTENCE
        forwards = tokens / (given.get("batch_tokens") or spec["training"]["batch_tokens"])
    size, depth, threads = model_parameters(run, scale), layers(run, scale), spec["training"]["torch_threads"]
    return scoring_seconds(size, depth, tokens, forwards, device, threads)


def data_bytes(task: str, scale: str) -> int:
    """Of a task's sentences in memory."""
    sources = resolve_data(load_catalogue(), task, scale)["sources"]
    if not sources:  # stand-ins, and what a grammar makes
        return 0
    packed = sum(load_sources()[source].bytes or 0 for source in sources)
    return max(UNPACKED * packed, 10**9 * (load_catalogue().tasks[task].disk or 0))


def held_bytes(task: str, scale: str) -> int:
    """Of a task's sentences in memory, where its files are not mapped into it: what is mapped, a system takes back."""
    return 0 if load_catalogue().tasks[task].mapped else data_bytes(task, scale)


def scored_rows(task: str, scale: str, splits: tuple[str, ...]) -> int:
    """Sentences of the splits that are scored: counted where the data are prepared, else a bound from their bytes."""
    manifest = Path(f"results/{scale}/data/{task}/dataset.json")
    if manifest.exists() and (counts := read_json(manifest).get("splits")):
        return sum(counts[split]["rows"] for split in splits if split in counts)
    found = data_bytes(task, scale)
    return min(MOST_ROWS, found // UNPACKED // BYTES_OF_ROW) if found else MOST_ROWS

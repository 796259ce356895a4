"""Classes and scores that an encoder with a head gives to sentences."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import write_split
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.encoders import load_spec_encoder
from workflow_scripts.tasks.sentence_prediction.batches import read_sentences
from workflow_scripts.tasks.sentence_prediction.model import SentenceModel, build
from workflow_scripts.tasks.sentence_prediction.problem import decide_classes
from workflow_scripts.tasks.sentence_prediction.scoring import predict_items


def load_model(checkpoint: Checkpoint) -> nn.Module:
    """Load encoder and head of a checkpoint. Raises UserError if a file is missing or broken."""
    encoder = load_spec_encoder(checkpoint.folder, checkpoint.spec["model"])
    model = build(encoder, checkpoint.spec, len(checkpoint.labels or [""]))
    load_weight_file(model, checkpoint.folder / "model.safetensors")
    return model


def predict(
    checkpoint: Checkpoint, model: SentenceModel, items: Sequence[str | tuple[str, str]]
) -> list[str] | list[float]:
    """Return the class or the score of each sentence, or of each pair of sentences."""
    first, second = zip(*((item, None) if isinstance(item, str) else item for item in items), strict=True)
    if len({type(text) for text in second}) > 1:
        raise UserError("some items are sentences and some are pairs; predict them apart")
    columns = {"first": first, "second": second, "label": [0.0] * len(items)}
    schema = pa.schema({"first": pa.string(), "second": pa.string(), "label": pa.float64()})
    with TemporaryDirectory() as folder:  # a split like those of the data, so that it is tokenised like them
        write_split(Path(folder), "given", {name: list(values) for name, values in columns.items()}, schema)
        sentences = read_sentences(checkpoint.spec, model.positions, checkpoint.folder, Path(folder), "given")
    tokens, device = checkpoint.settings.batch_tokens, next(model.parameters()).device
    scores = predict_items(model, sentences, tokens, device, Reporter("", len(items), "none"))[0][model.readout]
    if checkpoint.labels is None:
        return scores.tolist()
    return [checkpoint.labels[number] for number in decide_classes(scores)[0]]

"""Answers of an encoder to questions about paragraphs."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from torch import nn

from workflow_scripts.data.prepared import write_split
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.encoders import load_spec_encoder
from workflow_scripts.tasks.question_answering.batches import read_windows
from workflow_scripts.tasks.question_answering.model import SpanModel, build
from workflow_scripts.tasks.question_answering.problem import find_answers


def load_model(checkpoint: Checkpoint) -> nn.Module:
    """Load encoder and head of a checkpoint. Raises UserError if a file is missing or broken."""
    section = checkpoint.spec["model"]
    model = build(load_spec_encoder(checkpoint.folder, section), section)
    load_weight_file(model, checkpoint.folder / "model.safetensors")
    return model


def predict(checkpoint: Checkpoint, model: SpanModel, items: Sequence[tuple[str, str]]) -> list[str]:
    """Return the answer to each pair of a question and a paragraph: a part of the paragraph."""
    questions, contexts = map(list, zip(*items, strict=True))
    nothing = {"start": [0.0] * len(items), "answer": [""] * len(items), "answers": ["[]"] * len(items)}
    types = {name: pa.float64() if name == "start" else pa.string() for name in ("question", "context", *nothing)}
    with TemporaryDirectory() as folder:  # a split like those of the data, so that it is tokenised like them
        columns = {"question": questions, "context": contexts, **nothing}
        write_split(Path(folder), "given", columns, pa.schema(types))
        windows = read_windows(checkpoint.spec, checkpoint.folder, Path(folder), "given")
    device = next(model.parameters()).device
    return find_answers(model, windows, windows.make_batches(checkpoint.settings.batch_tokens, None, device))

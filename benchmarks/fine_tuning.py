"""A step of fine-tuning on pairs of sentences against BertForSequenceClassification of Hugging Face
in the same loop, with the same batches; CAT in the same loop; the share of a step that making its
batch takes.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np
import torch
from rich.console import Console
from torch import Tensor
from transformers import BertForSequenceClassification

from benchmarks.cat_layer import DROPOUT, SIZES, settings
from benchmarks.turns import ratio, show, take_turns
from workflow_scripts.models.encoder import model as encoder
from workflow_scripts.models.encoder.model import SpecialTokens
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import RaggedSequences
from workflow_scripts.tasks.sentence_prediction.settings import Settings
from workflow_scripts.tasks.sentence_prediction.training_setup import (
    SentenceBatch,
    SentenceModel,
    Sentences,
    compute_sentence_loss,
)
from workflow_scripts.training.accumulation import make_gradients
from workflow_scripts.training.loop import update_weights

CLASSES = 2


def random_sentences(vocabulary: int, count: int, longest: int) -> Sentences:
    """Pairs of random words with random classes."""
    rng = np.random.default_rng(0)

    def side() -> RaggedSequences:
        length = rng.integers(longest // 3, longest + 1, count)
        return RaggedSequences(
            rng.integers(5, vocabulary, length.sum()), np.cumsum(length) - length, length
        )

    return Sentences(
        side(), side(), rng.integers(0, CLASSES, count), False, 128, SpecialTokens(2, 3)
    )


def theirs(
    model: BertForSequenceClassification, batch: SentenceBatch
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of Hugging Face's model, on the one text of each item."""
    ids, real, types = (tensor[:, 0] for tensor in (batch.ids, batch.real, batch.types))
    labels = batch.label.long()
    loss = model(
        input_ids=ids, attention_mask=real.long(), token_type_ids=types, labels=labels
    ).loss
    return loss, {"sentence": loss.detach()}


def stepping(setup: TrainingSetup, batches: Iterator[SentenceBatch]) -> Callable[[], object]:
    """One step of the training loop on the next batch."""
    optimiser = torch.optim.AdamW(setup.model.parameters(), lr=1e-5, fused=True)
    fp32 = torch.autocast("cpu", enabled=False)
    gradients = make_gradients(setup, 1, fp32)
    return lambda: update_weights(setup, optimiser, 1.0, gradients, next(batches))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", choices=SIZES, action="append")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    for name in args.size or SIZES:
        width, vocabulary = SIZES[name][0], SIZES[name][5]
        sentences = random_sentences(vocabulary, 32 * 12, 40)
        began = time.perf_counter()
        batches = [
            sentences.make_batch(np.arange(first, first + 32))
            for first in range(0, len(sentences), 32)
        ]
        made = (time.perf_counter() - began) / len(batches)
        # Two layers with tanh between them, as theirs have.
        head, setups = Settings(head_layers=2, head_width=width), {}
        for title, kind in (("BERT, ours", "encoder"), ("CAT", "cat")):
            module = import_model(kind)
            encoder_settings = module.Settings(**settings(name, kind))
            inner = module.build(encoder_settings, vocabulary)
            model = SentenceModel(inner, encoder_settings, head, CLASSES)
            setups[title] = TrainingSetup(model, compute_sentence_loss, batches, lambda _: {})
        config = encoder.build_encoder_config(
            EncoderSettings(**settings(name, "encoder")), vocabulary
        )
        config.num_labels, config.classifier_dropout = CLASSES, DROPOUT
        hugging = BertForSequenceClassification._from_config(config).train()
        setups["BertForSequenceClassification"] = TrainingSetup(
            hugging, theirs, batches, lambda _: {}
        )
        calls = {title: stepping(setup, cycle(batches)) for title, setup in setups.items()}
        seconds = take_turns(calls, args.rounds)
        show(f"{name}: a step of fine-tuning, 32 pairs", seconds, "BERT, ours")
        faster = ratio(seconds, "BertForSequenceClassification", "BERT, ours")
        Console().print(f"BertForSequenceClassification / ours: {faster:.2f}; target: at least 1")
        share = made / (made + statistics.median(seconds["BERT, ours"]))
        Console().print(f"a batch is made in each step, which takes {100 * share:.2f}% of it")


if __name__ == "__main__":
    main()

"""The loss of the token that answers a prompt, against one prompt at a time by Hugging Face's own forward pass."""

import pytest
import torch

from tests.objectives.carma_cases import FAMILIES, language_model, prompts
from workflow_scripts.tasks.prompt.problem import compute_answer_loss


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_the_loss_is_the_mean_over_prompts_of_the_nats_of_their_answers(family, smoothing):
    model, batch = language_model(family).eval(), prompts([[1, 2, 1, 3], [2], [1, 1, 1]], bos=True, more_padding=2)
    loss, parts = compute_answer_loss(model, batch, smoothing)
    nats = []
    for ids, real, label in zip(batch.ids, batch.real, batch.label, strict=True):
        logs = model(ids[real][None]).logits[0, -1].log_softmax(-1)
        nats.append(-(1 - smoothing) * logs[label] - smoothing * logs.mean())
    torch.testing.assert_close(loss, sum(nats) / 3)
    assert parts["answer"] == loss and not parts["answer"].requires_grad

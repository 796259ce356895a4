"""A small loss for the tests of CARMA: of the token after the last one; its parts count the hooks of the blocks."""

import torch

from workflow_scripts.objectives import hidden_states


def recorders(model):
    """The forward hooks that `hidden_states` has registered on the modules of a model."""
    hooks = [hook for module in model.modules() for hook in module._forward_hooks.values()]
    return [hook for hook in hooks if getattr(hook, "func", hook).__module__ == hidden_states.__name__]


def last_token_loss(model, batch):
    if batch.label.lt(0).any():
        raise ArithmeticError("a label below 0")
    logits = model(input_ids=batch.ids, use_cache=False).logits
    scores = logits[torch.arange(len(batch.ids)), batch.last]
    loss = torch.nn.functional.cross_entropy(scores.float(), batch.label)
    return loss, {"task": loss.detach(), "hooks": torch.tensor(float(len(recorders(model))))}

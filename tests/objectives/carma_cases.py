"""Batches, tiny language models, a small loss and a loop version of the equations, for the tests of
CARMA.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from workflow_scripts.objectives import hidden_states

BLOCKS = 4
SIZES = {
    "num_hidden_layers": BLOCKS,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
}
FAMILIES = dict.fromkeys(
    ("llama", "qwen2", "gemma"), SIZES | {"num_key_value_heads": 1, "head_dim": 8}
)
FAMILIES["gpt2"] = {"n_layer": BLOCKS, "n_embd": 16, "n_head": 2, "n_positions": 64}


def language_model(family: str, **changes: object) -> torch.nn.Module:
    """A tiny model with random weights, in training mode."""
    torch.manual_seed(0)
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = AutoConfig.for_model(family, vocab_size=30, **FAMILIES[family], **special, **changes)
    return AutoModelForCausalLM.from_config(config).train()


@dataclass(frozen=True)
class Prompts:
    """As the trainer's batches of prompts: ids, words [B, S]; real [B, S]; last, label [B]."""

    ids: Tensor
    real: Tensor
    words: Tensor
    last: Tensor
    label: Tensor

    def rows(self, chosen: list[int]) -> "Prompts":
        """Some of the sentences, without the columns that only the others need."""
        length = int(self.last[chosen].max()) + 1
        tables = (table[chosen, :length] for table in (self.ids, self.real, self.words))
        return Prompts(*tables, self.last[chosen], self.label[chosen])


def prompts(
    sentences: list[list[int]], bos: bool = False, more_padding: int = 0, seed: int = 0
) -> Prompts:
    """Sentences given by the numbers of tokens of their words; ids are random."""
    generator = torch.Generator().manual_seed(seed)
    rows = [
        [-1] * bos + [w for w, tokens in enumerate(words) for _ in range(tokens)]
        for words in sentences
    ]
    length = max(map(len, rows)) + more_padding
    words, real = (
        torch.full((len(rows), length), -1),
        torch.zeros(len(rows), length, dtype=torch.bool),
    )
    ids = torch.full((len(rows), length), 2)
    for b, row in enumerate(rows):
        words[b, : len(row)] = torch.tensor(row)
        real[b, : len(row)] = True
        ids[b, : len(row)] = torch.randint(3, 30, (len(row),), generator=generator)
        ids[b, :bos] = 0
    label = torch.randint(3, 30, (len(rows),), generator=generator)
    return Prompts(ids, real, words, real.sum(dim=1) - 1, label)


def cosine(x: list[float], y: list[float]) -> float:
    return dot(x, y) / math.sqrt(dot(x, x) * dot(y, y))


def dot(x: list[float], y: list[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def mi_by_hand(
    states: list[Tensor],
    words: Tensor,
    counted: Tensor,
    spans: str = "own",
    positives: str = "pairwise",
    temperature: float = 0.1,
    similarity: str = "cosine",
) -> tuple[float, int]:
    """(L_MI, terms of a layer), every allowed position a negative: loops over layers, sentences,
    words and tokens.
    """
    like = cosine if similarity == "cosine" else dot
    spoken = [
        [[s for s, w in enumerate(row) if w == word] for word in sorted(set(row) - {-1})]
        for row in words.tolist()
    ]
    values, terms = [], 0
    for layer in states:
        terms = 0
        for b, sentence in enumerate(layer.double().tolist()):
            here = [s for s in range(len(sentence)) if counted[b, s]]
            for word in spoken[b] if spans == "own" else [word for row in spoken for word in row]:
                outside = [s for s in here if s not in word]
                inside = [s for s in word if s in here]
                if positives == "pairwise":
                    chosen = [(i, [j]) for i in inside for j in inside if i < j]
                else:
                    chosen = [(i, [j for j in inside if j != i]) for i in inside if len(inside) > 1]
                for i, others in chosen if outside else []:
                    near, far = (
                        sum(math.exp(like(sentence[i], sentence[s]) / temperature) for s in places)
                        for places in (others, outside)
                    )
                    values.append(-math.log(near / (near + far)))
                    terms += 1
    return (sum(values) / len(values) if values else 0.0), terms


def stability_by_hand(states: list[Tensor], counted: Tensor) -> float:
    """Sum over consecutive layers of the ratio of means."""
    places = [
        (b, s) for b in range(counted.size(0)) for s in range(counted.size(1)) if counted[b, s]
    ]

    def mean_square(values: Tensor) -> float:
        numbers = [x * x for b, s in places for x in values[b, s].double().tolist()]
        return sum(numbers) / len(numbers)

    return sum(
        mean_square(after - before) / (mean_square(before) + mean_square(after) + 1e-8)
        for before, after in pairwise(states)
    )


def equation_5(states: list[Tensor], words: list[list[int]], temperature: float) -> Tensor:
    """L_MI as equation 5 has it: over the layers `states` the mean, over the anchors the sum.

    words: of each sentence the word of each token, -1 for none. The positives of a token are the
    other tokens of its word, its negatives those of other words; a token without either is no
    anchor. Equation 16 is this divided by the number of anchors.
    """
    total = torch.zeros((), dtype=torch.float64)
    for layer in states:
        for sentence, word_of in zip(layer.double(), words, strict=True):
            tokens = [token for token, word in enumerate(word_of) if word >= 0]
            for i in tokens:
                positives = torch.zeros((), dtype=torch.float64)
                negatives = torch.zeros((), dtype=torch.float64)
                for j in tokens:
                    similarity = torch.cosine_similarity(sentence[i], sentence[j], dim=0)
                    weight = torch.exp(similarity / temperature)
                    if word_of[j] != word_of[i]:
                        negatives = negatives + weight
                    elif j != i:
                        positives = positives + weight
                if positives > 0 and negatives > 0:
                    total = total + positives.log() - (positives + negatives).log()
    return -total / len(states)


def count_anchors(words: list[list[int]]) -> int:
    """Tokens with positives and negatives, of all sentences."""
    count = 0
    for word_of in words:
        spoken = [word for word in word_of if word >= 0]
        if len(set(spoken)) > 1:
            count += sum(spoken.count(word) > 1 for word in spoken)
    return count


def equation_6(states: list[Tensor], real: Tensor) -> Tensor:
    """L_Stability over each of `states` and the next, means over real tokens and features."""
    total = torch.zeros((), dtype=torch.float64)
    for before, after in pairwise(states):
        before, after = before.double()[real], after.double()[real]
        sizes = before.pow(2).mean() + after.pow(2).mean()
        total = total + ((after - before).pow(2) / (sizes + 1e-8)).mean()
    return total


def recorders(model):
    """The forward hooks that `hidden_states` has registered on the modules of a model."""
    hooks = [hook for module in model.modules() for hook in module._forward_hooks.values()]
    return [
        hook for hook in hooks if getattr(hook, "func", hook).__module__ == hidden_states.__name__
    ]


def last_token_loss(model, batch):
    if batch.label.lt(0).any():
        raise ArithmeticError("a label below 0")
    logits = model(input_ids=batch.ids, use_cache=False).logits
    scores = logits[torch.arange(len(batch.ids)), batch.last]
    loss = torch.nn.functional.cross_entropy(scores.float(), batch.label)
    return loss, {"task": loss.detach(), "hooks": torch.tensor(float(len(recorders(model))))}

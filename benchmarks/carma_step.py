"""A training step with CARMA against one without, for four families; and L_MI against a Python loop
over its words.
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.training_step import step
from benchmarks.turns import show, take_turns
from workflow_scripts.objectives.carma import objective as carma
from workflow_scripts.objectives.carma.settings import Settings

# The size of GPT-2 small, but for the vocabulary, which is cut to 8,000 words: it makes the step
# without CARMA cheaper, and so the ratio larger.
VOCABULARY, WIDTH, BLOCKS, HEADS = 8_000, 768, 12, 12
SIZES = {
    "gpt2": {"n_embd": WIDTH, "n_layer": BLOCKS, "n_head": HEADS},
    # Three matrices of width 2,048 in a gated feed-forward part are as large as GPT-2's two of
    # width 3,072.
    **{
        family: {
            "hidden_size": WIDTH,
            "intermediate_size": 2_048,
            "num_hidden_layers": BLOCKS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS,
            "head_dim": WIDTH // HEADS,
        }
        for family in ("llama", "qwen2", "gemma")
    },
}
SENTENCES, TOKENS = 16, 40


@dataclass(frozen=True)
class Prompts:
    """Full sentences of random tokens: ids, words, real [B, S]; label [B]."""

    ids: Tensor
    words: Tensor
    real: Tensor
    label: Tensor


def random_prompts(sentences: int = SENTENCES, tokens: int = TOKENS) -> Prompts:
    """22% of the words have several tokens: 2.4 in the mean, with 2 pairs."""
    sizes = (
        torch.multinomial(
            torch.tensor([0.78, 0.22 * 0.65, 0.22 * 0.25, 0.22 * 0.1]), sentences * tokens, True
        )
        + 1
    )
    words = torch.repeat_interleave(torch.arange(len(sizes)), sizes)[: sentences * tokens].view(
        sentences, tokens
    )
    ids = torch.randint(VOCABULARY, (sentences, tokens))
    return Prompts(
        ids, words, torch.ones_like(ids, dtype=torch.bool), torch.randint(VOCABULARY, (sentences,))
    )


def next_token_loss(model: Any, batch: Prompts) -> tuple[Tensor, dict[str, Tensor]]:
    """The task of these steps: the token after the last one, with logits at that position alone."""
    last = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, -1]
    return nn.functional.cross_entropy(model.lm_head(last), batch.label), {}


def family_steps(family: str, batch: Prompts) -> dict[str, Callable[[], None]]:
    """One step with and one without CARMA at its default settings, on the same model."""
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = AutoConfig.for_model(family, vocab_size=VOCABULARY, **SIZES[family], **special)
    model = AutoModelForCausalLM.from_config(config).train()
    objectives = {
        "fine-tuning": next_token_loss,
        "CARMA": carma.build(carma.Settings(), next_token_loss),
    }
    return {
        f"{family}, {name}": step(model, lambda o=objective: o(model, batch)[0])
        for name, objective in objectives.items()
    }


def mi_in_a_loop(states: list[Tensor], words: Tensor, settings: Settings) -> Tensor:
    """L_MI as its equation reads: blocks, sentences, words and pairs one after the other."""
    cosine = nn.functional.cosine_similarity
    spoken = [
        [[s for s, w in enumerate(row) if w == word] for word in dict.fromkeys(row)]
        for row in words.tolist()
    ]
    losses = []
    for layer in states:
        for b, row in enumerate(spoken):
            for word in (
                row if settings.spans == "own" else [word for row in spoken for word in row]
            ):
                outside = [s for s in range(words.size(1)) if s not in word]
                for i in word:
                    for j in (j for j in word if j > i):
                        negatives = random.choices(outside, k=settings.negatives)
                        near = torch.exp(
                            cosine(layer[b, i], layer[b, j], dim=0) / settings.temperature
                        )
                        far = torch.exp(
                            cosine(layer[b, i][None], layer[b, negatives]) / settings.temperature
                        ).sum()
                        losses.append(-torch.log(near / (near + far)))
    return torch.stack(losses).mean()


def mi_calls(batch: Prompts, spans: Literal["own", "batch"]) -> dict[str, Callable[[], None]]:
    """Forward and backward of L_MI alone, on random states, ours and in a loop."""
    settings = Settings(spans=spans, stability=0.0, last_block_mi=3)
    states = {
        k: torch.randn(*batch.ids.shape, WIDTH, requires_grad=True)
        for k in settings.list_mi_blocks()
    }

    def ours() -> Tensor:
        return carma.compute_regularisers(states, batch.words, batch.real, settings, len(states))[
            "mi"
        ]

    def loop() -> Tensor:
        return mi_in_a_loop(list(states.values()), batch.words, settings)

    def both_ways(loss: Callable[[], Tensor]) -> Callable[[], None]:
        def call() -> None:
            loss().backward()
            for state in states.values():
                state.grad = None

        return call

    return {f"{spans}: ours": both_ways(ours), f"{spans}: loop": both_ways(loop)}


def compare(title: str, calls: dict[str, Callable[[], None]], rounds: int, warm_up: int) -> None:
    """Show the turns of `calls` by the clock and in CPU time, the first being the reference."""
    spent: dict[str, list[float]] = {name: [] for name in calls}

    def watched(name: str) -> Callable[[], None]:
        def call() -> None:
            start = time.process_time()
            calls[name]()
            spent[name].append(time.process_time() - start)

        return call

    seconds = take_turns({name: watched(name) for name in calls}, rounds, warm_up)
    reference = next(iter(calls))
    show(title, seconds, reference)
    show(f"{title}, CPU time", {name: times[warm_up:] for name, times in spent.items()}, reference)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--families", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--spans", nargs="*", default=["own", "batch"], choices=["own", "batch"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    random.seed(0)
    batch = random_prompts()
    pairs = len(carma.find_terms(batch.words, batch.real, "own", "pairwise").row)
    size = f"{SENTENCES} sentences of {TOKENS} tokens with {pairs} pairs, {args.threads} threads"
    for spans in args.spans:
        compare(f"L_MI, 4 blocks, {size}", mi_calls(batch, spans), args.rounds, args.warm_up)
    for family in args.families:
        compare(
            f"One training step, {size}", family_steps(family, batch), args.rounds, args.warm_up
        )


if __name__ == "__main__":
    main()

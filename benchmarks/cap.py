"""CAP for all blocks and poolings in one job against one run for each block and pooling."""

import argparse
from types import SimpleNamespace

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.turns import show, take_turns
from workflow_scripts.interventions.cap import POOLINGS, group_tokens, predict_with_cap

VOCABULARY = 4096


def prompts(count: int, words: int, share: float, generator: torch.Generator) -> SimpleNamespace:
    """`count` prompts of up to `words` words, of which a `share` has two to four tokens: ids, words
    [B, S].
    """
    ids, numbers = [], []
    for length in torch.randint(words // 2, words + 1, (count,), generator=generator):
        several = torch.rand(int(length), generator=generator) < share
        sizes = torch.where(several, torch.randint(2, 5, several.shape, generator=generator), 1)
        numbers.append(torch.arange(int(length)).repeat_interleave(sizes))
        ids.append(torch.randint(VOCABULARY, numbers[-1].shape, generator=generator))
    pad = torch.nn.utils.rnn.pad_sequence
    return SimpleNamespace(ids=pad(ids, True, 0), words=pad(numbers, True, -1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--prompts", type=int, default=16, help="of a batch")
    parser.add_argument(
        "--words", type=int, default=24, help="of the longest prompt; the shortest has half of them"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    sizes = {
        "n_layer": args.blocks,
        "n_embd": args.width,
        "n_head": args.width // 32,
        "vocab_size": VOCABULARY,
    }
    sizes |= {"bos_token_id": 0, "eos_token_id": 0}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", **sizes)).eval()
    layers = range(1, args.blocks)
    # Few and many words of several tokens, as with a large and a small vocabulary.
    for share in (0.033, 0.08, 0.22):
        batches = [prompts(args.prompts, args.words, share, torch.Generator().manual_seed(0))]
        groups = group_tokens(batches[0].words)
        touched = (groups.n_groups < groups.length).float().mean()
        contenders = {
            "one job": lambda batches=batches: predict_with_cap(model, batches, layers),
            f"{len(layers) * len(POOLINGS)} runs": lambda batches=batches: [
                predict_with_cap(model, batches, [layer], [pooling])
                for layer in layers
                for pooling in POOLINGS
            ],
        }
        title = f"CAP where {share:.1%} of the words, in {touched:.0%} of the prompts, have several tokens"
        show(title, take_turns(contenders, args.rounds, warm_up=1), "one job")


if __name__ == "__main__":
    main()

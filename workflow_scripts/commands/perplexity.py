"""Print the perplexity of a causal language model in a folder on a text in WikiText's form, such as
its test part.
"""

import argparse
import math
from pathlib import Path

from workflow_scripts.commands.evaluate import add_machine_arguments
from workflow_scripts.common.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`perplexity FOLDER results/downloads/wikitext2/test.txt`, with the folder of a model."""
    parser.add_argument(
        "model",
        type=Path,
        help="folder of a model of the families of workflow_scripts/models/causal_lm",
    )
    parser.add_argument(
        "text", type=Path, help="a file with spaces around punctuation, as WikiText has"
    )
    parser.add_argument("--family", default="llama", help="model_type of its config.json")
    parser.add_argument(
        "--context", type=int, default=1024, metavar="TOKENS", help="length of a window"
    )
    parser.add_argument(
        "--stride", type=int, metavar="TOKENS", help="between windows (default: the context)"
    )
    parser.add_argument("--tokens", type=int, help="read the beginning of the text only")
    add_machine_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print it per token and per word. Words are those of the file, with the end of each line."""
    stride = args.context if args.stride is None else args.stride
    if args.context < 2 or not 1 <= stride <= args.context:
        raise UserError(
            f"--context is {args.context} and --stride {stride}; "
            "give 2 or more, and at most the context"
        )

    import torch

    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.data.formats.wikitext import detokenise_wikitext
    from workflow_scripts.data.sources.archives import read_lines
    from workflow_scripts.models.causal_lm.model import load_causal_lm
    from workflow_scripts.models.causal_lm.perplexity import sum_text_nll
    from workflow_scripts.models.hugging_face import load_tokenizer, place_on_device
    from workflow_scripts.training.machine import choose_device

    lines = [line for _, line in read_lines(args.text)]
    device = choose_device(args.device)
    model = load_causal_lm(args.model, args.family).eval()
    place_on_device(model, device)
    text = "\n".join(detokenise_wikitext(line).strip() for line in lines)
    encoding = load_tokenizer(args.model).encode(text, add_special_tokens=False)
    ids = torch.tensor(encoding.ids[: args.tokens], device=device)
    if len(ids) < 2:
        raise UserError(f"{args.text} has no two tokens; give a longer text")
    with Reporter(args.model.name, len(ids), args.progress, unit="tokens") as reporter:
        nats, count = sum_text_nll(model, ids, args.context, stride, reporter.advance)
    words = sum(len(line.split()) + 1 for line in lines)
    part = "the whole text"
    if args.tokens is not None:
        part = f"its first {len(ids):,} tokens"
    print(
        f"{math.exp(nats / count):.3f} per token: {count:,} tokens of {part}, "
        f"windows of {args.context} every {stride}"
    )
    if args.tokens is None:
        print(
            f"{math.exp(nats / words):.3f} per word: "
            f"{words:,} words of the file, with the end of each line"
        )

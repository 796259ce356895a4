"""Write the folder of a new paper: one run, a table and a claim, which run at once, and comments on
what to fill in.
"""

import argparse
import re
from pathlib import Path

import yaml

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_atomically
from workflow_scripts.evaluation.published_numbers import PUBLISHED_COLUMNS

KEY = re.compile(r"[a-z][a-z0-9_-]{0,49}")
SCHEMA = "# yaml-language-server: $schema=../../catalogue/schemas/"
SCHEMAS = "`lint` updates catalogue/schemas/, which editors read: commit it, too"
FILES = {
    "experiments.yaml": f"""{SCHEMA}experiments.json
# The runs that the paper needs: each task with each variant of each method.
# Names are those of catalogue/.
title: Fill in the title
citation: Fill in the authors, year, venue
seeds: {{demo: [1], small: [1, 2, 3], full: [1, 2, 3, 4, 5]}}

demo: # minutes on a laptop: a run or two that show that everything works
  - {{task: scan-jump-x2, methods: {{transformer: [default]}}}}

experiments: # at all other scales; extra: true marks sweeps and further ablations
  - {{task: scan-jump-x2, methods: {{transformer: [default]}}}}
""",
    "displays.yaml": f"""{SCHEMA}displays.json
# The tables and figures. Row and column together say which score a cell shows; `cells` is what all
# cells share.
axes:
  model: # label of a row -> whose scores it shows
    Transformer: {{method: transformer, variant: default}}

analyses:
  constant-answers: # one answer to all commands: what has learnt something is better
    module: constant_answers
    runs: {{each: [model], task: scan-jump-x2}}
    options: {{splits: [test, in_distribution]}}

displays:
  table1:
    source: Table 1
    title: Fill in what the table shows
    group: Results
    # on the whole test set, unless a row or a column says otherwise
    cells: {{task: scan-jump-x2, split: test, subset: all, metric: exact_match}}
    rows:
      - {{each: [model]}}
      - {{row: best constant answer, analysis: constant-answers, readout: best_constant}}
    columns:
      # new combinations: training has `jump` alone
      - {{column: ADDJUMP 2x}}
      # at demo, commands like those of training that are not trained on
      - {{column: in distribution, split: in_distribution}}
""",
    "claims.yaml": f"""{SCHEMA}claims.json
# What the paper says, as comparisons: <display>/<row>/<column> with another cell or a number.
# Replace this one.
claims:
  - claim: transformer-above-half
    statement: The Transformer answers more than half of the new commands exactly
    source: Section 1 # add `quote:` with the paper's words
    left: table1/Transformer/ADDJUMP 2x
    right: 50
    relation: greater
""",
    "published.csv": ",".join(PUBLISHED_COLUMNS) + "\n",
    "NOTES.md": """# {key}: findings and decisions

Findings first: the results at each scale, with links to the rows of the tables. Then the decisions,
where the paper is silent or contradicts itself or its code: what it says, what we do, and why.
""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("key", metavar="KEY", help="name of the folder in papers/, such as lrf")


def check_yaml_text(name: str, noun: str) -> None:
    """Raise UserError for a name that YAML does not read as text, such as `off`.

    noun: what the name is called in the message.
    """
    if not isinstance(yaml.safe_load(name), str):
        raise UserError(f"the {noun} {name!r} is no text in YAML; choose another {noun}")


def main(args: argparse.Namespace) -> None:
    """Write papers/KEY.

    Raises UserError for a key that is not allowed, and if the folder exists.
    """
    folder = Path("papers") / args.key
    if not KEY.fullmatch(args.key):
        raise UserError(
            f"the key {args.key!r} cannot name a paper; "
            "take a letter a-z and up to 49 of a-z, 0-9, _ and -"
        )
    check_yaml_text(args.key, "key")
    if folder.exists():
        raise UserError(f"{folder} exists; choose another key, or edit its files")
    if not Path("config.yaml").exists():
        raise UserError("there is no config.yaml here; run this in the root of the repository")
    with write_atomically(folder) as out:
        out.mkdir()
        for name, text in FILES.items():
            (out / name).write_text(text.replace("{key}", args.key), encoding="utf-8")
    print(f"{folder}: {', '.join(FILES)}")
    print(f"./reproduce --papers {args.key} runs it; docs/adding.md says what to fill in")
    print(SCHEMAS)

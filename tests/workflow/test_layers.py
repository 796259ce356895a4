"""The jobs that a change of code reruns, layer by layer; new code reruns no other job."""

import csv
from collections.abc import Callable
from functools import partial

import pytest
import yaml

from tests.objectives.documented_example import read_documented_objective
from tests.workflow.projects import Project
from tests.workflow.test_rerun import intervened, made, named, of_rule, searched, weighed
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.code import CALLED_BY_REPORTS

OF_A_RUN = ("train", "evaluate")


def of_methods(*methods: str) -> Callable[[Project], set[str]]:
    return lambda project: {run for method in methods for run in made(project, f"/{method}/")}


def of_tasks(*tasks: str) -> Callable[[Project], set[str]]:
    def found(project: Project) -> set[str]:
        runs = made(project, "/") | weighed(project, "@")
        return {run for task in tasks for run in runs if run.startswith(f"{task}/")}

    return found


def analyses_of(module: str) -> Callable[[Project], set[str]]:
    def found(project: Project) -> set[str]:
        names = set()
        for key, paper in load_catalogue(project.root).papers.items():
            names |= {
                f"{key}/{name}" for name, entry in paper.analyses.items() if entry.module == module
            }
        finished = project.root / "results/demo/analyses"
        return {name for name in names if (finished / name).exists()}

    return found


slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("file", "rule", "expected"),
    [
        slow("evaluation/moses_bleu.py", "evaluate", of_tasks("wmt17-en-de")),
        ("data/datasets/bird.py", "prepare", lambda project: {"bird"}),
        slow("tasks/sentence_prediction/kind.py", "evaluate", None),
        ("objectives/structural_quantisation/objective.py", "train", of_methods("sq-transformer")),
        slow("training/search.py", "search", searched),
        slow("interventions/cap.py", "intervene", intervened),
        slow("analyses/neighbours.py", "analyse", analyses_of("neighbours")),
    ],
)
def test_an_edit_in_a_layer_that_computes_reruns_what_it_reaches(demo, file, rule, expected):
    """The first rule that it reaches: for these jobs, no other of that rule, and none of an earlier
    one.
    """
    demo.change_code(file)
    planned = named(demo.planned())
    if expected is None:  # of a kind of task
        tasks, kind = load_catalogue(demo.root).tasks, file.split("/")[1]
        expected = of_tasks(*(name for name, task in tasks.items() if task.kind == kind))
    wanted = expected(demo)
    assert wanted and of_rule(planned, rule) == wanted
    order = [
        "fetch",
        "prepare",
        "candidates",
        "search",
        "train",
        "evaluate",
        "intervene",
        "analyse",
        "table",
    ]
    assert of_rule(planned, *order[: order.index(rule)]) == set()


def test_an_edit_of_what_computes_nothing_reruns_nothing(demo):
    """All at once: arguments and files of commands, shared helpers, what describes and records,
    plans and starts.
    """
    for folder in ("commands", "common", "config", "provenance", "workflow"):
        for path in (demo.root / "workflow_scripts" / folder).glob("*.py"):
            is_called = f"{folder}.{path.stem}" in CALLED_BY_REPORTS
            if path.name != "__init__.py" and not is_called:
                demo.change_code(f"{folder}/{path.name}")
    assert demo.planned() == set()


MODEL = '''"""A Transformer whose logits are scaled."""

from torch import Tensor

from workflow_scripts.models.scaled.settings import Settings
from workflow_scripts.models.transformer.model import Seq2Seq


class Scaled(Seq2Seq):
    def project(self, states: Tensor) -> Tensor:
        return self.settings.scale * super().project(states)


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> Scaled:
    return Scaled(settings, source_vocabulary, target_vocabulary)
'''
MODEL_SETTINGS = """from workflow_scripts.models.transformer.settings import Settings as TransformerSettings


class Settings(TransformerSettings):
    scale: float = 1.0
"""
METRIC = '''"""Mean number of words of the outputs."""

from workflow_scripts.evaluation.options.words import Options
from workflow_scripts.evaluation.scores import make_scores


def score_outputs(outputs, references, table, data, options: Options):
    mean = sum(len(output.split(" ")) for output in outputs) / len(outputs)
    return make_scores({"subset": "all"}, {"words": (mean, "words", len(outputs))})
'''
METRIC_OPTIONS = """from workflow_scripts.common.validation import StrictModel
from workflow_scripts.evaluation.measures import MeasureOptions


class Options(StrictModel, MeasureOptions):
    def list_metrics(self):
        return ["words"]
"""


@pytest.mark.slow
def test_a_new_model_objective_and_metric_are_new_files_and_rerun_nothing_else(demo):
    package, run = demo.root / "workflow_scripts", "scan-jump-x2/mine/default/seed-1"
    for name, text in {
        "models/scaled/__init__.py": "",
        "models/scaled/settings.py": MODEL_SETTINGS,
        "models/scaled/model.py": MODEL,
        **read_documented_objective(),
        "evaluation/words.py": METRIC,
        "evaluation/options/words.py": METRIC_OPTIONS,
    }.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    method = {
        "extends": "backbone",
        "title": "Mine",
        "model": {"name": "scaled", "scale": 0.5},
        "objective": {"name": "near_layers", "weight": 0.2},
        "training": {"max_steps": 4},
        "evaluation": {"measures": {"words": {}}},
        "variants": {"default": {"title": "as it is"}},
    }
    (demo.root / "catalogue/methods/mine.yaml").write_text(yaml.safe_dump({"mine": method}))
    assert demo.planned() == set()
    target = f"results/demo/runs/{run}/eval/scores.csv"
    assert named(demo.planned(target)) == {(rule, run) for rule in OF_A_RUN}
    demo.make(target)
    with open(demo.root / target) as stream:
        scores = {
            row["metric"]: float(row["value"])
            for row in csv.DictReader(stream)
            if row["subset"] == "all"
        }
    assert scores["words"] >= 1
    with open(demo.root / f"results/demo/runs/{run}/training.csv") as stream:
        rows = [row for row in csv.DictReader(stream) if row["name"] == "distance"]
    distances = [float(row["value"]) for row in rows]
    assert distances and min(distances) > 0


DATA_SET = '''"""Commands that are repeated word by word."""

from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.splits import Example, SplitOptions


class Options(SplitOptions):
    words: int = 4

    def list_splits(self):
        return ["train", "valid", "test"]


def prepare(settings, sources):
    words = [f"w{number}" for number in range(settings.words)]
    examples = [Example(f"{first} {second}", f"{first} {second}") for first in words for second in words]
    return Seq2SeqDataset({"train": examples, "valid": examples[:4], "test": examples[4:]}, [])
'''
ANALYSIS = '''"""Lengths of the test sentences."""

import pandas

from workflow_scripts.analyses.options.lengths import Options
from workflow_scripts.analyses.result import AnalysisResult


def analyse(runs, options: Options):
    lengths = [len(source.split()) for source in runs[0].read_pairs(options.split)["source"]]
    table = pandas.DataFrame({"length": lengths})
    scores = runs[0].make_scores({"length": (table["length"].mean(), "words", len(table))})
    return AnalysisResult(scores, {"lengths": table})
'''
ANALYSIS_OPTIONS = """from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    split: SplitName
"""
FIGURE = '''"""A histogram of lengths."""

from workflow_scripts.reporting.figures.style import PAGE, make_figure


def draw(inputs, options):
    table, figure = inputs.read_table("lengths"), make_figure(PAGE, 2)
    figure.subplots().hist(table["length"])
    return figure, table
'''


@pytest.mark.slow
def test_a_new_data_set_analysis_and_figure_are_new_files_and_rerun_nothing_else(demo):
    package, paper, run = (
        demo.root / "workflow_scripts",
        demo.root / "papers/mine",
        "echo/transformer/default/seed-1",
    )
    paper.mkdir()
    variant = {"task": "echo", "method": "transformer", "variant": "default"}
    analysis = {"module": "lengths", "runs": [variant], "options": {"split": "test"}}
    experiments = {"title": "Mine", "citation": "Me, 2026", "seeds": {"demo": [1]}}
    experiments["demo"] = [{"task": "echo", "methods": {"transformer": ["default"]}}]
    figure = {"source": "Figure 1", "title": "Lengths", "group": "Data", "analyses": ["lengths"]}
    figure["module"] = "lengths"
    displays = {"analyses": {"lengths": analysis}, "displays": {"histogram": figure}}
    published = (demo.root / "papers/lrf/published.csv").read_text().splitlines()[0] + "\n"
    task = {
        "extends": "seq2seq",
        "title": "Echo",
        "protocol": "reduced",
        "prepare": "echo",
        "options": {"words": 5},
    }
    task["evaluation"] = {"splits": ["test"], "max_length": 10, "batch_tokens": 512}
    for file, text in {
        demo.root / "catalogue/tasks/echo.yaml": yaml.safe_dump({"echo": task}),
        package / "data/datasets/echo.py": DATA_SET,
        package / "analyses/lengths.py": ANALYSIS,
        package / "analyses/options/lengths.py": ANALYSIS_OPTIONS,
        package / "reporting/figures/lengths.py": FIGURE,
        paper / "experiments.yaml": yaml.safe_dump(experiments),
        paper / "displays.yaml": yaml.safe_dump(displays),
        paper / "claims.yaml": "claims: []\n",
        paper / "published.csv": published,
    }.items():
        file.write_text(text)
    assert demo.planned() == set()
    target = "results/demo/figures/mine/histogram.svg"
    made = {
        ("prepare", "echo"),
        ("train", run),
        ("analyse", "mine/lengths"),
        ("figure", "mine/histogram"),
    }
    assert named(demo.planned(target)) == made
    demo.make(target)
    assert (
        (demo.root / "results/demo/analyses/mine/lengths/lengths.csv")
        .read_text()
        .startswith("length\n2\n")
    )
    assert "<svg" in (demo.root / target).read_text()

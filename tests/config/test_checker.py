"""Mistakes planted in the files that a user edits: `lint` names each, with its file and line, before anything runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.config.copies import ROOT
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import read_yaml
from workflow_scripts.config.checker import find_problems
from workflow_scripts.config.layers import _merge_settings
from workflow_scripts.config.loading import read_catalogue
from workflow_scripts.config.run_specs import _resolved, _section
from workflow_scripts.config.task_specs import _data_spec

SEQ2SEQ, CAUSAL, COGS = "catalogue/methods/seq2seq.yaml", "catalogue/methods/causal.yaml", "catalogue/tasks/cogs.yaml"
LRF = "papers/lrf"

# Each group is planted at once, and each of its mistakes must be named: file, text, wrong text, what is said of it.
MISTAKES = {
    "entries": [
        ("config.yaml", "scale: demo", "scale: dem", "did you mean 'demo'?"),
        ("config.yaml", "lrf, cat", "lfr, cat", "names 'lfr'; did you mean 'lrf'?"),
        ("config.yaml", "device: auto", "device: gpu", "input should be 'auto', 'cpu', 'cuda' or 'mps'"),
        ("catalogue/scales.yaml", "hours: 1,", "hours: 0,", "key 'demo.jobs.hours' is 0; input should be greater than 0"),
        ("catalogue/metrics.yaml", "unit: BLEU, decimals: 2", "unit: BLEU, decimals: -1", "greater than or equal to 0"),
        (COGS, "cogs/gen.tsv", "cogs/genn.tsv", "did you mean 'cogs/gen.tsv'?"),
        ("catalogue/tasks/cognition.yaml", "extends: seq2seq", "extends: seq2sec", "no entry 'seq2sec'; did you mean 'seq2seq'?"),
        ("catalogue/tasks/scan.yaml", "prepare: scan", "prepares: scan", "did you mean 'prepare'?"),
        (SEQ2SEQ, "extends: srl, title: SRL with plain", "extends: slr, title: SRL with plain", "did you mean 'srl'?"),
        (CAUSAL, "title: Llama, larger", "titel: Llama, larger", "did you mean 'title'?"),
        (CAUSAL, "kinds: [prompt,", "kinds: [promt,", "input should be"),
    ],
    "settings": [
        (CAUSAL, "variants: [pretrain, original, ft, carma]\n  model: {layers: 36", "variants: [pretrain, orignal, ft, carma]\n  model: {layers: 36", "did you mean 'original'?"),
        (COGS, "validation_fraction: 0.2", "validation_fracton: 0.2", "did you mean 'validation_fraction'?"),
        ("catalogue/tasks/cognition.yaml", "weight_decay: 0.0001", "weight_decay: -0.0001", "greater than or equal to 0"),
        ("catalogue/tasks/sentences.yaml", "split: valid, metric: f1}", "split: valid, metric: f2}", "has the metric 'f2'; known: exact_match, f1"),
        ("catalogue/tasks/kinds.yaml", "betas: [0.9, 0.999]", "betas: [0.9, 1.999]", "less than 1"),
        ("catalogue/tasks/sentences.yaml", "prepare: bird", "prepare: birds", "no module"),
        (SEQ2SEQ, "max_steps: 1000000}", "max_steps: 1000000, batch_sentences: 64}", "does not read 'training.batch_sentences'"),
        (SEQ2SEQ, "schedule: constant_then_linear", "schedule: constant_and_linear", "'constant_then_linear'"),
        (SEQ2SEQ, "{layers: 2, width: 128,", "{layers: 2, width: 130,", "width 130 is not a multiple of heads"),
        (SEQ2SEQ, "model: {name: lrf", "model: {name: lfr", "did you mean 'lrf'?"),
        (SEQ2SEQ, "source_codes: 12}", "source_codes: twelve}", "input should be a valid integer"),
        (SEQ2SEQ, "model: {clustering: mmi}}", "model: {clustering: mni}}", "'mmi'"),
        (SEQ2SEQ, "distance_source: 0.01", "distance_sourc: 0.01", "did you mean 'distance_source'?"),
        (CAUSAL, "last_block_mi: 12, last_block_stability: 12}", "last_block_mi: 99, last_block_stability: 12}", "reads block"),
        (CAUSAL, "variant: pretrain, seed: 1}", "variant: pretrained, seed: 1}", "did you mean 'pretrain'?"),
        (CAUSAL, "607a30d783dfa663caf39e06633721c8d4cfcd7e", "707a30d783dfa663caf39e06633721c8d4cfcd7e", "in sources.yaml it is 607a"),
        (CAUSAL, "third: first", "third: firts", "input should be"),
    ],
    "names": [
        (f"{LRF}/experiments.yaml", "cogs, methods: {lrf: [default], sq", "cog, methods: {lrf: [default], sq", "'cog'; did you mean 'cogs'?"),
        (f"{LRF}/experiments.yaml", "methods: {roberta: [lrf]}", "methods: {robeta: [lrf]}", "did you mean 'roberta'?"),
        (f"{LRF}/experiments.yaml", "methods: {lrf: [previous]}", "methods: {lrf: [previus]}", "did you mean 'previous'?"),
        (f"{LRF}/experiments.yaml", "seeds: {full: [1, 2, 3]}, extra", "seeds: {ful: [1, 2, 3]}, extra", "did you mean 'full'?"),
        ("catalogue/scales.yaml", "      qwen-small: 20000", "      qwen-smal: 20000", "did you mean 'qwen-small'?"),
        (CAUSAL, "{kind: prompt, scale: [demo, small], init: {task: text-bpe-1k}}", "{task: imd, init: {task: text-bpe-1k}}", "no task 'imd'"),
        (f"{LRF}/displays.yaml", "module: workflow_scripts.analyses.mean_scores", "module: workflow_scripts.analyses.mean_score", "did you mean"),
        (f"{LRF}/displays.yaml", "bins: 20}", "bin: 20}", "unknown option 'bin'; did you mean 'bins'?"),
        (f"{LRF}/displays.yaml", "runs: {each: [variant], task: cognition}\n    options: {split: test, sentences: 500", "runs: {each: [variant], task: cognition}\n    options: {split: test, sentences: many", "option 'sentences' is many"),
        (f"{LRF}/displays.yaml", "mcd: {MCD1: {task: cfq-mcd1}", "mcd: {MCD1: {task: cfq-mdc1}", "names 'cfq-mdc1'"),
        (f"{LRF}/displays.yaml", "column: lexical, subset: lexical", "column: lexical, subset: lexicel", "no subset 'lexicel'; did you mean 'lexical'?"),
        (f"{LRF}/displays.yaml", "column: BLEU char, task: cognition, split: cg_test", "column: BLEU char, task: cognition, split: cg_tst", "no split 'cg_tst'; did you mean 'cg_test'?"),
        (f"{LRF}/displays.yaml", "column: all, metric: exact_match", "column: all, metric: bleu_zhh, unit: BLEU", "no metric 'bleu_zhh'; did you mean 'bleu_zh'?"),
        (f"{LRF}/displays.yaml", "analysis: cfq-means, item_set: MCD,", "analysis: cfq-mean, item_set: MCD,", "did you mean 'cfq-means'?"),
    ],
    "displays": [
        (f"{LRF}/displays.yaml", "rows: {each: [model], group: Ours}\n    columns: {each: [phrase", "rows: {each: [modell], group: Ours}\n    columns: {each: [phrase", "no axis 'modell'; did you mean 'model'?"),
        (f"{LRF}/displays.yaml", '{model: [Transformer, "Transformer, matched", LRF, "LRF, layer before alone"]}]}', '{model: [Transfomer, LRF]}]}', "did you mean 'Transformer'?"),
        (f"{LRF}/displays.yaml", "group: Beyond the paper\n    baseline", "gruop: Beyond the paper\n    baseline", "did you mean 'group'?"),
        (f"{LRF}/displays.yaml", "column: less by instance, metric: relative_improvement", "column: less by instance, metric: relative_improvment", "did you mean 'relative_improvement'?"),
        ("papers/carma/displays.yaml", "metric: perplexity}", "metrik: perplexity}", "did you mean 'metric'?"),
        ("papers/cat/displays.yaml", "scored: true", "scored: maybe", "valid boolean"),
        ("papers/sq_transformer/experiments.yaml", "demo: [1]", "demo: [1, 1]", "listed twice"),
        ("papers/carma/experiments.yaml", "demo: [1]", "demo: [-1]", "greater than or equal to 0"),
    ],
    "claims": [
        (f"{LRF}/claims.yaml", "left: table-cognition/LRF/CTER {by}", "left: table-cognition/LFR/CTER {by}", "no cell 'table-cognition/LFR/CTER instance"),
        (f"{LRF}/claims.yaml", "left: table-layers/LRF", "left: table-layer/LRF", "did you mean 'table-layers'?"),
        (f"{LRF}/claims.yaml", "has a far lower {by}", "has a far lower {bye}", "names no axis in 'bye'"),
        (f"{LRF}/claims.yaml", "relation: no_gain\n    at_least: 1\n", "relation: no_gain\n    at_least: -1\n", "greater than or equal to 0"),
        ("papers/cat/claims.yaml", "relation: greater", "relation: bigger", "input should be 'greater'"),
        (f"{LRF}/published.csv", "table-cognition,LRF,CTER instance", "table-cognitions,LRF,CTER instance", "no display 'table-cognitions'"),
        (f"{LRF}/published.csv", "table-cognition,LRF,CTER aggregate", "table-cognition,LRF,CTER agregate", "no cell"),
        ("papers/carma/published.csv", "\n", "\nx,y\n", "not 11 columns"),
                (f"{LRF}/analysis_plan.yaml", "table-cognition/LRF/BLEU zh in", "table-cognition/LRF/BLEU zhh in", "no cell"),
    ],
    "more claims": [
        (f"{LRF}/claims.yaml", "right: table-cognition/Transformer/CTER {by}", "right: table-cognition/LRF/CTER {by}", "with itself"),
        (f"{LRF}/claims.yaml", "right: table-cognition/LRF, layer before alone/CTER instance", "right: table-cognition/LRF, layer before alone/BLEU zh", "unlike units"),
        (f"{LRF}/claims.yaml", "claim: no-gain-layer-before-cognition", "claim: lrf-over-matched-cter-instance", "is listed twice"),
    ],
    "seeds": [(f"{LRF}/experiments.yaml", "106, 107, 108, 109]}}", "106, 107, 108]}}", "is judged on")],
    "numbers of papers": [
        ("papers/cat/analysis_plan.yaml", "claim: comp-over-bert-bird", "claim: comp-over-bert-brid", "did you mean 'comp-over-bert-bird'?"),
        (f"{LRF}/published.csv", "20.0%,20.0,", "20.0%,20.o,", "could not convert string to float: '20.o'"),
        (f"{LRF}/published.csv", "50.3%,50.3,percent,", "50.3%,nan,percent,", "must be finite"),
        (f"{LRF}/published.csv", "30%,30,percent,,", "30%,30,percent,-1,", "std not negative"),
        ("papers/carma/analysis_plan.yaml", "seeds: [101, 102, 103, 104, 105, 106]", "seeds: [101, 102, 103]", "needs at least 4"),
        (f"{LRF}/analysis_plan.yaml", "    margin: 4\n    smallest: 6.1", "    margin: 2\n    smallest: 4.1", "margin is 2.0, but 4 by at_least"),
        ("papers/cat/analysis_plan.yaml", "scale: small", "scale: smal", "did you mean 'small'?"),
    ],
}  # fmt: skip
# Found when a file is read, whatever it is: text, what is said of it.
UNREADABLE = [
    ("learning_rate: 1e-3", "YAML reads 1e-3 as text; write 1.0e-3"),
    ("learning_rate: .nan", ".nan is no number"),
    ("limit: -.inf", "-.inf is no number"),
    ("on: [demo]", "a key must be a name or a number, and 'on' is neither; put it in quotes"),
    ("~: 1", "a key must be a name or a number"),
    ("? [a, b]\n: 1", "a key must be a name or a number"),
    ("a: 1\na: 2", "'a' is listed twice; remove one"),
    ("a: [1, 2", "not valid YAML"),
    ("a: 2026-13-45", "not valid YAML"),
    ("a: " + "[" * 200 + "]" * 200, "levels deep"),
    (
        "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "its aliases expand to more than",
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def uncached():
    clear_caches()


def clear_caches() -> None:
    for cache in (read_catalogue, _merge_settings, _resolved, _section, _data_spec):
        cache.cache_clear()


def test_the_projects_own_files_have_no_problem():
    assert find_problems(ROOT) == []
    assert sum(map(len, MISTAKES.values())) + len(UNREADABLE) >= 40


@pytest.mark.parametrize("group", MISTAKES)
def test_every_planted_mistake_is_named_at_once_with_its_file_and_line(copy: Path, group: str):
    for file, right, wrong, _ in MISTAKES[group]:
        text = (copy / file).read_text()
        assert right in text, f"{file} has no {right!r}"
        (copy / file).write_text(text.replace(right, wrong, 1))
    problems = find_problems(copy)
    assert not [line for line in problems if not re.match(r"\S+:\d+: ", line)]
    for file, _, wrong, said in MISTAKES[group]:
        lines = (copy / file).read_text().partition(wrong)[0].count("\n") + 1
        found = [line for line in problems if said in line and f"{file}:" in line]
        assert found, f"{file}: {wrong!r} is not named in\n" + "\n".join(problems)
        # What axes make is named with the line of the entry that names them.
        wanted = range(lines, lines + wrong.count("\n") + 1)
        assert file.startswith("papers") or int(re.search(rf"{file}:(\d+)", found[0])[1]) in wanted, found


@pytest.mark.parametrize(("text", "said"), UNREADABLE)
def test_what_no_file_may_have_is_named_with_its_line(tmp_path: Path, text: str, said: str):
    file = tmp_path / "any.yaml"
    file.write_text(f"# head\n{text}\n")
    with pytest.raises(UserError, match=r"any.yaml:\d+: not valid YAML.*|any.yaml: not valid YAML.*") as error:
        read_yaml(file)
    assert said in str(error.value) and "\n" not in str(error.value)


FILES = sorted(
    path.relative_to(ROOT)
    for pattern in (
        "config.yaml",
        "catalogue/*.yaml",
        "catalogue/*/*.yaml",
        "papers/*/*.yaml",
        "papers/*/published.csv",
    )
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("file", FILES, ids=str)
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_file_ends_in_a_traceback(copy: Path, file: Path, data: st.DataObject):
    """A line is cut, doubled or written over; what is found is one line per problem.

    One paper stays next to the file, for speed.
    """
    kept = file.parts[1] if file.parts[0] == "papers" else "lrf"
    for folder in (copy / "papers").iterdir():
        if folder.name != kept:
            shutil.rmtree(folder)
    lines = (ROOT / file).read_text().splitlines()
    at = data.draw(st.integers(0, len(lines) - 1), label="line")
    change = data.draw(st.sampled_from(["drop", "double", "cut", "value", "bytes"]), label="change")
    text = data.draw(
        st.sampled_from(["{", "- x", "x: 1", "'", "\t", "é", "null", "{{ }}", "10" * 20, "a" * 300]), label="text"
    )
    if change == "cut":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif change == "value":
        lines[at] = lines[at].partition(":")[0] + ": " + text
    else:
        lines[at : at + 1] = {"drop": [], "double": [lines[at]] * 2, "bytes": [text]}[change]
    (copy / file).write_bytes("\n".join(lines).encode("latin-1" if change == "bytes" else "utf-8", "replace"))
    clear_caches()
    problems = find_problems(copy)
    (copy / file).write_bytes((ROOT / file).read_bytes())
    assert all(line and "\n" not in line and "Traceback" not in line for line in problems)


def test_the_command_prints_one_line_for_each_problem_and_needs_no_torch(copy: Path):
    """In a process of its own, so that what it imports is seen."""
    file = copy / SEQ2SEQ
    file.write_text(file.read_text().replace("width: 128", "widht: 128", 1).replace("name: lrf", "name: lfr", 1))
    code = (
        "import sys; from workflow_scripts.__main__ import main; status = main(['lint']); "
        "assert not {'torch', 'numpy', 'pandas', 'transformers'} & set(sys.modules); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) >= 2 and all(line.startswith("error: catalogue/") for line in lines), lines
    assert yaml.safe_load(file.read_text())

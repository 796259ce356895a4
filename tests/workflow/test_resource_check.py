"""What is said of resources that nothing reads, and of values that no job can have."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.workflow.option_check import find_wrong_options
from workflow_scripts.workflow.resource_check import (
    SLURM_RESOURCES,
    SNAKEMAKE_RESOURCES,
    list_rule_resources,
    suggest_for_sbatch,
)
from workflow_scripts.workflow.snakemake_call import read_arguments

ROOT = Path(__file__).parents[2]
RUNTIME = "runtime takes minutes, or a time with a unit, as runtime=36h"
MEMORY = "mem_mb takes a number of MB, mem a size with a unit, as mem=64G"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--set-resources train:runtime=abc", f"--set-resources train:runtime=abc: {RUNTIME}"),
        ("--set-resources train:mem_mb=64G", f"--set-resources train:mem_mb=64G: {MEMORY}"),
        ("--set-resources train:mem=much", f"--set-resources train:mem: {MEMORY}"),
        ("--default-resources runtime=abc", f"--default-resources runtime=abc: {RUNTIME}"),
        (
            "--set-resources train:nodes=two",
            "--set-resources train:nodes=two: nodes takes a whole number",
        ),
        ("--set-threads train=abc", "--set-threads train=abc: takes a whole number"),
    ],
)
def test_a_value_that_no_job_can_have_is_one_line(words: str, expected: str):
    assert list(find_wrong_options(words.split())) == [expected]


@pytest.mark.parametrize(
    ("place", "advice"),
    [
        ("--set-resources train:slurm_partiton=cpu", "did you mean 'slurm_partition'?"),
        ("--set-resources train:time=60", "did you mean 'runtime'?"),
        ("--set-resources train:mem_gb=64", "write mem with a unit, as mem=64G, or mem_mb"),
        ("--set-resources train:threads=4", "write --set-threads train=NUMBER"),
        ("--default-resources slurm_acount=x", "did you mean 'slurm_account'?"),
        (
            "--default-resources license=1",
            "other options of sbatch go to slurm_extra, a limit of your own needs --resources "
            "license=N",
        ),
    ],
)
def test_a_resource_that_nothing_reads_is_refused(place: str, advice: str):
    setting = place.partition("=")[0]
    name = re.split("[ :]", setting)[-1]
    assert list(find_wrong_options(place.split())) == [
        f"{setting}: nothing reads '{name}'; {advice}"
    ]


def test_a_limit_of_what_no_job_has_is_refused():
    assert list(find_wrong_options(["--resources", "gpus=2"])) == [
        "--resources gpus: no job has 'gpus'; did you mean 'gpu'?"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "--set-resources train:mem=64G evaluate:runtime=2h analyse:runtime=60*attempt",
        "--set-resources train:runtime=len(input[0])",
        "--set-resources train:slots=1 --resources slots=4",
        "--set-resources train:slurm_extra='--licenses=a'",
        "--default-resources slurm_account=physics slurm_partition=gpu qos=normal",
        "--executor cluster-generic --default-resources lsf_queue=gpu",
        "--resources gpu=8 mem_mb=64000",
    ],
)
def test_what_a_job_can_use_is_no_problem(words: str, monkeypatch: pytest.MonkeyPatch):
    if "cluster-generic" in words:  # that plugin is not installed: only its name is read here
        parsed = read_arguments(words.split()[2:])
        parsed.executor = "cluster-generic"
        monkeypatch.setattr(
            "workflow_scripts.workflow.option_check.read_arguments", lambda _: parsed
        )
    assert not list(find_wrong_options(words.split()))


def test_all_resources_that_the_executor_reads_are_known():
    read = set()
    # The first one requires the second.
    for plugin in ("snakemake_executor_plugin_slurm", "snakemake_executor_plugin_slurm_jobstep"):
        spec = find_spec(plugin)
        assert spec is not None and spec.origin is not None
        for file in Path(spec.origin).parent.glob("*.py"):
            text = file.read_text()
            read.update(re.findall(r"""job\.resources\.get\(\s*["'](\w+)""", text))
            read.update(re.findall(r"job\.resources\.(?!get\b|keys\b|items\b)(\w+)", text))
    assert {"slurm_account", "qos", "constraint"} <= read
    # `threads` only chooses a partition; --set-threads sets the cores.
    assert read - {"threads"} <= {*SLURM_RESOURCES, *SNAKEMAKE_RESOURCES}


def test_the_resources_of_the_rules_are_known():
    names = list_rule_resources((ROOT / "rules").glob("*.smk"))
    assert names == {"device", "mem_mb", "mirror", "models", "nodes", "runtime"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--account physics", "--account; write --default-resources slurm_account=physics"),
        ("--account=physics -n", "--account; write --default-resources slurm_account=physics"),
        ("--partition gpu", "--partition; write --default-resources slurm_partition=gpu"),
        ("--qos", "--qos; write --default-resources qos=VALUE"),
        ("--time 2-00:00:00", "--time; write --set-resources train:runtime=MINUTES"),
        ("--mem 64G", "--mem; write --set-resources train:mem=64G"),
        ("--gres=gpu:1", "--gres; write --config gpu_request=--gres=gpu:1"),
    ],
)
def test_an_option_of_sbatch_is_answered_with_what_sets_the_same(words: str, expected: str):
    with pytest.raises(UserError) as refused:
        read_arguments(words.split())
    said = suggest_for_sbatch(words.split(), str(refused.value))
    assert said == f"there is no option {expected} (docs/cluster.md)"


def test_another_option_is_none_of_sbatch():
    assert suggest_for_sbatch(["--budgt", "3"], "unrecognized arguments: --budgt") is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--resources gpu=abc", "Resource 'gpu' was given value 'abc', which is not an integer"),
        (
            "--default-resources mem=1G mem_mb=4",
            "The following resources are equivalent and cannot be simultaneously provided to a rule",
        ),
        ("--set-resources train.runtime=3", "not enough values to unpack"),
    ],
)
def test_words_that_snakemake_cannot_read_are_one_line(words: str, reason: str):
    with pytest.raises(UserError, match=re.escape(reason)) as refused:
        read_arguments(words.split())
    assert "write --set-resources RULE:RESOURCE=VALUE" in str(refused.value)
    assert "\n" not in str(refused.value)

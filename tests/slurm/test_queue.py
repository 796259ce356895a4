"""How the answers of SLURM's commands are read, noise included."""

import sys

import pytest

from tests.workflow.projects import ROOT


@pytest.fixture
def leftovers(monkeypatch: pytest.MonkeyPatch):
    """The module of the executor's plugin, which is no package of the tests' environment."""
    monkeypatch.syspath_prepend(
        str(ROOT / "profiles/plugins/snakemake_executor_plugin_recompose_slurm")
    )
    import leftovers

    yield leftovers
    sys.modules.pop("leftovers")


def test_lines_of_squeue_that_are_no_jobs_are_passed_over(leftovers):
    answer = (
        "# maintenance on Friday\n"
        "\n"
        '4711|RUNNING|None|jupyter|{"host":\n'
        '"n1"}\n'
        "4712_3|PENDING|(Resources)|name|a | b\n"
        "4713|RUNNING|None|name\n"
        "slurm_load_jobs error: Unexpected message received\n"
        "1|notice|of|the|site\n"
        "4714|COMPLETED|None|recompose-x|\n"
    )
    jobs = leftovers.parse_queue(answer)
    assert [(job.number, job.state, job.comment) for job in jobs] == [
        ("4711", "RUNNING", '{"host":'),
        ("4712_3", "PENDING", "a | b"),
        ("4714", "COMPLETED", ""),
    ]
    assert leftovers.parse_queue("") == []


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ("COMPLETED\n", "COMPLETED"),
        ("CANCELLED by 0\n", "CANCELLED"),
        (
            "# maintenance on Friday\nsacct: error: slow database\n\nOUT_OF_MEMORY\n",
            "OUT_OF_MEMORY",
        ),
        ("NOTICE of the site\n", None),
        ("", None),
    ],
)
def test_the_state_is_found_among_the_lines_of_sacct(leftovers, answer, end):
    assert leftovers.parse_end(answer) == end

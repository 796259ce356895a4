"""plan: GPU-hours of papers, tables and claims, what a budget affords, and what the docs say of it."""

import csv
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.workflow.projects import Project
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import read_csv

ROOT = Path(__file__).parents[2]
FULL = ("plan", "--scale", "full")


def read_lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main([*FULL, *words]) == 0
    return capsys.readouterr().out.splitlines()


def read_docs_table() -> dict[str, list[str]]:
    """The rows of the table of docs/cluster.md by their paper: runs, measured, hours, memory."""
    rows = {}
    for line in (ROOT / "docs/cluster.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"\d+", cells[1]):
            rows[cells[0]] = cells[1:]
    return rows


def test_the_table_of_the_docs_is_what_the_plan_says(capsys: pytest.CaptureFixture[str]):
    table = read_docs_table()
    hours = {}
    for line in read_lines(capsys, "--by", "paper"):
        words = line.split()
        if words and words[0] in table:
            hours[words[0]] = words[-3:]
    assert hours == {name: row[:3] for name, row in table.items()}
    memory = {}
    for line in read_lines(capsys):
        heading = re.match(r"(\w+) at scale full: ", line)
        if heading:
            paper = heading[1]
        largest = re.match(r"  GPU memory ([0-9.]+ GB) at most, estimated", line)
        if largest:
            memory[paper] = largest[1]
    assert memory == {name: row[3] for name, row in table.items()}


def test_of_no_job_at_full_on_a_gpu_the_hours_are_unknown(capsys: pytest.CaptureFixture[str]):
    """The time of large data sets is not known, but they are made on CPUs."""
    lines = read_lines(capsys)
    hours = [line for line in lines if line.startswith("  hours      of all jobs: ")]
    jobs = [line for line in lines if line.startswith("  jobs       ")]
    assert len(hours) == len(jobs) == 5 + 1  # and of all together
    assert any(" prepare_large" in line for line in jobs)
    for line in hours:
        assert re.fullmatch(r"  hours      of all jobs: [\d.,-]+ GPU-hours", line)


def test_a_paper_that_trains_nothing_has_no_hours(capsys: pytest.CaptureFixture[str]):
    lines = read_lines(capsys, "--papers", "recompose", "--config", "only=paper")
    assert "  runs       0" in lines
    assert not any(line.startswith("  hours") for line in lines)


def test_each_table_and_each_claim_has_its_hours(capsys: pytest.CaptureFixture[str]):
    tables = read_lines(capsys, "--by", "table", "--papers", "lrf")
    assert any(re.match(r"lrf/table-cogs +table +\d+ +\d+ +[0-9.,-]+$", line) for line in tables)
    claims = read_lines(capsys, "--by", "claim", "--papers", "lrf")
    pattern = r"lrf/lrf-over-matched-cter-instance +primary +\d+ +\d+ +[0-9.,-]+$"
    assert any(re.match(pattern, line) for line in claims)


def test_each_model_has_its_memory_and_card(capsys: pytest.CaptureFixture[str]):
    lines = read_lines(capsys, "--by", "model", "--papers", "carma", "--jobs", "2")
    (llama,) = [line.split() for line in lines if line.startswith("llama-large ")]
    text = " ".join(llama)
    sizes = r"llama-large 3,213 M 51\.\d GB 80 GB 12\.9 GB 141 GB "
    # By FLOPs, because no step time is known.
    assert re.match(sizes + r"41-45 min ", text)
    # The two largest: Llama-3B and Qwen-3B, or two seeds of Llama.
    assert any(
        f"the 2 largest trainings at once need {2 * 141.36:.0f} GB" in line for line in lines
    )


def test_each_model_has_the_time_that_its_jobs_ask_for(capsys: pytest.CaptureFixture[str]):
    """Three times its updates' time, and 13 minutes to save its state: known of SCAN alone."""
    claim = "sq_transformer/sal-success-addjump"
    (row,) = [
        line
        for line in read_lines(capsys, "--by", "model", "--claim", claim)
        if line.startswith("sq-transformer ")
    ]
    with (ROOT / "catalogue/step_times.csv").open() as file:
        rows = list(csv.DictReader(file))
    (step,) = [
        float(entry["seconds_per_step"])
        for entry in rows
        if (entry["scale"], entry["task"], entry["variant"], entry["device"], entry["precision"])
        == ("full", "scan-jump-x2", "sal", "cuda", "fp32")
    ]
    hours = (3 * (8 + 1.2 * 100_000 * step) + 13 * 60) / 3600
    shown = re.search(r" ([\d.]+) h ", row)
    assert shown and float(shown[1]) == pytest.approx(hours, rel=0.05)


def test_a_budget_lists_claims_and_the_commands_that_run_them(capsys: pytest.CaptureFixture[str]):
    words = ("--papers", "sq_transformer", "--budget", "12")
    names = read_lines(capsys, *words, "--names")
    lines = read_lines(capsys, *words)
    words_of_call = ["--scale", "full", "--budget", "12", *words[:2]]
    assert read_command(lines, "On a SLURM cluster: ") == [
        *("./reproduce", "--workflow-profile", "profiles/slurm"),
        *words_of_call,
    ]
    assert read_command(lines, "On this machine: ") == ["./reproduce", *words_of_call]
    assert names[0] == "sq_transformer/sal-success-addjump"
    assert f"{len(names)} of " in "\n".join(lines)
    assert re.fullmatch(r"claim +GPU-hours added +sum so far", lines[0])
    rows = [line.split() for line in lines if line.split()[:1] == [names[0]]]
    assert rows == [[names[0], "primary", rows[0][2], rows[0][3]]]
    left_out = [line for line in lines if line.startswith("primary, left out: ")]
    assert any("sq-over-transformer-cter-instance" in line for line in left_out)


def read_command(lines: list[str], place: str) -> list[str]:
    """The words of the command that the plan prints for a cluster or for this machine."""
    (line,) = [line for line in lines if line.startswith(place)]
    return shlex.split(line.removeprefix(place))


def find_line(lines: list[str], beginning: str) -> str:
    (line,) = [line for line in lines if line.startswith(beginning)]
    return line


def test_a_budget_says_what_its_claims_need_together(capsys: pytest.CaptureFixture[str]):
    """The same numbers as those of a plan of these claims."""
    words = ("--papers", "carma", "--budget", "10", "--jobs", "3")
    names = read_lines(capsys, *words[:-2], "--names")
    lines = read_lines(capsys, *words)
    alone = read_lines(capsys, "--claim", *names, "--jobs", "3")
    for beginning in ("  disk       ", "  GPU memory ", "  hours      "):
        assert find_line(lines, beginning) == find_line(alone, beginning)
    gated = sorted(line.split()[2] for line in alone if line.endswith(", gated"))
    gated_line = find_line(lines, "  gated ")
    assert f" {len(gated)} of the models, {', '.join(gated)}: " in gated_line
    assert "HF_TOKEN" in gated_line and len(gated) > 0
    assert " of states while the 3 largest train at once" in find_line(lines, "  disk ")
    lines = read_lines(capsys, "--papers", "sq_transformer", "--budget", "12")
    assert find_line(lines, "  gated ") == "  gated      no model that is to be downloaded"


def test_states_are_of_as_many_trainings_as_the_profile_of_slurm_submits(
    capsys: pytest.CaptureFixture[str],
):
    profile = yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text())
    lines = read_lines(capsys, "--papers", "lrf")
    assert f"while the {profile['jobs']} largest train at once" in find_line(lines, "  disk ")


def test_a_budget_says_what_verdict_claims_get_that_no_plan_of_the_scale_names(
    capsys: pytest.CaptureFixture[str],
):
    lines = read_lines(capsys, "--papers", "sq_transformer", "--budget", "12")
    line = find_line(lines, "primary: in a plan of another scale. At full these claims are")
    assert "q over all" in line


def test_a_budget_chooses_among_named_claims(capsys: pytest.CaptureFixture[str]):
    named = ["sq_transformer/sovq-over-vq", "sq_transformer/sal-success-addjump"]
    words = ("--claim", *named, "--budget", "200")
    assert read_lines(capsys, *words, "--names") == [named[1], named[0]]
    lines = read_lines(capsys, *words)
    assert "2 of 2 claims fit into 200 GPU-hours of an NVIDIA H100 (primary: 1 of 1)" in lines
    assert read_command(lines, "On this machine: ")[-3:] == ["--claim", *named]
    rows = read_lines(capsys, "--by", "claim", "--claim", *named)
    assert [row.split()[0] for row in rows[1:4]] == [named[1], named[0], "together"]


def test_a_budget_says_which_claims_only_paper_leaves_out(capsys: pytest.CaptureFixture[str]):
    words = ("--papers", "lrf", "--by", "claim")
    all_claims = {line.split()[0] for line in read_lines(capsys, *words)}
    lines = read_lines(capsys, *words, "--config", "only=paper")
    left_out = all_claims - {line.split()[0] for line in lines}
    for shown in (lines, read_lines(capsys, *words[:2], "--budget", "9", "--config", "only=paper")):
        line = find_line(shown, "`only: paper` leaves out ")
        assert f"the runs of {len(left_out)} more claims" in line
        assert line.endswith("primary ones among them: lrf/lrf-over-matched-cter-instance")
    assert not any("only: paper" in line for line in read_lines(capsys, *words))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--budget", "9", "--by", "claim"], "--budget lists claims; leave out --by"),
        (
            ["lrf", "--budget", "9"],
            "--budget chooses among the claims of --papers or --claim; "
            "write --papers lrf --budget 9",
        ),
        (
            ["lrf/table1", "--budget", "9"],
            "--budget chooses among the claims of --papers or --claim; leave out lrf/table1",
        ),
        (
            ["lrf", "cat", "--by", "table"],
            "lrf and --by both say what to list; write --papers lrf cat --by table",
        ),
        (
            ["lrf/table1", "--by", "table"],
            "lrf/table1 and --by both say what to list; leave out one",
        ),
        (
            ["lrf", "--claim", "cat/comp-over-bert-bird"],
            "lrf and --claim both say what to plan; leave out one",
        ),
        (["--names"], "--names lists the claims of a budget; add --budget HOURS"),
        (["--jobs", "0"], "--jobs needs a number from 1 on"),
        (
            ["--by", "table", "--jobs", "3"],
            "--jobs is for the disk of saved states, which this does not print",
        ),
        (
            ["--papers", "lrf", "--claim", "lrf/lrf-over-roberta-mcd1"],
            "--claim names its paper; leave out --papers",
        ),
    ],
)
def test_no_option_is_ignored(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]):
    assert main([*FULL, *words]) == 1
    assert capsys.readouterr().err.splitlines() == [f"error: {problem}"]


def test_the_readme_has_the_hours_of_the_plan(capsys: pytest.CaptureFixture[str]):
    (line,) = re.findall(
        r"plan --scale full +# (.+)", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    numbers = re.findall(r"([\d,]+) to ([\d,]+)", line)
    hours = []
    for words in ([], ["--config", "only=paper"]):
        lines = read_lines(capsys, *words)
        together = lines[lines.index(find_line(lines, "together at scale full")) :]
        hours.append(find_line(together, "  hours").split()[4])
    assert ["-".join(ends) for ends in numbers] == hours


def test_the_first_page_has_the_costs_of_each_paper_at_small(capsys: pytest.CaptureFixture[str]):
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) \| ([\d.]+ MB) \| ([\d.]+ [MG]B) \|$",
        (ROOT / "docs/start.md").read_text(),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == ["carma", "cat", "lrf", "sq_transformer"]
    for paper, runs, hours, download, disk in rows:
        assert main(["plan", "--scale", "small", "--papers", paper]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert find_line(lines, "  runs ").split()[1].rstrip(",") == runs
        assert f"{hours} core-hours" in find_line(lines, "  hours ")
        assert f"   {download} in " in find_line(lines, "  download ")
        assert f"{disk} of checkpoints" in find_line(lines, "  disk ")


def test_cluster_docs_have_the_numbers_of_the_budget(capsys: pytest.CaptureFixture[str]):
    text = " ".join((ROOT / "docs/cluster.md").read_text().split())
    docs = re.search(
        r"`plan --scale full --budget 200`: (\d+) of the (\d+) primary claims that are measured at "
        r"`full` fit, .* and (\d+) others",
        text,
    )
    disk = re.search(
        r"with `--papers sq_transformer lrf cat --jobs 10` it is ([\d.]+ GB) of checkpoints and "
        r"([\d.]+ GB) of states",
        text,
    )
    on_a100 = re.search(r"On A100s, with `gpu_speed: ([\d.]+)` .*?, (\d+) of the (\d+)", text)
    assert docs and on_a100 and disk
    papers = ("--papers", "sq_transformer", "lrf", "cat")
    line = find_line(read_lines(capsys, *papers, "--budget", "200", "--jobs", "10"), "  disk ")
    assert f"{disk[1]} of checkpoints, {disk[2]} of states while the 10 largest" in line
    lines = read_lines(capsys, "--budget", "200")
    fit = [line.split()[1] for line in lines if is_claim(line)].count("primary")
    left_out = sum(line.startswith("primary, left out: ") for line in lines)
    n_chosen = len(read_lines(capsys, "--budget", "200", "--names"))
    assert docs.groups() == (str(fit), str(fit + left_out), str(n_chosen - fit))
    speed, *counts = on_a100.groups()
    lines = read_lines(capsys, "--budget", "200", "--config", f"gpu_speed={speed}")
    kinds = [line.split()[1] for line in lines if is_claim(line)]
    assert counts == [str(kinds.count("primary")), str(fit + left_out)]


def is_claim(line: str) -> bool:
    return re.match(r"\w+/[\w.-]+ +(primary|paper|control) ", line) is not None


@pytest.mark.parametrize("words", [["--by", "claim"], ["--budget", "9"], ["lrf"], ["--help"]])
def test_a_command_whose_reader_has_ended_says_nothing(words: list[str]):
    """As in `plan ... | head`: rich prints some of the lines, print the others."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "workflow_scripts", *FULL, *words]
    if words != ["lrf"]:
        command += ["--papers", "lrf"]
    try:
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT)
    finally:
        os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE
    assert done.stderr == b""


@pytest.mark.parametrize("words", [["--budget", "9"], ["--by", "model"], ["--count"]])
def test_flops_are_of_the_papers_own_models_alone(words, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--scale", "small", *words]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: GPU-hours, GPU memory and budgets are of the papers' own models, not of the scale "
        "small; add --scale full"
    ]


def test_a_budget_is_above_0(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--scale", "full", "--budget", "-5"]) == 1
    assert capsys.readouterr().err == "error: --budget -5 is no number of hours above 0\n"


def test_no_name_is_broken_and_rows_of_models_have_80_columns(capsys: pytest.CaptureFixture[str]):
    """Names are copied into commands."""
    claims = read_lines(capsys, "--by", "claim")
    assert any(
        line.startswith("sq_transformer/sq-over-transformer-cter-instance ") for line in claims
    )
    models = read_lines(capsys, "--by", "model")
    rows = models[: models.index(find_line(models, "Memory: "))]
    assert max(map(len, rows)) <= 80


def test_at_small_names_have_the_hours_of_all_their_jobs(capsys: pytest.CaptureFixture[str]):
    run = "cognition/transformer/default/seed-1"
    assert main(["plan", "--scale", "small", "cat/table2", run]) == 0
    table, of_run, together = (line.split() for line in capsys.readouterr().out.splitlines()[1:4])
    assert table[:2] == ["cat/table2", "table"] and together[0] == "together"
    assert of_run[:3] == [run, "run", "1"]
    # By hand: 2,500 updates by the seconds of its row, 1.2 times in training and 0.15 times in
    # evaluation, the starts of both, and the data.
    (row,) = (
        row
        for row in read_csv(ROOT / "catalogue/step_times.csv")
        if (row["task"], row["method"], row["variant"], row["scale"], row["device"])
        == ("cognition", "transformer", "default", "small", "cpu")
    )
    hours = (1.35 * 2500 * float(row["seconds_per_step"]) + 2 * 8 + 15) / 3600
    assert float(of_run[3]) == pytest.approx(hours, rel=0.05)
    assert int(together[1]) == int(table[2]) + 1


def test_claims_without_further_runs_are_a_line_by_paper(capsys: pytest.CaptureFixture[str]):
    words = ("--papers", "carma", "--budget", "30")
    names = read_lines(capsys, *words, "--names")
    lines = read_lines(capsys, *words)
    rows = [line.split()[0] for line in lines if line.startswith("carma/")]
    assert len(rows) == 6  # the primary claims, and two that need one more evaluation
    (free,) = (line for line in lines if line.startswith("and "))
    assert free.startswith(f"and {len(names) - 6} more that need no further run: ")
    assert f"{len(names) - 6} of carma" in free


def test_a_target_that_does_not_exist_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main([*FULL, "cat/tabel2"]) == 1
    assert "did you mean 'table2'?" in capsys.readouterr().err


def test_reproduce_runs_the_claims_of_a_budget(project: Project):
    done = project.reproduce("--scale", "full", "--papers", "lrf", "--budget", "40", "-n")
    assert done.returncode == 0, done.stderr
    shown = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("claim ")}
    names = project.command(
        "plan", "--scale", "full", "--papers", "lrf", "--budget", "40", "--names"
    )
    assert shown == set(names.stdout.split()) and len(shown) > 1


def test_reproduce_runs_those_of_named_claims_that_fit(project: Project):
    named = ["lrf/lrf-over-transformer-cter-instance", "lrf/lrf-over-roberta-mcd1"]
    done = project.reproduce("--scale", "full", "--claim", *named, "--budget", "40", "-n")
    assert done.returncode == 0, done.stderr
    shown = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("claim ")}
    assert shown == {named[0]}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--budget", "many"], "--budget needs a number of GPU-hours, such as --budget 200"),
        (["--budget"], "--budget needs a number of GPU-hours, such as --budget 200"),
        (
            ["--scale", "full", "--budget", "9", "--claim", "cat/a"],
            "--claim: papers/cat/claims.yaml has no claim 'a'",
        ),
        (["--scale", "full", "--budget", "0.001"], "no claim fits into 0.001 GPU-hours"),
    ],
)
def test_a_wrong_budget_is_one_line(project: Project, words: list[str], problem: str):
    done = project.reproduce(*words, "-n")
    assert done.returncode == 1
    assert f"error: {problem}" in done.stderr and len(done.stderr.splitlines()) == 1

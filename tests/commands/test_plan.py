import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.as_json import resolve_run
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, write_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.workflow.claim_budget import CallWords, print_commands
from workflow_scripts.workflow.job_hours import JobHours
from workflow_scripts.workflow.job_specs import resolve_run_job_spec
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.step_times import (
    STEP_TIME_COLUMNS,
    StepTime,
    StepTimes,
    estimate_hours,
    format_extended,
    read_step_times,
)
from workflow_scripts.workflow.targets import list_wildcards
from workflow_scripts.workflow.time_limit import (
    START_SECONDS,
    TRAINING_SHARE,
    Machine,
    estimate_seconds,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(copy_here: Path) -> Path:
    """The working directory: a copy of the project without recorded step times."""
    (copy_here / "catalogue/step_times.csv").unlink(missing_ok=True)
    return copy_here


def write_run(
    project: Path, name: str, device: str, seconds: float, scale: str = "demo", steps: int = 0
) -> None:
    """A finished training of `name`, as far as `plan --record` reads it."""
    folder = project / "results" / scale / "runs" / name
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint/model.safetensors").write_bytes(b"x" * 2_000_000)
    gpu = 3_000_000_000 if device == "cuda" else None
    record = {"device": device, "precision": "fp32", "cpu": "x86", "seconds_per_step": seconds}
    record |= {"peak_gpu_memory_bytes": gpu, "gpu_processes": 3 if gpu else None}
    (folder / "record.json").write_text(json.dumps(record))
    spec = resolve_run(load_catalogue(), name, scale)
    (folder / "run.json").write_text(json.dumps({"scale": scale, "spec": spec, "steps": steps}))


def test_the_plan_counts_the_requested_runs_and_imports_no_torch(project: Path):
    code = (
        "import sys; from workflow_scripts.__main__ import main; status = main(['plan', '--scale', 'full']); "
        "assert not {'torch', 'pandas', 'numpy', 'transformers'} & set(sys.modules); sys.exit(status)"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    count = len(list_requested_runs(load_catalogue(), load_config({"scale": "full"})))
    assert f"runs       {count}\n" in done.stdout
    assert f"{count} train, {count} evaluate" in done.stdout
    # Nothing is recorded, so that all hours are of counted FLOPs.
    assert re.search(r"^  hours      of all jobs: [0-9,]+-[0-9,]+ GPU-hours", done.stdout, re.M)
    assert re.search(r"^  GPU memory [0-9.]+ GB at most, estimated, by ", done.stdout, re.M)
    assert "about 90 GB to make large data sets" in done.stdout


def test_step_times_are_recorded_and_used(project: Path, capsys: pytest.CaptureFixture[str]):
    for seed, seconds in ((1, 0.5), (2, 0.7), (3, 0.6)):
        write_run(project, f"scan-jump-x2/transformer/default/seed-{seed}", "cpu", seconds)
    assert main(["plan", "--record"]) == 0
    with open("catalogue/step_times.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert tuple(row) == STEP_TIME_COLUMNS
    assert (row["seconds_per_step"], row["checkpoint_bytes"]) == ("0.6", "2000000")

    steps = 500  # of the demo on SCAN
    run = Run("scan-jump-x2", "transformer", "default", 9)
    expected = (pytest.approx(2 * steps * 0.6 / 3600), 0)
    assert estimate_hours(load_catalogue(), [run, run], "demo", "fp32", "cpu") == expected
    # Nothing like it was measured there.
    assert estimate_hours(load_catalogue(), [run], "demo", "fp32", "cuda") == (0, 1)
    capsys.readouterr()
    assert main(["plan"]) == 0
    said = capsys.readouterr().out
    assert "; or on a GPU: " in said and "GPU memory" not in said
    write_run(project, "scan-jump-x2/transformer/default/seed-4", "cuda", 0.1)
    assert main(["plan", "--record"]) == 0 == main(["plan"])
    assert "  GPU memory 3.0 GB at most, as measured\n" in capsys.readouterr().out


def test_step_times_of_another_gpu_are_recorded_as_those_of_an_h100(project: Path):
    """And read as those of the GPU: with its speed, hours are as they were measured."""
    write_run(project, "scan-jump-x2/transformer/default/seed-1", "cuda", 0.4)
    assert main(["plan", "--record", "--config", "gpu_speed=0.25"]) == 0
    with open("catalogue/step_times.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["seconds_per_step"]) == pytest.approx(0.1)
    run = Run("scan-jump-x2", "transformer", "default", 9)
    expected = (pytest.approx(500 * 0.4 / int(row["processes"]) / 3600), 0)
    assert estimate_hours(load_catalogue(), [run], "demo", "fp32", "cuda", 0.25) == expected


def test_runs_with_and_without_a_count_of_processes_are_recorded_together(project: Path):
    """The count is missing in records of earlier versions, and where nvidia-smi does not answer."""
    for seed in (1, 2):
        write_run(project, f"scan-jump-x2/transformer/default/seed-{seed}", "cuda", 0.1)
    file = project / "results/demo/runs/scan-jump-x2/transformer/default/seed-1/record.json"
    record = json.loads(file.read_text())
    del record["gpu_processes"]
    file.write_text(json.dumps(record | {"peak_gpu_memory_bytes": None}))
    assert main(["plan", "--record"]) == 0
    with open("catalogue/step_times.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["processes"], row["gpu_bytes"], row["precision"]) == ("3", "3000000000", "fp32")


def test_the_steps_of_epochs_are_those_of_a_finished_run_or_of_the_prepared_data(project: Path):
    """At `full` GPT-2 has two epochs in batches of 16, Llama three in batches of 32."""
    catalogue, short, long = (
        load_catalogue(),
        Run("idm", "gpt2-small", "ft", 1),
        Run("idm", "llama-small", "ft", 1),
    )

    def steps(run: Run) -> int | None:
        training = resolve_training(catalogue, run, "full").training
        return read_step_times(catalogue).estimate_steps(training, run, "full")

    write_run(project, "sst/gpt2-small/ft/seed-1", "cpu", 0.5, "full", steps=1068)  # another task
    assert main(["plan", "--record"]) == 0
    assert (steps(short), steps(long)) == (None, None)
    assert estimate_hours(catalogue, [short], "full", "fp32", "cpu") == (0, 1)

    data = project / "results/full/data/idm"
    data.mkdir(parents=True)
    (data / "dataset.json").write_text(json.dumps({"splits": {"train": {"rows": 1601}}}))
    assert (steps(short), steps(long)) == (2 * 101, 3 * 51)

    # The tokenizer of GPT-2 has left 1,000 of these.
    write_run(project, "idm/gpt2-small/ft/seed-1", "cpu", 0.5, "full", steps=2 * 63)
    assert main(["plan", "--record"]) == 0
    rows = read_csv(project / "catalogue/step_times.csv")
    assert [(row["task"], row["epoch_steps"]) for row in rows] == [("idm", "63"), ("sst", "534")]
    assert (steps(short), steps(long)) == (2 * 63, 3 * 51)
    hours = 2 * 2 * 63 * 0.5 / 3600  # of two threads
    assert estimate_hours(catalogue, [short], "full", "fp32", "cpu") == (pytest.approx(hours), 0)
    config = load_config({"scale": "full"})
    wildcards = {"task": "idm", "method": "gpt2-small", "variant": "ft", "seed": "seed-1"}
    job = SnakemakeJob("train", wildcards | {"scale": "full"})
    expected = START_SECONDS + TRAINING_SHARE * 126 * 0.5
    assert estimate_seconds(catalogue, config, Machine("cpu", 1, 1.0), job) == pytest.approx(
        expected
    )


def recorded(name: str, seconds: float, scale: str = "full", checkpoint: int = 0) -> dict[str, str]:
    """A row of step_times.csv, measured on a CPU."""
    names = dict(zip(("task", "method", "variant"), name.split("/"), strict=True))
    measured = {"seconds_per_step": str(seconds), "checkpoint_bytes": str(checkpoint)}
    where = {"scale": scale, "device": "cpu", "precision": "fp32"}
    return dict.fromkeys(STEP_TIME_COLUMNS, "") | where | names | measured


def write_step_times(*rows: dict[str, str]) -> StepTimes:
    """Write rows to catalogue/step_times.csv, and read them."""
    write_csv("catalogue/step_times.csv", STEP_TIME_COLUMNS, rows)
    return read_step_times(load_catalogue())


def test_a_run_without_a_record_takes_the_time_of_its_method_on_like_data_at_the_scale(
    project: Path,
):
    times = write_step_times(
        recorded("scan-jump-x2/sq-transformer/sal", 4, checkpoint=40),
        recorded("scan-around-right/sq-transformer/sal", 6, checkpoint=41),
        recorded("scan-jump-x2/sq-transformer/srl", 9, checkpoint=39),
        recorded("cognition/sq-transformer/srl", 50, checkpoint=200),
        recorded("scan-jump-x2/sq-transformer/sal", 0.5, scale="small"),
        recorded("scan-jump-x2/a-method-of-old/sal", 70),
        recorded("scan-jump-x2/sq-transformer/a-variant-of-old", 70),
        recorded("a-task-of-old/sq-transformer/sal", 70),
    )

    def seconds(name: str, scale: str = "full", device: str = "cpu") -> float | None:
        step_time = times.find(Run(*name.split("/"), seed=1), scale, device)
        return step_time and step_time.seconds

    assert seconds("scan-jump-x2/sq-transformer/sal") == 4
    assert seconds("scan-jump-x2/sq-transformer/sal", "small") == 0.5
    assert seconds("scan-jump-x2-clean/sq-transformer/sal") == 5
    # the median of the three, whose models are as large
    assert seconds("scan-jump-x2/sq-transformer/codes-12") == 6
    assert seconds("cogs/sq-transformer/srl") is None  # a model as large as SCAN's, on other data
    # as large as CoGnition's, with many more words
    assert seconds("wmt17-en-de/sq-transformer/srl") is None
    assert seconds("scan-jump-x2/transformer/default") is None
    assert seconds("scan-jump-x2/sq-transformer/sal", device="cuda") is None
    runs = [Run(name, "sq-transformer", "sal", 1) for name in ("scan-jump", "cogs")]
    assert [times.estimate_checkpoint_bytes(run, "full") for run in runs] == [41, None]


def test_a_method_without_a_record_takes_the_time_of_the_one_that_it_extends(
    project: Path,
):
    """It must be as large; the hours name both methods."""
    assert load_catalogue().methods["roberta-style"].extended == ["bert", "encoder"]
    times = write_step_times(
        recorded("pairs-wordpiece/bert/pretrain", 4, scale="small"),
        recorded("pairs-wordpiece/bert-matched/pretrain", 6, scale="small"),
    )
    run, larger = (
        Run("pairs-wordpiece", method, "pretrain", 1) for method in ("roberta-style", "cat")
    )
    assert times.find(run, "small", "cpu") == StepTime(4, 1, "bert")
    assert times.find(larger, "small", "cpu") is None

    catalogue, config = load_catalogue(), load_config({"scale": "small"})
    text = format_extended(catalogue, config, [run, larger], "cpu")
    assert text == " (by what they extend: roberta-style as bert)"
    assert format_extended(catalogue, config, [larger], "cpu") == ""
    jobs = [
        SnakemakeJob("train", {"scale": "small", **list_wildcards(key)}) for key in (run, larger)
    ]
    work = JobHours(catalogue, config, "cpu").sum_jobs(jobs)
    assert work.hours.upper == pytest.approx((8 + 1.2 * 4 * 3500) / 3600)
    assert work.format_time("cpu") == "4.7 core-hours and 1 job of unknown time"


def test_step_times_are_of_a_precision_and_of_trainings_that_share_a_gpu(project: Path):
    row = recorded("scan-jump-x2/sq-transformer/sal", 0.06) | {"device": "cuda", "processes": "15"}
    other = {"precision": "tf32", "processes": "1", "seconds_per_step": "0.01"}
    times = write_step_times(row, row | other)
    run = Run("scan-jump-x2", "sq-transformer", "sal", 1)
    assert times.find(run, "full", "cuda") == StepTime(0.06, 15)
    assert times.find(run, "full", "cuda", "tf32") == StepTime(0.01, 1)
    # of all
    assert times.find(run, "full", "cuda", "bf16") == StepTime(pytest.approx(0.035), 8)


@pytest.mark.parametrize("column", ["seconds_per_step", "processes", "checkpoint_bytes"])
def test_a_step_time_that_is_no_number_is_one_line(project: Path, column: str):
    row = recorded("scan-jump-x2/transformer/default", 0.5) | {column: "many"}
    place = "catalogue/step_times.csv: full/scan-jump-x2/transformer/default: "
    with pytest.raises(UserError, match=f"^{place}.*'many'; correct it$"):
        write_step_times(row)


def test_step_times_without_a_column_are_one_line(project: Path):
    Path("catalogue/step_times.csv").write_text("scale,task\nfull,cogs\n")
    with pytest.raises(UserError, match=r"^catalogue/step_times\.csv: has no column method; "):
        read_step_times(load_catalogue())


def test_hours_of_a_shared_gpu_are_divided_among_the_trainings(project: Path):
    row = {
        **recorded("scan-jump-x2/transformer/default", 0.5),
        "device": "cuda",
        "processes": "15",
        "cpu": "x86",
    }
    write_step_times(row)
    run = Run("scan-jump-x2", "transformer", "default", 1)
    hours, _ = estimate_hours(load_catalogue(), [run], "full", "fp32", "cuda")
    assert hours == pytest.approx(0.5 * 100_000 / 15 / 3600)


def test_a_model_of_another_size_is_no_record_of_the_scale(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    write_run(project, "scan-jump-x2/transformer/default/seed-1", "cpu", 0.5)
    file = project / "results/demo/runs/scan-jump-x2/transformer/default/seed-1/run.json"
    run = json.loads(file.read_text())
    file.write_text(json.dumps(run | {"scale": "full"}))
    assert main(["plan", "--record"]) == 1
    assert (
        "run.json: its model or batches are not of the size of the scale full; delete it"
        in capsys.readouterr().err
    )
    assert not Path("catalogue/step_times.csv").exists()


def test_hours_are_those_of_threads_on_a_cpu(project: Path):
    """At `full` a training has two threads."""
    row = {**recorded("scan-jump-x2/transformer/default", 0.5), "cpu": "x86"}
    write_step_times(row, row | {"device": "cuda", "seconds_per_step": "0.25"})
    run, steps = Run("scan-jump-x2", "transformer", "default", 1), 100_000
    assert estimate_hours(load_catalogue(), [run], "full", "fp32", "cpu") == (
        pytest.approx(2 * 0.5 * steps / 3600),
        0,
    )
    assert estimate_hours(load_catalogue(), [run], "full", "fp32", "cuda") == (
        pytest.approx(0.25 * steps / 3600),
        0,
    )


def test_downloads_count_the_models_of_the_hub(project: Path, capsys: pytest.CaptureFixture[str]):
    """By what repositories store: 4 bytes a parameter, or 2. One that is there is not counted."""
    folder = project / "results/downloads/models/google/gemma-2b"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    assert main(["plan", "--scale", "full", "--papers", "carma"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"  download   .* in 6 files, 19\.9 GB in 6 models\n", said)
    assert "   3.2 GB: openai-community/gpt2-large of the Hugging Face hub\n" in said
    assert "   6.4 GB: meta-llama/Llama-3.2-3B of the Hugging Face hub, gated\n" in said
    assert "gemma" not in said.split("training")[0]


def test_sizes_of_repositories_agree_with_their_parameters():
    """4 or 2 bytes a number, and a tenth more for GPT-2's masks."""
    models = {
        name: model
        for name, model in load_repositories().items()
        if model.parameters and not model.wheel
    }
    assert len(models) == 7
    for name, model in models.items():
        stored = 4 if "gpt2" in name else 2
        assert 0.99 * stored <= model.bytes / model.parameters <= 1.11 * stored, name
    assert all(model.bytes for model in load_repositories().values() if model.kind == "model")


def test_show_says_where_each_value_comes_from(project: Path, capsys: pytest.CaptureFixture[str]):
    assert (
        main(["plan", "--scale", "small", "--show", "scan-jump-x2/sq-transformer/codes-12/seed-1"])
        == 0
    )
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    places = {key: re.sub(r":\d+: ", " ", line.split(maxsplit=2)[2]) for key, line in lines.items()}
    assert (
        places["model.source_codes"]
        == "catalogue/methods/seq2seq.yaml sq-transformer.variants.codes-12"
    )
    assert lines["model.source_codes"].split()[1] == "12"
    assert places["model.width"] == "catalogue/methods/seq2seq.yaml backbone.when.3"
    assert (
        places["model.dropout"].endswith("backbone.when.3")
        and places["model.attention"]
        == "default, workflow_scripts/models/sq_transformer/settings.py"
    )
    assert lines["data.options.atomic_copies"].split()[1] == "1000"
    line = re.search(
        r"catalogue/tasks/scan\.yaml:(\d+): scan-jump-x2$", lines["data.options.atomic_copies"]
    )[1]
    assert (
        "atomic_copies: 1000"
        in (ROOT / "catalogue/tasks/scan.yaml").read_text().splitlines()[int(line) - 1]
    )


def test_nothing_to_record_and_unknown_names_are_one_line(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["plan", "--record"]) == 1
    assert (
        capsys.readouterr().err
        == "error: no finished run under results; train some first with ./reproduce\n"
    )
    assert main(["plan", "--scale", "smal"]) == 1
    assert "did you mean 'small'?" in capsys.readouterr().err
    assert main(["plan", "--show", "scan-jump-x2/transformer/sinus/seed-1"]) == 1
    assert "did you mean 'sinusoidal'?" in capsys.readouterr().err


def test_models_of_the_hub_are_known_by_their_parameters():
    """3.2 billion float32 parameters, and copies of them in host memory."""
    llama = Run("idm", "llama-large", "carma", seed=42)
    times = StepTimes(load_catalogue(), [])
    assert times.estimate_checkpoint_bytes(llama, "full") == 4 * 3_212_749_824
    assert times.estimate_checkpoint_bytes(llama._replace(seed=21), "small") is None


@pytest.mark.usefixtures("project")
def test_a_job_asks_for_the_memory_of_its_method():
    catalogue = load_catalogue()
    asked = catalogue.scales["full"].jobs
    large, small = (
        Run("idm", "llama-large", "carma", seed=0),
        Run("idm", "gpt2-small", "carma", seed=0),
    )
    of_large, of_small = (resolve_run_job_spec(catalogue, run, "full") for run in (large, small))
    assert of_large.resources.memory == asked.memory_of["llama-large"]
    assert of_small.resources.memory == asked.memory < of_large.resources.memory
    at_demo = resolve_run_job_spec(catalogue, large, "demo")
    assert at_demo.resources.memory == catalogue.scales["demo"].jobs.memory


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("cat/table2 --papers lrf", "cat/table2 and --papers do not go together; leave out one"),
        (
            "cat/table2 --results elsewhere",
            "cat/table2 and --results do not go together; leave out one",
        ),
        ("--count --budget 5 --names", "--count and --budget do not go together; leave out one"),
        ("--count cat", "--count and cat do not go together; leave out one"),
        ("--show a/b/c/seed-1 --budget 5", "--show and --budget do not go together; leave out one"),
        ("--show a/b/c/seed-1 cat", "--show and cat do not go together; leave out one"),
        ("--power --claim cat/a", "--power and --claim do not go together; leave out one"),
        ("--record --scale small", "--record and --scale do not go together; leave out one"),
        ("--spread a.csv rate --power", "--spread and --power do not go together; leave out one"),
        ("--by model --results a", "--by and --results do not go together; leave out one"),
        ("--log-odds", "--log-odds is for a spread; add --spread FILE METRIC"),
        ("--budget nan", "--budget nan is no number of hours above 0"),
        ("--budget inf", "--budget inf is no number of hours above 0"),
        ("--budget 0", "--budget 0 is no number of hours above 0"),
    ],
)
def test_no_option_is_ignored_in_any_mode(words: str, problem: str, capsys):
    assert main(["plan", *words.split()]) == 1
    assert capsys.readouterr().err == f"error: {problem}\n"


@pytest.mark.parametrize(
    ("hours", "text"),
    [(200, "200"), (1e6, "1000000"), (1234567, "1234567"), (2.5, "2.5"), (1e-7, "0.0000001")],
)
def test_the_printed_command_has_the_budget_as_it_is_read(hours: float, text: str, capsys):
    """./reproduce reads digits and a point."""
    print_commands("full", float(hours), CallWords(["lrf"], [], []))
    for line in capsys.readouterr().out.splitlines():
        assert line.endswith(f"--scale full --budget {text} --papers lrf")

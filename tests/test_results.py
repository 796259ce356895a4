"""Results in Python equal the files, in each kind of folder. That of a crate is in
tests/workflow/test_crate.py.
"""

import csv
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from tests.analyses.small_runs import add_run
from tests.reporting.reference import REFERENCE, rows_of
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, write_csv, write_json
from workflow_scripts.results import Results

ROOT = Path(__file__).parents[1]
RUN = "scan-jump-x2/transformer/default/seed-1"


@pytest.fixture(scope="module")
def committed() -> Results:
    return Results(REFERENCE)


@pytest.fixture
def own(tmp_path: Path) -> Results:
    """results/<scale> of one trained and scored run."""
    folder = add_run(tmp_path / "demo", RUN).folder
    pd.DataFrame({"row": [0], "prediction": ["I_WALK"]}).to_parquet(
        folder / "eval/predictions.parquet"
    )
    write_json(
        folder / "eval/evaluation.json",
        {"run": RUN, "spec": {"splits": ["test"], "batch_tokens": 512}},
    )
    write_json(folder / "record.json", {"commit": "abc", "seconds": 1.5, "host": "here"})
    return Results(tmp_path / "demo")


def as_texts(frame: pd.DataFrame, like: list[dict[str, str]]) -> list[dict[str, str | float]]:
    """Rows in which missing values are empty, and numbers are numbers in `like` too."""
    found = frame.astype(object).where(frame.notna(), "").to_dict("records")
    numbers = {name for name in frame if pd.api.types.is_numeric_dtype(frame[name])}
    assert numbers
    wanted = [{k: float(v) if k in numbers and v else v for k, v in row.items()} for row in like]
    assert found == wanted
    return found


def test_scores_and_claims_are_those_of_the_files(committed: Results):
    as_texts(committed.scores(pilots=True), rows_of("scores.csv"))
    as_texts(committed.claims(), rows_of("claims.csv"))
    as_texts(committed.sides(), rows_of("claim_sides.csv"))
    assert committed.scores()["seed"].dtype == committed.claims()["n_seeds"].dtype == "Int64"


def test_every_table_is_that_of_its_file(committed: Results):
    assert len(committed.tables()) > 20
    for name in committed.tables():
        with open(REFERENCE / f"tables/{name}.csv", newline="") as stream:
            as_texts(committed.table(name).reset_index(), list(csv.DictReader(stream)))
        assert committed.latex(name) == (REFERENCE / f"tables/{name}.tex").read_text()


def test_latex_of_some_rows_is_the_whole_without_the_others(committed: Results):
    whole = committed.latex("cat/table2").splitlines()
    some = committed.latex("cat/table2", rows=["CAT_mix", "BERT"]).splitlines()
    bare = committed.latex("cat/table2", notes=False).splitlines()
    assert bare == [line for line in whole if not line.startswith(r"\par")]
    assert committed.latex("cat/table2", rows="BERT") == committed.latex("cat/table2", ["BERT"])
    absent = [line for line in whole if line not in some]
    in_whole = iter(whole)
    assert all(line in in_whole for line in some), "other lines, or in another order"
    starts = {line.partition(" & ")[0].replace("\\", "") for line in absent}
    others = set(committed.table("cat/table2").index.unique("row")) - {"CAT_mix", "BERT"}
    assert others <= starts
    assert [line for line in some if "Without training" in line] == []
    with pytest.raises(UserError, match="the table has no row 'CAT_miks'; did you mean 'CAT_mix'"):
        committed.latex("cat/table2", rows=["CAT_miks"])


def test_a_table_has_its_title_and_the_notes_below_it(committed: Results):
    text = (REFERENCE / "tables/cat/table2.md").read_text()
    table, wide = committed.table("cat/table2"), committed.wide("cat/table2")
    assert table.attrs == wide.attrs and f"## {table.attrs['title']}\n" in text
    notes = table.attrs["notes"]
    assert len(notes) == text.count("\n- ") == 7
    assert (
        notes[1] == "Numbers in percent; a correlation is 100 times r."
        and "the cosine of [CLS] with" in notes[0]
    )
    assert all(note.replace("[", r"\[").replace("]", r"\]") in text for note in notes)


def test_scores_have_the_seeds_that_tables_count_unless_others_are_asked_for(committed: Results):
    chosen = {"task": "bird", "variant": "mix@paws", "metric": "pearson", "readout": "mix"}
    counted, every = committed.scores(**chosen), committed.scores(**chosen, pilots=True)
    assert list(counted["seed"]) == list(range(101, 110))
    assert sorted(every["seed"]) == [*range(21, 26), *range(101, 110)]
    assert counted.attrs["notes"][0].startswith(f"{len(every) - len(counted)} scores of seeds")
    assert list(committed.scores(**chosen, seed=21)["seed"]) == [21]
    # The planned seeds of these are not all there, and tables show the pilots.
    assert set(committed.scores(task="sst2", variant="comp")["seed"]) == {21, 22, 23}
    # No plan is about SRL without pilots.
    assert set(committed.scores(task="cognition", variant="srl")["seed"]) == set(range(101, 109))


TABLES = (
    "cat/table2",  # planned seeds after pilots
    "cat/table-codes",  # an analysis
)


@pytest.mark.parametrize("name", TABLES)
def test_seeds_are_those_of_the_table(committed: Results, name: str):
    """Of each measured cell: their number, mean and standard deviation are in the table."""
    paper, table = name.split("/")
    frame = committed.table(name)
    measured = frame[frame["status"] == "measured"]
    assert len(measured) > 2
    for place, cell in measured.iterrows():
        seeds = committed.seeds(paper, table, *place)
        assert len(seeds) == cell["n_seeds"] and seeds.attrs == {"unit": cell["unit"]}
        assert round(seeds.mean(), 6) == pytest.approx(cell["reproduced"], abs=2e-6)
        if len(seeds) > 1:
            assert round(seeds.std(), 6) == pytest.approx(cell["std"], abs=2e-6)


def test_seeds_of_committed_tables_are_the_planned_ones(committed: Results):
    seeds = committed.seeds("cat", "table2", "CAT_mix", "BiRD", "pearson")
    rows = [
        (int(row["seed"]), float(row["value"]))
        for row in rows_of("claim_sides.csv")
        if row["claim"] == "comp-over-mix-bird" and row["side"] == "right"
    ]
    assert seeds.round(4).to_dict() == pytest.approx(dict(rows), abs=1e-4) and len(rows) == 9


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("CAT_mx", "BiRD", "pearson"), "has no cell CAT_mx, BiRD, pearson; did you mean 'CAT_mix, BiRD, pearson'?"),
        (("RoBERTa", "BiRD", "pearson"), "cell RoBERTa, BiRD, pearson is not run at small"),
        (("word overlap", "BiRD", "pearson"), "cell word overlap, BiRD, pearson is computed: it has no scores of runs"),
    ],
)  # fmt: skip
def test_a_cell_without_seeds_says_why(committed: Results, place, message: str):
    with pytest.raises(UserError) as error:
        committed.seeds("cat", "table2", *place)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_predictions_have_the_sentences_and_right_answers_whose_licences_allow_it(
    committed: Results,
):
    run = "scan-jump-x2/sq-transformer/sal-entropy-3/seed-101"
    frame = committed.predictions(run, texts=True)
    assert list(frame) == [*committed.predictions(run), "source", "target"]
    best = frame[(frame["split"] == "test") & frame["readout"].isna()]
    right = (best["prediction"] == best["target"]).mean()
    (score,) = committed.scores(
        task="scan-jump-x2", variant="sal-entropy-3", seed=101, split="test", metric="exact_match",
        readout=None, subset="all",
    )["value"]  # fmt: skip
    assert 100 * right == pytest.approx(score) == 100
    assert {"jump around left twice", "look after jump thrice"} <= set(best["source"])
    items = committed.predictions("idm/gpt2-small/carma/seed-101", texts=True)
    one = items[items["item"] == "00004492v-hold"].iloc[0]
    assert (one["label"], one["content"]) == ("hold", "keep from exhaling or expelling")


def test_texts_of_other_data_are_named_and_not_guessed(committed: Results):
    with pytest.raises(UserError, match=r"has no texts of bird; \./reproduce results/small/data/b"):
        committed.predictions("bird/cat/mix@paws/seed-101", texts=True)


def test_wide_has_the_rows_and_columns_of_the_paper(committed: Results):
    table, wide = committed.table("cat/table2"), committed.wide("cat/table2", "published")
    assert (
        wide.loc["CAT_mix", ("BiRD", "pearson")]
        == table.loc[("CAT_mix", "BiRD", "pearson"), "published"]
        == 27.72
    )
    assert list(wide.index) == list(dict.fromkeys(table.index.get_level_values("row")))
    assert list(wide) == list(dict.fromkeys(table.droplevel("row").index))
    assert committed.wide("cat/table2", ["published", "reproduced"])["published"].equals(wide)


def test_rows_are_selected_by_value_by_several_and_by_none(committed: Results):
    rows = rows_of("scores.csv")
    chosen = committed.scores(task="idm", seed=[21, 23], intervention=None)
    assert len(chosen) == sum(
        row["task"] == "idm" and row["seed"] in ("21", "23") and not row["intervention"]
        for row in rows
    )
    assert set(chosen["seed"]) == {21, 23} and chosen["layer"].isna().all()
    assert len(committed.claims(paper=("cat", "lrf"))) == sum(
        row["paper"] in ("cat", "lrf") for row in rows_of("claims.csv")
    )
    assert committed.scores(task="idm", seed=7).empty
    assert list(committed.sides(claim="comp-over-mix-bird", side="left")["seed"]) == list(
        range(101, 110)
    )
    names = ["cat/comp-over-bert-bird", "lrf/lrf-over-matched-addjump"]
    found = committed.claims(claim=names)
    assert [f"{row.paper}/{row.claim}" for row in found.itertuples()] == names
    assert list(found) == list(committed.claims())
    none = {"paper": "lrf", "verdict": "reproduced", "role": "primary"}
    assert committed.claims(**none).empty  # a word of the column, and no mistake


def test_planned_claims_are_those_whose_seeds_are_still_to_be_run(tmp_path):
    rows = rows_of("claims.csv")[:4]
    for row, verdict, reason, n_seeds in zip(
        rows,
        ("no verdict", "no verdict", "reproduced", "not run"),
        ("1 of 6 seeds; another cause", "the data are generated", "", "0 of 6 seeds"),
        ("1", "6", "6", ""),
        strict=True,
    ):
        row |= {"verdict": verdict, "reason": reason, "n_seeds": n_seeds, "n_planned": "6"}
    write_csv(tmp_path / "claims.csv", list(rows[0]), rows)
    results = Results(tmp_path)
    names = [row["claim"] for row in rows]
    for verdicts, wanted in (
        ("planned", names[:1]),
        ("no verdict", names[:2]),
        (["planned", "reproduced"], [names[0], names[2]]),
        (["planned", "no verdict"], names[:2]),
    ):
        assert results.claims(verdict=verdicts)["claim"].tolist() == wanted
    planned = results.claims(verdict="planned")
    assert list(planned) == list(results.claims())
    assert planned["verdict"].tolist() == ["no verdict"]


def test_provenance_curves_and_predictions_of_committed_runs(committed: Results):
    found = json.loads((REFERENCE / "provenance.json").read_text())
    assert list(committed.runs().index) == [run["run"] for run in found]
    run = "cognition/lrf/default/seed-101"
    (one,) = (each for each in found if each["run"] == run)
    assert committed.runs().loc[run, ["steps", "commit"]].tolist() == [one["steps"], one["commit"]]
    curve = committed.curves(run)
    wanted = [
        row
        for row in rows_of("curves.csv")
        if (row["method"], row["variant"], row["seed"])
        == tuple(run.replace("seed-", "").split("/")[1:])
    ]
    assert int(curve.notna().sum().sum()) == len(wanted) > 20
    assert all(curve.loc[int(row["step"]), row["name"]] == float(row["value"]) for row in wanted)
    predictions, scores = (
        committed.predictions(run),
        committed.scores(task="cognition", method="lrf", variant="default"),
    )
    assert list(predictions) == ["split", "readout", "row", "subset", "prediction"]
    examples = scores[
        (scores["metric"] == "exact_match") & (scores["subset"] == "all") & (scores["seed"] == 101)
    ]
    assert predictions["split"].value_counts().to_dict() == dict(
        zip(examples["split"], examples["n"], strict=True)
    )


def test_only_runs_of_later_plans_have_recorded_starts():
    """As docs/results.md says."""
    for run in json.loads((REFERENCE / "provenance.json").read_text()):
        seed = int(run["run"].rpartition("-")[2])
        is_recorded = bool(run.get("started")) and "dirty" in run
        assert is_recorded == (seed > 200), run["run"]


def test_own_runs_have_scores_provenance_curves_and_predictions(own: Results):
    (score,) = own.scores().to_dict("records")
    assert (score["task"], score["seed"], score["value"]) == (
        "scan-jump-x2",
        1,
        12.5,
    ) and math.isnan(score["rate"])
    made = own.runs()
    assert list(made.index) == [RUN] and made.loc[RUN, "seconds"] == 1.5 and "host" not in made
    assert own.curves(RUN)["valid_exact_match"].to_dict() == {
        20: 2.5,
        40: 5,
        60: 7.5,
        80: 10,
        100: 12.5,
    }
    assert own.predictions(RUN).to_dict("records") == [{"row": 0, "prediction": "I_WALK"}]
    assert own.tables() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.scores(tsk="paws"), "there is no column 'tsk'; did you mean 'task'?"),
        (lambda r: r.claims(verdcit="x"), "there is no column 'verdcit'; did you mean 'verdict'?"),
        (lambda r: r.claims(claim="mix-over-bert-brid"), "; did you mean 'mix-over-bert-bird'?"),
        (lambda r: r.claims(claim="cat/mix-over-bert-brid"), "; did you mean 'cat/mix-over-bert-bird'?"),
        (lambda r: r.claims(verdict="plannd"), "no verdict is 'plannd'; did you mean 'planned'?"),
        (lambda r: r.claims(role="Primary"), "no role is 'Primary'; did you mean 'primary'?"),
        (lambda r: r.scores(readout="mixx"), "no readout is 'mixx'; did you mean 'mix'?"),
        (lambda r: r.claims(kind="papr"), "no kind is 'papr'; did you mean 'paper'"),
        (lambda r: r.claims(protocol="papper"), "no protocol is 'papper'; did you mean 'paper'"),
        (lambda r: r.scores(subset="nosuch"), "no subset is 'nosuch'; "),
        (lambda r: r.scores(unit="nosuch"), "no unit is 'nosuch'; "),
        (lambda r: r.scores(seed="101"), "seed is a number; give one in place of the text '101'"),
        (lambda r: r.curves("bird/cat/mix@paws/seed-101"), "trains nothing; name paws/cat/mix/seed-101"),
        (lambda r: r.curves("scan-jump-x2/transformer/default/seed-999"), "did you mean 'scan-jump-x2/tr"),
        (lambda r: r.table("cat/tabel2"), "has no table 'cat/tabel2'; did you mean 'cat/table2'?"),
        (lambda r: r.wide("cat/table2", "publishd"), "there is no column 'publishd'; did you mean 'published'?"),
        (lambda r: r.curves("cognition/lrf/defalt/seed-101"), "did you mean 'cognition/lrf/default/seed-101'?"),
        (lambda r: r.load_model("cogs/lrf/default/seed-1"), "; it has runs of the tasks bird, bird-abba, "),
        (lambda r: r.load_model("cognition/lrf/default/seed-101"), "; ./reproduce results/small/runs/cognition/lrf/d"),
        (lambda r: r.predictions("paws/cat/mix/seed-21"), "/paws/cat/mix/seed-21/eval/predictions.parquet: only"),
        (lambda r: r.predictions("sst2/bert/ft/seed-21"), "/sst2/bert/ft/seed-21/eval/predictions.parquet: only"),
        (lambda r: r.predictions("cognition/lrf/plain/seed-1x1"), "has no run cognition/lrf/plain/seed-1x1; did you"),
    ],
)  # fmt: skip
def test_what_a_folder_lacks_is_one_line(committed: Results, call, message: str):
    with pytest.raises(UserError) as error:
        call(committed)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_given_weights_have_no_curve(own: Results):
    shutil.copytree(own.folder / "runs" / RUN, own.folder / "runs/bird/bert/ft@paws/seed-1")
    for name in ("run.json", "training.csv"):
        (own.folder / "runs/bird/bert/ft@paws/seed-1" / name).unlink()
    for name in ("evaluation.json", "record.json"):
        write_json(
            own.folder / "runs/bird/bert/ft@paws/seed-1/eval" / name,
            {"run": "bird/bert/ft@paws/seed-1"},
        )
    with pytest.raises(
        UserError, match=r"training\.csv: this run scores given weights and trains nothing"
    ):
        own.curves("bird/bert/ft@paws/seed-1")


def test_another_folder_and_broken_files_are_one_line(own: Results, tmp_path: Path):
    with pytest.raises(
        UserError, match=r"holds no results of a scale; give results/<scale>, .* crate; here: none"
    ):
        Results(tmp_path)
    with pytest.raises(UserError, match=r"smal does not exist; give .*; here: .*/reference/small"):
        Results(REFERENCE.parent / "smal")
    with pytest.raises(UserError, match=r"has no claims\.csv; \./reproduce writes it at its end"):
        own.claims()
    (own.folder / "claims.csv").write_text("paper,claim,verdict,effect\ncat,one,reproduced,many\n")
    with pytest.raises(UserError, match=r"claims\.csv: could not convert string to float: 'many'"):
        own.claims()
    (own.folder / f"runs/{RUN}/eval/predictions.parquet").write_text("no table")
    with pytest.raises(UserError, match=r"predictions\.parquet is no Parquet file"):
        own.predictions(RUN)
    (own.folder / "provenance.json").write_text("{}")
    with pytest.raises(UserError, match=r"provenance\.json is not what export writes"):
        Results(own.folder).runs()


def test_a_model_has_the_weights_of_its_file_and_predicts_from_texts(own: Results):
    checkpoint, model = own.checkpoint(RUN), own.load_model(RUN)
    weights = load_file(own.folder / f"runs/{RUN}/checkpoint/model.safetensors")
    assert not model.training and all(
        torch.equal(model.state_dict()[name], weights[name]) for name in weights
    )
    once, twice = (
        checkpoint.predict(model, ["jump left"]),
        checkpoint.predict(model, ["walk", "jump left", "unknown"]),
    )
    assert once == twice[1:2] and len(twice) == 3 and checkpoint.predict(model, []) == []
    assert set(once[0].split(" ")) <= {"", "I_WALK"}
    with pytest.raises(UserError, match="the inputs are a text, 'jump left'; give a list of texts"):
        checkpoint.predict(model, "jump left")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder, run: flip_bit(folder / "checkpoint/model.safetensors"), "model.safetensors is not the file of"),
        (lambda folder, run: (folder / "checkpoint/vocabulary.json").unlink(), "vocabulary.json is not the file of"),
        (lambda folder, run: run["spec"].update(seed=2), "run.json was changed after training"),
        (lambda folder, run: name_code(run, "kind", "os"), "key 'kind' is 'os'; known: "),
        (lambda folder, run: name_code(run, "task", "../../x"), "run.json: key 'spec.task'"),
        (lambda folder, run: name_code(run, "model", {"name": "..os"}), "key 'model.name' is '..os'; known: "),
        (lambda folder, run: (folder / "eval/evaluation.json").unlink(), "evaluation.json does not exist"),
    ],
)  # fmt: skip
def test_a_changed_checkpoint_is_refused_and_names_no_code(own: Results, damage, message: str):
    folder = own.folder / "runs" / RUN
    run = json.loads((folder / "run.json").read_text())
    damage(folder, run)
    write_json(folder / "run.json", run)
    with pytest.raises(UserError) as error:
        own.load_model(RUN)
    assert message in str(error.value) and "\n" not in str(error.value)


def flip_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def name_code(run: dict, key: str, value: object) -> None:
    """Change the spec and its digest, as whoever writes a hostile file would."""
    run["spec"][key] = value
    run["spec_digest"] = digest(run["spec"])


def test_the_distribution_is_installed_with_its_data_and_imports_no_torch(tmp_path: Path):
    """Takes five seconds: pip builds the wheel and installs it."""
    shutil.copytree(
        ROOT / "workflow_scripts",
        tmp_path / "source/workflow_scripts",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "source")
    install = [
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        tmp_path / "site",
    ]
    subprocess.run([sys.executable, "-m", "pip", *install, tmp_path / "source"], check=True)
    assert [file.name.split("-")[0] for file in (tmp_path / "site").glob("*.dist-info")] == [
        "recompose"
    ]
    program = f"""
import sys
from workflow_scripts.results import Results
print(len(Results({str(REFERENCE)!r}).tables()), "torch" in sys.modules, sys.modules["workflow_scripts"].__path__[0])
from workflow_scripts.data.sources.declared import load_sources
print(load_sources()["scan/LICENSE"].licence)
"""
    where = {
        "cwd": tmp_path,
        "env": {"PYTHONPATH": str(tmp_path / "site")},
        "capture_output": True,
        "text": True,
    }
    done = subprocess.run([sys.executable, "-c", program], **where)
    assert done.returncode == 0, done.stderr
    tables = len(Results(REFERENCE).tables())
    assert done.stdout == f"{tables} False {tmp_path / 'site/workflow_scripts'}\nBSD\n"
    plan = subprocess.run([sys.executable, "-m", "workflow_scripts", "plan"], **where)
    assert (
        plan.returncode == 1
        and "does not exist; run this in the root of the repository" in plan.stderr
    )


def test_a_claim_may_have_the_name_that_commands_take(committed: Results):
    named = committed.sides(claim="cat/comp-over-bert-bird")
    assert named.equals(committed.sides(paper="cat", claim="comp-over-bert-bird")) and len(named)
    assert len(committed.claims(claim="cat/comp-over-bert-bird")) == 1
    with pytest.raises(UserError, match="did you mean 'cat/comp-over-bert-bird'"):
        committed.claims(claim="cat/comp-over-bert-brid")


def test_the_scale_is_that_of_the_runs_whatever_the_folder_is_called(
    committed: Results, tmp_path: Path
):
    """Else no plan was found, and pilots were pooled with planned seeds without a word."""
    for name in ("scores.csv", "provenance.json", "claims.csv"):
        (tmp_path / "exported").mkdir(exist_ok=True)
        shutil.copy(REFERENCE / name, tmp_path / "exported")
    renamed = Results(tmp_path / "exported")
    wanted = committed.scores(metric="pearson")
    found = renamed.scores(metric="pearson")
    assert len(found) == len(wanted) < len(renamed.scores(metric="pearson", pilots=True))
    assert found.attrs == wanted.attrs


def test_a_generator_selects_what_a_list_does(committed: Results):
    for name in ("claims", "sides"):
        select = getattr(committed, name)
        found = select(claim=(claim for claim in ["mix-over-bert-bird"]))
        assert len(found) == len(select(claim=["mix-over-bert-bird"])) > 0
    states = (state for state in ["planned", "reproduced"])
    assert len(committed.claims(verdict=states)) == len(
        committed.claims(verdict=["planned", "reproduced"])
    )


@pytest.mark.quick_faults
def test_a_damaged_parquet_file_is_one_line_that_names_it(tmp_path: Path):
    """Its footer is whole, and a page of it is not."""
    file = "predictions/cognition/lrf/default.parquet"
    copy = tmp_path / "small" / file
    copy.parent.mkdir(parents=True)
    for name in ("provenance.json", "claims.csv"):
        shutil.copy(REFERENCE / name, tmp_path / "small")
    content = bytearray((REFERENCE / file).read_bytes())
    content[2000:2008] = bytes(8)
    copy.write_bytes(content)
    with pytest.raises(UserError, match=r"default\.parquet is no Parquet file \(") as error:
        Results(tmp_path / "small").predictions("cognition/lrf/default/seed-101")
    assert "\n" not in str(error.value)


def test_the_command_that_makes_a_file_names_the_scale_wherever_the_folder_is(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(REFERENCE)
    with pytest.raises(UserError, match=r"\./reproduce results/small/runs/idm/gpt2-small/carma/"):
        Results(".").curves("idm/gpt2-small/carma/seed-21")

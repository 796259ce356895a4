"""The page with which ./reproduce ends: it has all tables, figures and claims of the run, and loads
nothing.
"""

import csv
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from tests.reporting.site.browser import CHROMIUM, opened
from tests.reporting.site.conftest import RESULTS, ROOT
from tests.reporting.site.parsed_page import Document
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import write_csv, write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_paper_runs
from workflow_scripts.reporting.site.measured_claims import make_slug
from workflow_scripts.reporting.site.run_page import render_html

PAPERS = ("carma", "sq_transformer")
RECORD = {"seconds": 3599.6, "commit": "0123456789abcdef", "device": "cpu", "device_name": "a CPU"}


def copy_results(folder: Path, scale: str, papers: tuple[str, ...]) -> ScaleFolder:
    """Results of a scale: the committed tables, figures and claims of papers, and two trainings."""
    results = ScaleFolder(folder / scale)
    for paper in papers:
        for kind in ("tables", "figures"):
            if (RESULTS / kind / paper).exists():
                shutil.copytree(RESULTS / kind / paper, results.path / kind / paper)
    for name in ("claims.csv", "claim_sides.csv"):
        with open(RESULTS / name, newline="") as stream:
            reader = csv.DictReader(stream)
            rows = [row for row in reader if row["paper"] in papers]
        write_csv(results.path / name, reader.fieldnames, rows)
    write_json(results.config, {"papers": list(papers), "scale": scale, "extra": True})
    return results


def add_trainings(results: ScaleFolder, papers: tuple[str, ...]) -> None:
    catalogue = load_catalogue(ROOT)
    config = load_config({"papers": list(papers), "scale": results.path.name}, ROOT)
    for run in list(list_paper_runs(catalogue, config, papers[0], config.scale))[:2]:
        write_json(results.run(run).manifest, {})
        write_json(results.run(run).record, RECORD)


@pytest.fixture(scope="module")
def small_results(tmp_path_factory: pytest.TempPathFactory) -> ScaleFolder:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        results = copy_results(tmp_path_factory.mktemp("results"), "small", PAPERS)
        add_trainings(results, PAPERS)
        assert main(["page", "--results", str(results.path)]) == 0
    return results


@pytest.fixture(scope="module")
def page(small_results: ScaleFolder) -> Document:
    return Document(small_results.page)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_it_says_what_ran_and_what_the_verdicts_are(page, small_results):
    assert "Recompose: the results at small" in page.words
    assert re.search(r"Made 2 trainings, \d+ tables and \d+ figures", page.words)
    assert "Training 1 h 59 min in sum, on a CPU" in page.words or "2 h 0 min in sum" in page.words
    assert "Commit 012345678" in page.words
    with open(small_results.claims.table, newline="") as stream:
        primary = [row for row in csv.DictReader(stream) if row["role"] == "primary"]
    assert f"of {len(primary)} primary claims " in page.words
    assert "say nothing about the papers" not in page.words


def test_every_claim_is_on_it_with_its_verdict_and_reason(page, small_results):
    with open(small_results.claims.table, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 100
    for row in rows:
        assert squeezed(row["statement"]) in page.words
        assert f"{row['paper']}/{row['claim']}" in page.words
        if row["reason"] and not re.fullmatch(r"\d+ of \d+ seeds", row["reason"]):
            assert squeezed(row["reason"])[1:] in page.words
    folded = "".join(re.findall(r"<details>.*?</details>", page.source, re.DOTALL))
    for row in rows:
        name = f"<code>{row['paper']}/{row['claim']}</code>"
        assert (name in folded) == (row["role"] == "exploratory")


def test_every_table_and_figure_is_on_it(page, small_results):
    names = []
    for files in (small_results.list_tables(), small_results.list_figures()):
        for file in files:
            names.append(f"{file.folder.name}-{file.name}")
    assert len(names) > 30
    assert set(map(make_slug, names)) <= set(page.ids)
    assert "41.35 ± 36.60" in page.words  # SQ-Transformer with H(Z) changed, of table 1
    assert page.source.count("<table>") >= len(small_results.list_tables())


def test_it_is_whole_and_loads_nothing_but_its_figures(page, small_results):
    assert page.faults == []
    assert not {name for name in page.ids if page.ids.count(name) > 1}
    assert "{raw}" not in page.source and not re.search(r"^\([\w-]+\)=", page.source, re.MULTILINE)
    for link in page.links:
        url = urlparse(link)
        assert not url.scheme and not url.path and unquote(url.fragment) in page.ids, link
    assert len(page.loaded) == len(small_results.list_figures()) > 4
    for file in page.loaded:
        assert (small_results.path / file).is_file()
    assert "<link" not in page.source and "<script src" not in page.source
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org)", page.source)


def test_at_demo_it_says_what_was_learnt_and_that_this_says_nothing_of_papers(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(ROOT)
    results = copy_results(tmp_path, "demo", ("recompose",))
    write_json(results.config, {"papers": ["recompose", "cat"], "scale": "demo"})
    table = results.table("recompose", "table-methods")
    columns = ["row", "column", "unit", "reproduced", "n_seeds", "status"]
    values = [
        ("Transformer", "JUMP in distribution", "percent", "93.5", "3", "measured"),
        ("best constant answer", "JUMP in distribution", "percent", "1.25", "", "computed"),
        ("Transformer", "JUMP", "percent", "2.75", "3", "measured"),
        ("best constant answer", "JUMP", "percent", "0.5", "", "computed"),
        ("Transformer", "COGS in distribution", "percent", "3.75", "1", "measured"),
    ]
    lines = [dict(zip(columns, line, strict=True)) for line in values]
    write_csv(table.csv, columns, lines)
    table.markdown.write_text("## Title\n\n| a | b |\n| --- | --- |\n| not run at demo | 1 |\n")
    assert main(["page", "--results", str(results.path)]) == 0
    words = Document(results.page).words
    assert "These numbers say nothing about the papers." in words
    assert "JUMP in distribution , percent JUMP , percent seeds Transformer 93.50 2.75 3" in words
    assert "best constant answer 1.25 0.50" in words
    caption = "Right answers to commands that no training had, by model: means over seeds JUMP in"
    assert caption in words
    assert "3.75" not in words  # next to no control
    assert "not run at demo" in words
    assert "The papers, by results/reference/small: of " in words
    assert re.search(r"workflow_scripts verify \w+/[a-z0-9-]+ Train", words)

    write_json(results.config, {"papers": ["recompose"], "scale": "demo"})  # no committed paper
    assert main(["page", "--results", str(results.path)]) == 0
    words = Document(results.page).words
    assert "results/reference/small" not in words
    assert "workflow_scripts verify" not in words
    assert "PAPER/CLAIM" not in words
    results.unfinished.write_text("{}")
    assert main(["page", "--results", str(results.path)]) == 0
    assert "Finished so far 0 trainings" in Document(results.page).words


def test_where_verdicts_are_given_it_begins_with_no_table_of_what_was_learnt(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    results = copy_results(tmp_path, "full", ("recompose", "cat"))
    table = results.table("recompose", "table-methods")
    columns = ["row", "column", "unit", "reproduced", "n_seeds", "status"]
    values = [
        ("Transformer", "JUMP in distribution", "percent", "93.5", "3", "measured"),
        ("best constant answer", "JUMP in distribution", "percent", "1.25", "", "computed"),
    ]
    write_csv(table.csv, columns, [dict(zip(columns, line, strict=True)) for line in values])
    assert main(["page", "--results", str(results.path)]) == 0
    page = Document(results.page)
    assert "say nothing about the papers" not in page.words
    assert "<caption>" not in page.source
    assert "93.50" not in page.words


def test_where_no_plan_is_for_the_scale_it_says_that_nothing_is_primary(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    results = copy_results(tmp_path, "demo", ("cat",))
    with open(results.claims.table, newline="") as stream:
        reader = csv.DictReader(stream)
        rows = [row | {"role": "exploratory"} for row in reader]
    write_csv(results.claims.table, reader.fieldnames, rows)
    assert main(["page", "--results", str(results.path)]) == 0
    words = Document(results.page).words
    said = "At demo no claim is primary: the analysis plans of this paper are for small."
    assert words.count(said) == 1
    assert re.search(r"\d+ claims and controls of ours", words)
    assert "exploratory" not in words.lower()


def test_results_of_no_complete_call_have_no_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["page", "--results", str(tmp_path)]) == 1
    assert "config.json" in capsys.readouterr().err


def test_code_stays_code_and_html_stays_html():
    text = "(an-id)=\n## Title\n\n```{raw} html\n<p>a &amp; b</p>\n```\n\n```sh\na < b\n```\n"
    assert render_html(text) == (
        '<p><span id="an-id"></span></p>\n<h2>Title</h2>\n<p>a &amp; b</p>\n'
        '<pre><code class="language-sh">a &lt; b\n</code></pre>\n'
    )


@pytest.mark.site
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium")
def test_a_browser_shows_it_light_and_dark_and_on_a_phone(small_results, tmp_path):
    with opened(tmp_path / "profile") as browser:
        for width, dark in ((1280, False), (1280, True), (390, False), (390, True)):
            browser.faults.clear(), browser.requested.clear()
            browser.open(f"file://{small_results.page}", width, dark)
            assert browser.faults == []
            assert all(url.startswith("file:") for url in browser.requested)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (int(re.findall(r"\d+", ground)[0]) < 100) == dark
            cut = (
                "[...document.querySelectorAll('pre')].filter((e) => e.scrollWidth > e.clientWidth)"
            )
            assert browser.evaluate(f"{cut}.length") == 0
            layout = "getComputedStyle(document.querySelector('table.claims tbody tr')).display"
            assert browser.evaluate(layout) == ("block" if width < 600 else "table-row")
            loaded = "[...document.images].every((image) => image.complete && image.naturalWidth)"
            assert browser.evaluate(loaded)

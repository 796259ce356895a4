"""Every claim has a page, links lead somewhere, nothing comes from elsewhere; a browser sorts,
filters and searches.
"""

import csv
import json
import re
import shutil
import subprocess
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse
from xml.etree import ElementTree

import pytest

from tests.reporting import reference
from tests.reporting.site.browser import CHROMIUM, PATIENCE_SECONDS, Page, opened
from tests.reporting.site.conftest import RESULTS, ROOT
from tests.reporting.site.parsed_page import Document
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_rows import format_effect, read_claim_rows
from workflow_scripts.reporting.site.drawings import Axis, draw_interval
from workflow_scripts.reporting.site.measured_claims import make_slug, read_measured_claims
from workflow_scripts.reporting.site.page_sources import write_sources

pytestmark = pytest.mark.site

FILTERS = {"q", "paper", "role", "kind", "verdict"}  # of the table of claims, in the address


@cache
def read(file: Path) -> Document:
    return Document(file)


def pages(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.html") if "_static" not in file.parts)


def claims_of(results: Path) -> list[dict[str, str]]:
    with open(results / "claims.csv", newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def page_of(folder: Path, row: dict[str, str]) -> Document:
    return read(folder / "claims" / f"{make_slug(row['paper'] + '-' + row['claim'])}.html")


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_every_claim_has_a_page_with_its_words_its_verdict_and_its_effect(small):
    rows = claims_of(RESULTS)
    assert len(list((small / "claims").glob("*.html"))) == len(rows) + 1 > 200
    for row, typed in zip(rows, read_claim_rows(RESULTS / "claims.csv"), strict=True):
        page = page_of(small, row)
        assert squeezed(row["statement"]) in page.words and f"{typed.state} at small" in page.words
        for text in ("quote", "caveat"):
            assert squeezed(row[text]) in page.words, row["claim"]
        if row["effect"]:
            assert format_effect(typed) in page.words
        for cell in row["left"].split(" + "):
            assert cell in page.words or "*" in cell


def test_a_primary_claim_without_all_its_seeds_shows_no_effect_of_ours(tmp_path):
    """But the paper's, and how many seeds there are, on its page, in the table and on the first
    page.
    """
    results, sources = tmp_path / "small", tmp_path / "sources"
    shutil.copytree(
        RESULTS, results, ignore=shutil.ignore_patterns("predictions", "figures", "tables")
    )
    lost = "scan-jump-x2,sq-transformer,sal-entropy-3,108,"
    lines = (results / "scores.csv").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(lost)]
    assert len(kept) < len(lines)
    (results / "scores.csv").write_text("".join(kept))
    reference.write_reference(results / "claims.csv", results)
    write_sources(load_catalogue(ROOT), results, "small", "", sources)
    incomplete = [
        row for row in claims_of(results) if row["role"] == "primary" and not row["effect"]
    ]
    (row,) = [row for row in incomplete if row["claim"] == "sal-success-addjump"]
    page = read(sources / f"claims/{make_slug(row['paper'] + '-' + row['claim'])}.md")
    assert "7 of 8 planned seeds are run" in page.words and "Ours at small no effect" in page.words
    assert (
        'class="seed' not in page.source.replace('class="seeds"', "")
        and 'class="dot planned"' not in page.source
        and "<polyline" not in page.source  # a curve of validation scores is an effect, too
    )
    assert all("7 of 8" in read(sources / name).words for name in ("index.md", "claims/index.md"))
    assert len(incomplete) > 1
    assert f"{len(incomplete)} of them are planned" in read(sources / "index.md").words


def test_the_counts_of_the_first_page_are_those_of_the_claims(small):
    text, rows = read(small / "index.html").words, claims_of(RESULTS)
    exploratory = [row for row in rows if (row["role"], row["kind"]) == ("exploratory", "paper")]
    assert f"{len(exploratory)} exploratory claims" in text and f"All {len(rows)} claims" in text
    for verdict in {row["verdict"] for row in exploratory}:
        assert f"{sum(row['verdict'] == verdict for row in exploratory)} {verdict}" in text


def test_the_small_tallies_of_the_papers_give_verdicts_in_words(small):
    """To readers who see no colours, and to those who hear the page."""
    page, rows = read(small / "index.html"), claims_of(RESULTS)
    for paper in ("carma", "cat", "lrf", "sq_transformer"):
        others = [
            row["verdict"] for row in rows if (row["paper"], row["role"]) == (paper, "exploratory")
        ]
        counts = {verdict: others.count(verdict) for verdict in others}
        (words,) = re.findall(rf"{len(others)} other claims and controls: ([\w, ]+)", page.words)
        for verdict, count in counts.items():
            assert f"{count} {verdict}" in words
            label = rf'aria-label="{count} {verdict}" href="claims/index.html\?paper={paper}&amp;'
            assert re.search(label, page.source)


def test_trainings_and_curves_are_those_of_the_claims_own_seeds(small):
    runs = {run["run"]: run for run in json.loads((RESULTS / "provenance.json").read_text())}
    for claim, seeds, others in (
        ("cat-mix-like-bert-few-sst2", (21, 23), (101,)),
        ("lrf-lrf-over-transformer-cter-instance", (101,), (61,)),
        ("cat-mix-over-bert-bird", (101, 109), (21, 25)),  # seeds of the pilots are not its own
    ):
        page = read(small / f"claims/{claim}.html")
        listed = {name for name in runs if f"<code>{name}</code>" in page.source}
        assert {int(name.rpartition("-")[2]) for name in listed} >= set(seeds)
        assert not any(
            name.endswith(f"seed-{seed}") for name in listed for seed in others
        ) and bool(listed) == bool(seeds)
        assert all(runs[name]["code_digest"][:9] in page.words for name in listed)
        assert ("'seeds=[21,22,23]'" in page.words) == (21 in seeds)
    assert (
        read(small / "claims/lrf-lrf-over-transformer-cter-instance.html").source.count("<polyline")
        >= 4
    )


def test_a_claim_page_says_what_is_compared_and_how_to_make_it_again(small):
    for file in sorted((small / "claims").glob("*.html")):
        words = read(file).words
        assert "left − right" not in words and "right − left" not in words, file
        if file.name != "index.html":
            assert "Metric " in words and "Unit of the effect " in words
    page = read(small / "claims/carma-accuracy-idm-six.html")
    assert "percent of outputs that are right as a whole ( exact_match )" in page.words
    assert "CARMA − FT, mean of 6 differences is above 0 points" in page.words
    assert "Effect by model" in page.words and page.words.count("Gemma-2B") >= 2
    for command in (
        ".venv/bin/python -m workflow_scripts verify carma/accuracy-idm-six",
        "./reproduce --claim carma/accuracy-idm-six --scale small",
    ):
        assert command in page.words
    elsewhere = read(small / "claims/carma-accuracy-idm-gpt2-l.html").words
    assert "--claim carma/accuracy-idm-gpt2-l --scale full" in elsewhere


def test_a_papers_page_folds_all_but_its_primary_claims(small):
    for paper in ("lrf", "cat"):
        source = read(small / f"papers/{paper}.html").source
        folded = "".join(re.findall(r"<details>.*?</details>", source, re.DOTALL))
        for row in claims_of(RESULTS):
            link = f'href="../claims/{make_slug(row["paper"] + "-" + row["claim"])}.html"'
            if row["paper"] == paper and link in source:
                assert (link in folded) == (row["role"] == "exploratory")
        assert folded


def test_every_claim_with_a_number_is_drawn_in_the_table_of_its_unit(small):
    source = read(small / "claims/index.html").source
    table_rows = re.findall(r"<tr\b.*?</tr>", source, re.DOTALL)
    for row in claims_of(RESULTS):
        link = f'{make_slug(row["paper"] + "-" + row["claim"])}.html"'
        (table_row,) = (text for text in table_rows if link in text)
        has_number = bool(row["effect"] or row["published_effect"])
        assert ('class="drawing"' in table_row) == has_number, row["claim"]


def test_a_papers_page_has_its_tables_figures_and_notes(small):
    for paper, kinds in {
        "carma": ("tables", "figures"),
        "cat": ("tables", "figures"),
        "recompose": ("tables",),
    }.items():
        page = read(small / f"papers/{paper}.html")
        for kind in kinds:
            names = [file.stem for file in (RESULTS / kind / paper).glob("*.csv")]
            assert names and all(make_slug(f"{paper}-{name}") in page.ids for name in names)
        assert "findings-and-decisions" in page.ids
    assert "72.78 ± 2.42" in read(small / "papers/cat.html").words


@pytest.mark.parametrize("scale", ["small", "demo"])
def test_pages_are_whole_and_every_link_and_anchor_exists(built, scale):
    if scale not in built:
        pytest.skip("no finished demo: run ./reproduce first")
    found = pages(built[scale])
    assert len(found) > 100
    wrong = [f"{file.name}: {fault}" for file in found for fault in read(file).faults]
    for file in found:
        page = read(file)
        wrong += [
            f"{file.name}: {text} is escaped twice"
            for text in re.findall(r"&amp;(?:amp|lt|gt|quot|#\d+);", page.source)
        ]
        wrong += [
            f"{file.name}: id {name} twice" for name in set(page.ids) if page.ids.count(name) > 1
        ]
        for link in page.links + page.loaded:
            url = urlparse(link)
            if url.scheme in ("http", "https", "mailto") and link in page.links:
                continue
            if url.path.endswith("index.html") and (
                unknown := parse_qs(url.query).keys() - FILTERS
            ):
                wrong.append(f"{file.name}: {link} filters by {unknown}")
            target = (file.parent / unquote(url.path)).resolve() if url.path else file
            if url.scheme or not target.is_file():
                wrong.append(f"{file.name}: {link}")
            elif (
                url.fragment
                and target.suffix == ".html"
                and unquote(url.fragment) not in read(target).ids
            ):
                wrong.append(f"{file.name}: no anchor {link}")
    assert wrong == []


def test_drawings_are_xml_with_a_title_and_no_value_that_is_no_number(small):
    count = 0
    for file in pages(small):
        for drawing in re.findall(r'<svg class="drawing.*?</svg>', read(file).source, re.DOTALL):
            root = ElementTree.fromstring(drawing)
            values = {value for element in root.iter() for value in element.attrib.values()}
            assert root.find("title").text and not any(
                re.search(r"\b(nan|inf|None)\b", value) for value in values
            )
            count += 1
    assert count > 400


def test_a_number_beyond_the_axis_is_an_arrow_at_its_end():
    axis, claims = Axis(-10, 10, 0, 100), read_measured_claims(load_catalogue(ROOT), RESULTS)
    claim = next(claim for claim in claims if claim.row.effect is not None)
    for low, effect, high, dots, arrows in (
        (-5, 0, 5, 1, []),
        (-5, 8, 21, 1, [100]),
        (15, 20, 25, 0, [100]),
        (-30, -20, 2, 0, [0]),
    ):
        row = replace(claim.row, ci_low=low, effect=effect, ci_high=high)
        drawn = draw_interval(axis, 9, replace(claim, row=row))
        assert drawn.count("<circle") == dots
        assert [int(x) for x in re.findall(r'<path d="M(\d+) [\d.]+l', drawn)] == arrows


def test_the_demo_says_on_every_page_that_it_says_nothing_of_the_papers(demo_site):
    for file in pages(demo_site):
        assert "They show that every step works, not what the papers say" in read(file).words, file
    verdicts = re.findall(
        r'<span class="chip ([\w-]+)', read(demo_site / "claims/index.html").source
    )
    assert set(verdicts) == {"no-verdict", "not-run"}
    assert (
        "no verdict at demo"
        in read(demo_site / "claims/sq-transformer-sq-over-transformer-addjump.html").words
    )


def test_a_folder_of_others_is_not_replaced(sphinx_python, tmp_path):
    (tmp_path / "mine.txt").touch()
    command = [sphinx_python, "-m", "workflow_scripts", "site", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "mine.txt" in done.stderr
    assert (tmp_path / "mine.txt").exists()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH: apt-get install chromium")
    with opened(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize(
    "name",
    ["index", "claims/index", "claims/cat-comp-over-mix-bird", "papers/carma", "docs/statistics"],
)
def test_a_browser_opens_a_page_from_its_file_and_loads_nothing_from_elsewhere(
    browser: Page, small, name
):
    for width, dark in ((1280, False), (390, True)):
        browser.faults.clear(), browser.requested.clear()
        browser.open(f"file://{small}/{name}.html", width, dark)
        assert browser.faults == [] and all(
            url.startswith(("file:", "data:")) for url in browser.requested
        )
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", ground)[0]) < 100) == dark


def test_the_table_of_claims_sorts_and_filters_and_keeps_the_filter_in_the_address(
    browser: Page, small
):
    rows = claims_of(RESULTS)
    reproduced = [row for row in rows if row["verdict"] == "reproduced"]
    shown = "[...document.querySelectorAll('#claims tbody tr')].filter((row) => !row.hidden)"
    browser.open(f"file://{small}/claims/index.html?verdict=reproduced")
    assert browser.evaluate(f"{shown}.length") == len(reproduced)
    change = "form = document.forms.filters; form.q.value = 'bird'; form.dispatchEvent(new Event('input'))"
    browser.evaluate(change)
    assert 0 < browser.evaluate(f"{shown}.length") < len(reproduced)
    assert browser.evaluate("location.search") == "?verdict=reproduced&q=bird"
    browser.evaluate("location.reload()")
    browser.open(f"file://{small}/claims/index.html?role=primary&paper=cat")
    expected = [row for row in rows if (row["role"], row["paper"]) == ("primary", "cat")]
    assert browser.evaluate(f"{shown}.length") == len(expected)

    browser.open(f"file://{small}/claims/index.html")
    effects = sorted((float(row["effect"]) for row in rows if row["effect"]), reverse=True)
    for order in (effects, effects[::-1]):
        browser.evaluate("document.querySelectorAll('#claims th')[4].click()")
        values = browser.evaluate(f"{shown}.map((row) => row.cells[4].dataset.value)")
        assert [float(value) for value in values if value] == order and not any(
            values[len(order) :]
        )


def test_the_search_finds_a_claim_and_the_switch_turns_the_page_dark(browser: Page, small):
    browser.open(f"file://{small}/search.html?q=sememe")
    end = time.monotonic() + PATIENCE_SECONDS
    while not browser.evaluate("document.querySelectorAll('#search-results li a').length"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert browser.evaluate("document.querySelector('#search-results').innerHTML.includes('cat')")
    browser.open(f"file://{small}/index.html")
    for theme in ("dark", "light"):
        browser.evaluate(
            f"document.querySelector('.theme-change-button[data-mode={theme}]').click()"
        )
        assert browser.evaluate("document.documentElement.dataset.theme") == theme

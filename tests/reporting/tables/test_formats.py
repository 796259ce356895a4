"""What a table says in Markdown, LaTeX and HTML, to the letter."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.display_schema import TableDisplay
from workflow_scripts.evaluation.published_numbers import Published
from workflow_scripts.evaluation.statistics import compare_independent
from workflow_scripts.reporting.tables import formats, layout
from workflow_scripts.reporting.tables.cells import COMPUTED, Cell
from workflow_scripts.reporting.tables.html_page import format_html_page
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.parsed_markdown import format_parsed_table
from workflow_scripts.reporting.tables.trainings import TrainedVariant

ROOT = Path(__file__).parents[3]
ROWS = [{"row": "Old_1", "group": "Previous"}]
ROWS += [{"row": row, "group": "Ours", "method": "m", "variant": "v"} for row in ("Plain", "New")]
COLUMNS = [
    {"column": name, "task": name, "metric": "exact_match", "unit": "percent"} for name in "JK"
]
ENTRY = {
    "kind": "table",
    "source": "Table 9",
    "title": "A & B_c",
    "group": "Main",
    "note": "50% of <all> $ues",
}
DISPLAY = TableDisplay.model_validate(
    ENTRY | {"baseline": "Plain", "rows": ROWS, "columns": COLUMNS}
)
PUBLISHED = Published("99.42±1.0", 99.42, 1.0, 5, "percent", "Table 9", 'says "SAL"')
MEASURED = Cell(
    "p",
    "d",
    "New",
    "J",
    "exact_match",
    "percent",
    2,
    "measured",
    "",
    PUBLISHED,
    seeds={1: 97.0, 2: 98.0, 3: 97.5},
    protocol="paper",
)
OURS = replace(MEASURED, published=None)
OLD = {"row": "Old_1", "status": "published only", "published": replace(PUBLISHED, printed="1.2")}
CELLS = [
    replace(MEASURED, seeds={}, protocol="", **OLD),
    replace(OURS, row="Plain", seeds={1: 40.0}, protocol="reduced"),
    MEASURED,
    replace(
        OURS,
        row="Plain",
        column="K",
        status="not run",
        note="not run at small",
        seeds={},
        protocol="",
    ),
    replace(OURS, column="K", protocol="reduced"),
]
TESTS = {
    "d/New/J/exact_match": ExampleTest(
        0.0001, 1.0, 7706, compare_independent([95.0, 96.0], [40.0, 41.0])
    )
}
NOTES = layout.explain_table(DISPLAY, CELLS, TESTS, "small")
GRID = layout.build_grid(DISPLAY, CELLS, TESTS)
# t(0.975, 2) = 4.3027 times 0.5 / sqrt(3): 97.5 ± 1.24


def test_two_seeds_have_no_interval_in_the_text_of_a_table():
    cells = [replace(MEASURED, seeds={1: 97.0, 2: 98.0})]
    assert layout.format_seed_interval(cells[0]) == "2 seeds"
    (note,) = (note for note in layout.explain_table(DISPLAY, cells, {}, "small") if "CSV" in note)
    assert note.startswith("Of 2 seeds no interval is shown")
    assert not any("CSV" in note for note in NOTES)


def test_markdown_to_the_letter():
    text = formats.format_markdown_table("Table 9: A & B_c", GRID, NOTES[:1])
    assert text == (
        "## Table 9: A & B\\_c\n"
        "\n"
        "|  | J, paper | J, ours | K |\n"
        "| --- | ---: | --- | --- |\n"
        "| **Previous** |  |  |  |\n"
        "| Old\\_1 | 1.2 |  |  |\n"
        "| **Ours** |  |  |  |\n"
        "| Plain |  | **40.00** (1 seed) | not run at small |\n"
        "| New | 99.42 ± 1.0 | **97.50 ± 0.50**† (3 seeds, 96.26 to 98.74; −1.92) "
        "| **97.50 ± 0.50** (3 seeds, 96.26 to 98.74) |\n"
        "\n"
        "- 50% of \\<all\\> $ues\n"
    )


@pytest.mark.parametrize(
    ("title", "caption"),
    [
        ("Table 2: GLUE (scale small)", "GLUE (the paper's table 2; scale small)"),
        (
            "Tables 4 and 5: CVs (IID) of: all (scale small, protocol reduced)",
            "CVs (IID) of: all (the paper's tables 4 and 5; scale small, protocol reduced)",
        ),
        ("Not in the paper: Parts (scale demo)", "Parts (not in the paper; scale demo)"),
        ("Audit of CARMA, table 4: CVs", "CVs (audit of CARMA, table 4)"),
        ("A title", "A title"),
    ],
)
def test_a_caption_says_last_which_table_of_the_paper_it_is(title, caption):
    # The document that has the table gives it another number.
    assert formats.make_caption(title) == caption


def test_a_table_can_be_referred_to_and_explains_grey():
    text = formats.format_latex_table("sq_transformer/table-long", "t", GRID, [])
    assert r"\label{tab:sq_transformer-table-long}" in text
    assert "Grey" not in text
    grey = replace(GRID.lines[-1].cells[0], protocol="reduced", published="1", status="measured")
    lines = [replace(GRID.lines[-1], cells=[grey, *GRID.lines[-1].cells[1:]])]
    text = formats.format_latex_table("cat/t", "t", replace(GRID, lines=lines), ["A note."])
    assert "Grey: a number of the paper next to ours of another protocol." in text


def test_latex_has_quotation_marks_that_open_and_close():
    assert formats.escape_latex('"a" and "b_c"') == r"``a'' and ``b\_c''"
    assert formats.escape_latex('5" wide') == '5" wide'


def test_latex_to_the_letter():
    text = formats.format_latex_table("cat/t", "A & B_c", GRID, NOTES[:1])
    assert text[text.index(r"\toprule") : text.index(r"\bottomrule")].splitlines() == [
        r"\toprule",
        r" & \multicolumn{2}{c}{J} & \multicolumn{1}{c}{K} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-4}",
        r" & paper & ours & ours \\",
        r"\midrule",
        r"\multicolumn{4}{l}{\textit{Previous}} \\",
        r"Old\_1 & 1.2 &  &  \\",
        r"\addlinespace",
        r"\multicolumn{4}{l}{\textit{Ours}} \\",
        r"Plain &  & \textbf{40.00} & \textit{not run at small} \\",
        r" &  & {\scriptsize 1 seed} &  \\",
        r"New & 99.42 $\pm$ 1.0 & \textbf{97.50 $\pm$ 0.50}$\dagger$ & \textbf{97.50 $\pm$ 0.50} \\",
        r" &  & {\scriptsize 3 seeds, 96.26 to 98.74; $-$1.92} & {\scriptsize 3 seeds, 96.26 to 98.74} \\",
    ]
    assert r"\caption{A \& B\_c}" in text
    assert r"50\% of \textless{}all\textgreater{} \$ues" in text


def test_our_numbers_without_seeds_are_bold_too():
    """As in HTML, and as the note below the table says."""
    cell = layout.CellText(status=COMPUTED, ours="41.13")
    grid = layout.Grid(["J"], [False], [layout.Line("", "constant answer", [cell])])
    markdown = formats.format_markdown_table("A", grid, [])
    assert "| constant answer | **41.13** |" in markdown
    latex = formats.format_latex_table("cat/t", "A", grid, [])
    assert r"constant answer & \textbf{41.13} \\" in latex
    assert format_parsed_table("cat/t", markdown) == latex


@pytest.mark.parametrize("label", ["[CLS]", "* of the text"])
def test_a_label_is_no_argument_of_the_row_before(label: str):
    """LaTeX reads a bracket or a star after the end of a row as one."""
    rows = [layout.Line("", name, [layout.CellText(ours="1")]) for name in ("first", label)]
    text = formats.format_latex_table("cat/t", "A", layout.Grid(["J"], [False], rows), [])
    assert f"{{}}{label} & " in text
    assert not re.search(r"\\\\\n *[\[*]", text)


def test_greek_letters_and_arrows_are_maths():
    assert formats.escape_latex("γ = 0.2, η → Ω") == r"$\gamma$ = 0.2, $\eta$ $\to$ $\Omega$"


def test_pdflatex_has_every_letter_of_the_committed_tables():
    """Its default encoding has those of western European languages."""
    files = list((ROOT / "results/reference").glob("*/tables/*/*.tex"))
    assert len(files) > 40
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert {letter for letter in text if ord(letter) > 0xFF} == set(), file


def test_in_a_table_of_two_protocols_each_published_number_is_grey_by_its_own():
    reduced = replace(MEASURED, row="Plain", protocol="reduced")
    cells = [replace(CELLS[0]), reduced, MEASURED]
    grid = layout.build_grid(DISPLAY, cells, {})
    title = "Table 9: A (scale small, protocol paper and reduced)"
    markdown = formats.format_markdown_table(title, grid, [])
    latex = formats.format_latex_table("cat/t", title, grid, [])
    assert latex.count(r"\textcolor{gray}") == 1
    assert format_parsed_table("cat/t", markdown) == latex


def test_latex_without_a_number_of_the_paper_has_one_row_of_heads():
    lines = [replace(line, cells=[line.cells[1]]) for line in GRID.lines]
    grid = replace(GRID, heads=GRID.heads[1:], published=[False], lines=lines)
    text = formats.format_latex_table("cat/t", "A", grid, [])
    assert text[text.index(r"\toprule") :].splitlines()[:3] == [
        r"\toprule",
        r" & \multicolumn{1}{c}{K} \\",
        r"\midrule",
    ]


class Cells(HTMLParser):
    """Texts of the cells of the first table, and all tags in order."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.closed = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.closed.append(tag)

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def html(cells=CELLS):
    run = TrainedVariant(
        variant_key=VariantKey("jump", "new", "a"),
        seeds=[1, 2],
        steps=4000,
        parameters=1_210_000,
        protocol="paper",
        precisions=frozenset({"fp32"}),
    )
    grid = layout.build_grid(DISPLAY, cells, TESTS)
    return format_html_page("A & B_c <b>", "above", grid, NOTES, [run], "./reproduce x.html")


def test_html_cells():
    found = Cells(html())
    assert found.open == []
    rows = [[" ".join(text.replace("\u200b", "").split()) for text in row] for row in found.rows]
    assert rows[:5] == [
        ["", "J", "K"],
        ["Previous"],
        ["Old_1", "paper 1.2", ""],
        ["Ours"],
        ["Plain", "40.001 seed", "not run at small"],
    ]
    measured = "97.50 ± 0.503 seeds, 96.26 to 98.74"
    compared = f"paper 99.42 ± 1.0 {measured.replace('0.503', '0.50†3')}−1.92 to the paper"
    assert rows[5] == ["New", compared, measured]
    assert rows[7] == ["jump/new/a", "1, 2", "paper", "4,000", "1,210,000"]


def test_html_is_self_contained_and_escaped():
    text = html()
    assert "<title>A &amp; B_c &lt;b&gt;</title>" in text
    assert "50% of &lt;all&gt; $ues" in text
    assert 'title="Table 9. says &#34;SAL&#34;"' in text
    assert not re.search(r"(src|href)=|@import|url\(", text)


def test_published_is_grey_beside_another_protocol_only():
    assert '<span class="paper"' in html()
    reduced = [replace(cell, protocol="reduced") if cell.seeds else cell for cell in CELLS]
    assert '<span class="paper grey"' in html(reduced)
    assert "to the paper" not in html(reduced)
    grid = layout.build_grid(DISPLAY, reduced, {})
    assert r"\textcolor{gray}{99.42 $\pm$ 1.0}" in formats.format_latex_table(
        "cat/t", "t", grid, []
    )
    assert (
        r"\textcolor"
        not in formats.format_latex_table("cat/t", "t", GRID, []).split(r"\toprule")[1]
    )


def test_made_up_data_say_so():
    made_up = [replace(cell, protocol="stand_in") if cell.seeds else cell for cell in CELLS]
    assert "<small>generated\u00a0data</small>" in html(made_up)
    assert any(
        "generated data" in note for note in layout.explain_table(DISPLAY, made_up, {}, "demo")
    )


def test_explanations_name_methods_and_assumptions():
    text = " ".join(NOTES)
    assert "Student's t over seeds, taken as independent draws from a normal distribution" in text
    assert "paired bootstrap over 7,706 examples" in text
    assert "α = 0.01" in text
    assert "Protocol reduced" in text and "Ours, always in bold, at scale small" in text
    nothing = layout.explain_table(DISPLAY, [CELLS[0]], {}, "small")
    assert (
        "Nothing of this table is run at scale small: it holds the published numbers only."
        in nothing
    )
    ours_alone = layout.explain_table(DISPLAY, [replace(CELLS[0], published=None)], {}, "small")
    assert "Nothing of this table is run at scale small." in ours_alone


def test_transposed_tables_group_their_columns():
    columns = [
        column.model_copy(update={"group": f"Group {column.column}"}) for column in DISPLAY.columns
    ]
    grid = layout.build_grid(
        DISPLAY.model_copy(update={"transposed": True, "columns": columns}), CELLS, TESTS
    )
    assert grid.heads == ["Old_1", "Plain", "New"]
    assert [(line.heading, line.label) for line in grid.lines] == [
        ("Group J", "J"),
        ("Group K", "K"),
    ]
    assert grid.published == [True, False, True]


def test_every_special_letter_is_escaped():
    for letter in "&%$#_{}~^\\<>|±−α†‡`":
        escaped = formats.escape_latex(f"a{letter}b")
        assert escaped.startswith(("a\\", "a$")) and escaped.isascii()
    for letter in "\\`*_[]|~<>":
        assert formats.escape_markdown(f"a{letter}b") == f"a\\{letter}b"


def test_numbers():
    given = [
        (1.005, 1, False),
        (-1.25, 2, False),
        (-0.001, 2, False),
        (0.4, 1, True),
        (-0.0, 0, True),
    ]
    assert [layout.format_number(*number) for number in given] == [
        "1.0",
        "−1.25",
        "0.00",
        "+0.4",
        "+0",
    ]


def test_units_are_said_once_each():
    others = [
        replace(MEASURED, metric=metric, unit="nats")
        for metric in ("attention_kl", "attention_kl_test")
    ]
    assert layout.describe_units(CELLS) == "Numbers in percent."
    said = "Units: percent (exact match), nats (attention kl, attention kl test)."
    assert layout.describe_units([*CELLS, *others]) == said
    correlation = replace(MEASURED, metric="pearson")
    said = "Numbers in percent; a correlation is 100 times r."
    assert layout.describe_units([*CELLS, correlation]) == said


def test_published_numbers_are_shown_without_tex():
    shown = {
        "99.42±1.0": "99.42 ± 1.0",
        "~1%": "about 1%",
        "< 5%": "< 5%",
        "+3.61%": "+3.61%",
    }
    cells = [replace(MEASURED, published=replace(PUBLISHED, printed=printed)) for printed in shown]
    assert [layout.format_published(cell) for cell in cells] == [*shown.values()]

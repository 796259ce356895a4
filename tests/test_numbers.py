"""Every measured number in README, docs/verdicts.md and the papers' NOTES comes from a committed file.

A paragraph, list item or table with measured numbers has a link to the CSV files that they come
from; a table's links are in the paragraph right before it. A link ending in `#paws+CAT_mix` reads
only the rows with a cell `paws` and a cell `CAT_mix`. Long files need that: of thousands of values
one rounds to any number.

A printed number is right if a value of these rows, or a mean or standard deviation over seeds,
rounds to it. A number without a sign may be that of a negative value ("6.3 points below").

No measurements are: sections whose heading begins with "Decisions" or "Rules", `code`, names (seed
21, table 2, GPT-2), years, the level of a "95% interval", and in text whole numbers below 10
without a unit. What a command writes between `<!-- begin ... -->` and `<!-- end ... -->` has a test
of its own.
"""

import csv
import re
import statistics
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/verdicts.md",
    *sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("papers/*/NOTES.md")),
]
MOST_VALUES = 1000  # of the rows that a link names
EXEMPT = ("Decisions", "Rules")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SEVERAL = r"\d+(?:[.,]\d+)*(?:(?:,? and|,? or|,| to) \d+(?:[.,]\d+)*)*"
NOT_MEASURED = [
    re.compile(r"`[^`]*`"),
    re.compile(
        r"\b(?:seed|update|table|figure|section|equation|decision|row|block|layer|commit|python)s? "
        + SEVERAL,
        re.I,
    ),
    re.compile(r"\bappendix \w\.?\d*", re.I),
    re.compile(r"\d[\d.]*% intervals?"),
    re.compile(r"(?<!\w)\d{4}-\d\d-\d\d(?!\w)"),
    re.compile(r"(?<![\w.,])(?:19|20)\d\d(?![\w%]|[.,]\d)"),
]
NUMBER = re.compile(r"(?<![\w.,-])([−-]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![.,]?\d)(?!-?\w)")
UNIT = re.compile(r"^\)?(?:%| ?±| percent| points?| hours?| minutes?| seconds?| times)")


def without_generated(text: str) -> str:
    return re.sub(r"<!-- begin .*?<!-- end [^>]*-->", "", text, flags=re.DOTALL)


def blocks(text: str) -> list[str]:
    """Paragraphs, list items and tables (with the paragraph before them) of the sections that are
    not exempt.
    """
    found, exempt, depth, joins = [], False, 0, False
    fenced = re.sub(r"^```.*?^```", "", without_generated(text), flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"\n\s*\n|\n(?=(?:- |\* |\d+\. |#))", fenced):
        heading = re.match(r"(#+) (.*)", part.strip())
        if heading:
            level = len(heading[1])
            if not exempt or level <= depth:
                exempt, depth = heading[2].startswith(EXEMPT), level
            # A table may follow right below its heading.
            part = part.strip().partition("\n")[2]
        if (
            exempt
            or not part.strip()
            or all(line.startswith("    ") for line in part.splitlines() if line.strip())
        ):
            joins = False
        elif part.lstrip().startswith("|") and joins:
            found[-1] += "\n" + part.strip()
        else:
            found.append(part.strip())
            joins = not part.lstrip().startswith("|")
    return found


def measured(block: str) -> list[str]:
    """The measured numbers of a block, as printed."""
    found = []
    for line in block.splitlines():
        line = re.sub(r"\]\([^)]*\)", "]", line)
        for pattern in NOT_MEASURED:
            line = pattern.sub(" _ ", line)
        for match in NUMBER.finditer(line):
            sign, whole, decimals = match.groups()
            unit = UNIT.match(line[match.end() :]) or re.search(r"± ?$", line[: match.start()])
            if (
                line.lstrip().startswith("|")
                or decimals
                or unit
                or int(whole.replace(",", "")) >= 10
            ):
                found.append(sign + whole + (decimals or ""))
    return found


def rows_of(link: str, document: Path) -> list[dict[str, str]]:
    """The rows that a link names. Fails for a missing file, for a part that names no row, and for
    too many values.
    """
    name, _, part = link.partition("#")
    file = document.parent / name
    assert file.is_file(), f"{document}: {name} does not exist"
    with open(file, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    rows = [row for row in rows if set(unquote(part).split("+")) - {""} <= set(row.values())]
    assert rows, f"{document}: no row of {name} has the cells {part}"
    return rows


def values_of(rows: list[dict[str, str]]) -> list[float]:
    """All numbers in the rows, and where they have seeds and values the mean and deviation over the
    seeds of a cell.
    """
    found, cells = [], defaultdict(list)
    for row in rows:
        for text in row.values():
            words = (word.strip(",;:()%") for word in (text or "").split())
            found += [
                float(word) for word in words if re.fullmatch(r"[-+]?\d+(\.\d+)?(e-?\d+)?", word)
            ]
        if row.get("seed") and row.get("value"):
            cells[
                tuple(value for key, value in row.items() if key not in ("seed", "value", "n"))
            ].append(row["value"])
    for texts in cells.values():
        over_seeds = [float(text) for text in texts]
        if len(over_seeds) > 1:
            found += [statistics.mean(over_seeds), statistics.stdev(over_seeds)]
    return found


def rounds_to(value: float, printed: str) -> bool:
    text = printed.replace("−", "-").replace(",", "")
    decimals = len(text.partition(".")[2])
    distance = abs(value - float(text)) if text.startswith("-") else abs(abs(value) - float(text))
    return distance <= 0.5 * 10**-decimals + 1e-9


def problems(text: str, document: Path) -> list[str]:
    """One line for each number of a document that no linked file has, and for each block without a
    link.
    """
    found = []
    for block in blocks(text):
        numbers = measured(block)
        if not numbers:
            continue
        start = " ".join(block.split())[:60]
        links = [link for link in LINK.findall(block) if link.partition("#")[0].endswith(".csv")]
        if not links:
            found.append(f"{start}: {', '.join(numbers)}, and no link to a CSV file")
            continue
        values = []
        for link in links:
            of_link = values_of(rows_of(link, document))
            if len(of_link) > MOST_VALUES:
                found.append(
                    f"{start}: {link} has {len(of_link)} values; name some of its rows (#cell+cell)"
                )
            values += of_link
        wrong = [
            printed for printed in numbers if not any(rounds_to(value, printed) for value in values)
        ]
        if wrong:
            found.append(f"{start}: {', '.join(wrong)} in none of {', '.join(links)}")
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_measured_number_is_in_a_committed_file(document):
    path = ROOT / document
    assert not problems(path.read_text(encoding="utf-8"), path)


@pytest.fixture
def document(tmp_path) -> Path:
    (tmp_path / "table.csv").write_text(
        "row,column,reproduced,std,n_seeds\nBERT,PAWS,71.676,2.091,5\nCAT,PAWS,74.93,1.12,5\nCAT,BiRD,-6.31,0.5,5\n"
    )
    (tmp_path / "scores.csv").write_text(
        "task,method,seed,value\npaws,bert,1,70\npaws,bert,2,74\npaws,cat,1,81.5\n"
        + "".join(f"other,bert,{seed},{seed / 7}\n" for seed in range(600))
    )
    return tmp_path / "NOTES.md"


@pytest.mark.parametrize(
    "text",
    [
        "CAT has 74.9 ± 1.1% of PAWS, BERT 71.7 ± 2.1 ([table](table.csv)).",
        "On BiRD it is 6.3 points below BERT, −6.3 ([table](table.csv)), by a 95% interval.",
        "Seeds 21, 22 and 23, table 17, `0.37`, in 2024, GPT-2, three times and 4 models.",
        "## Decisions: data\n\nThe rate is 0.37.\n\n### More\n\nAnd 99%.",
        "Percent ([table](table.csv)):\n\n| | PAWS |\n|---|---|\n| CAT | 74.9 ± 1.1 |",
        "BERT has 72 ± 2.8 ([scores](scores.csv#paws+bert)).",
        "<!-- begin claims -->\n\n99.9%\n\n<!-- end claims -->",
        "    ./reproduce --config seeds=0.37",
    ],
)
def test_numbers_of_a_linked_file_and_numbers_that_are_no_measurement_pass(document, text):
    assert problems(text, document) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("CAT has 74.8 ± 1.1% of PAWS ([table](table.csv)).", "74.8"),
        ("CAT has 75% ([table](table.csv)).\n\nBERT has 71.7.", "no link"),
        ("- CAT has 74.9 ([table](table.csv)).\n- BERT has 71.7%.", "no link"),
        ("CAT is at −74.9 ([table](table.csv)).", "−74.9"),
        ("The perplexity is 67 ([table](table.csv)).", "67"),
        ("There are 17,824 pairs ([table](table.csv)).", "17,824"),
        (
            "Percent ([table](table.csv)):\n\n| | PAWS |\n|---|---|\n| CAT | 74.9 |\n| BERT | 3 |",
            "3 in none",
        ),
        ("CAT has 81.5 ([scores](scores.csv#paws+bert)).", "81.5"),
        ("BERT has 72 ([scores](scores.csv)).", "name some of its rows"),
        ("## Decisions\n\n0.37\n\n## Findings\n\nIt has 0.37.", "no link"),
        ("## Findings\nIt has 0.37.", "no link"),
    ],
)
def test_a_number_that_no_linked_file_has_is_found(document, text, wrong):
    assert [line for line in problems(text, document) if wrong in line]


def test_a_link_to_a_missing_file_or_to_no_row_is_found(document):
    for link in ("other.csv", "table.csv#SST-2"):
        with pytest.raises(AssertionError):
            problems(f"CAT has 74.9 ([table]({link})).", document)


def test_the_last_and_best_accuracies_of_pilots_are_those_of_their_curves():
    rows = rows_of("pilots.csv", ROOT / "papers/sq_transformer/NOTES.md")
    for row in rows:
        curve = [float(text) for text in row["curve"].split()]
        expected = (curve[-1], max(curve)) if curve else ()
        assert tuple(float(row[key]) for key in ("last", "best") if row[key]) == expected, row[
            "pilot"
        ]
    assert len({row["pilot"] for row in rows}) == len(rows) > 10


def test_the_documents_have_numbers_to_check():
    """Else everything might be exempt."""
    for document in ("papers/carma/NOTES.md", "papers/cat/NOTES.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        assert sum(len(measured(block)) for block in blocks(text)) > 20

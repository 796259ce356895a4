r"""Tables as LaTeX, for `\input` under the packages booktabs and xcolor, and as GitHub Markdown."""

import re

from workflow_scripts.reporting.tables.cells import COMPUTED
from workflow_scripts.reporting.tables.layout import CellText, Grid, Line

SYMBOLS = {
    "\\": "backslash",
    "~": "asciitilde",
    "^": "asciicircum",
    "<": "less",
    ">": "greater",
    "|": "bar",
    "`": "asciigrave",
}
QUOTED = re.compile(r'"([^"]*)"')
QUOTATION_MARKS = {"“": "``", "”": "''"}
GREY = "Grey: a number of the paper next to ours of another protocol."
PARTS_OF_PAPER = ("table", "figure", "section", "appendix", "equation")  # how a place begins
MATHS = {"±": r"\pm", "−": "-", "×": r"\times", "†": r"\dagger", "‡": r"\ddagger"}
MATHS |= {"→": r"\to", "↔": r"\leftrightarrow", "≤": r"\leq", "≥": r"\geq", "≈": r"\approx"}
# Omicron has no command: it looks like an o.
GREEK_LETTERS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
GREEK_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
for letter, name in zip(GREEK_LETTERS, GREEK_NAMES.split(), strict=True):
    MATHS[letter] = rf"\{name}"
SPECIAL = {letter: f"\\{letter}" for letter in "{}&%$#_"}
SPECIAL |= {letter: f"${text}$" for letter, text in MATHS.items()}
SPECIAL |= QUOTATION_MARKS
SPECIAL |= {letter: rf"\text{name}{{}}" for letter, name in SYMBOLS.items()}


def escape_latex(text: str) -> str:
    """Escape text for LaTeX; straight quotation marks become pairs of opening and closing ones."""
    quoted = QUOTED.sub(r"“\1”", text)
    return quoted.translate(str.maketrans(SPECIAL))


def make_caption(title: str) -> str:
    """Return the title of a table with its place in the paper at the end.

    A document that has the table gives it a number of its own: `Table 2: GLUE (scale small)`
    becomes `GLUE (the paper's table 2; scale small)`.
    """
    place, colon, text = title.partition(": ")
    if not colon:
        return title
    place = place[0].lower() + place[1:]
    if place.startswith(PARTS_OF_PAPER):
        place = f"the paper's {place}"
    text, bracket, scale = text.rpartition(" (scale ")
    if not bracket:
        return f"{scale} ({place})"
    return f"{text} ({place}; scale {scale}"


def format_latex_table(name: str, title: str, grid: Grid, notes: list[str]) -> str:
    """Format a table environment with the paper's and our column under each head.

    name: `<paper>/<table>`, from which its label is made. notes: below it; grey is explained there.
    """
    heads = [""]
    rules = []
    subheads = [""]
    position = 2  # of the next column, counted from 1
    for head, published in zip(grid.heads, grid.published, strict=True):
        columns = ["ours"]
        if published:
            columns = ["paper", "ours"]
        end = position + len(columns) - 1
        heads.append(rf"\multicolumn{{{len(columns)}}}{{c}}{{{escape_latex(head)}}}")
        rules.append(rf"\cmidrule(lr){{{position}-{end}}}")
        subheads += columns
        position = end + 1
    width = position - 1
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage{xcolor}",
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{escape_latex(make_caption(title))}}}",
        rf"\label{{tab:{name.replace('/', '-')}}}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        _join_latex_row(heads),
    ]
    if any(grid.published):
        lines += [" ".join(rules), _join_latex_row(subheads)]
    lines.append(r"\midrule")
    for line in grid.lines:
        if line.heading:
            heading = rf"\textit{{{escape_latex(line.heading)}}}"
            if line is not grid.lines[0]:
                lines.append(r"\addlinespace")
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{{heading}}} \\")
        lines += _format_latex_row(line, grid.published)
    lines += [r"\bottomrule", r"\end{tabular}\medskip"]
    if notes and any(cell.published and cell.is_grey for line in grid.lines for cell in line.cells):
        notes = [GREY, *notes]
    lines += [rf"\par\raggedright\footnotesize {escape_latex(note)}" for note in notes]
    return "\n".join([*lines, r"\end{table}", ""])


def _join_latex_row(texts: list[str]) -> str:
    """Join the cells of a row, which are escaped, and end it."""
    row = " & ".join(texts) + r" \\"
    if row.startswith(("[", "*")):  # LaTeX would read it as an argument of the \\ before
        row = f"{{}}{row}"
    return row


def _format_latex_row(line: Line, published: list[bool]) -> list[str]:
    """Format the numbers of a row and, if there are any, seeds and differences in a line below."""
    numbers = [escape_latex(line.label)]
    details = [""]
    for cell, has_published in zip(line.cells, published, strict=True):
        if has_published:
            numbers.append(_format_latex_published(cell))
            details.append("")
        numbers.append(_format_latex_score(cell))
        text = escape_latex("; ".join(filter(None, (cell.seeds, cell.difference))))
        details.append(rf"{{\scriptsize {text}}}" if text else "")
    if not any(details):
        return [_join_latex_row(numbers)]
    return [_join_latex_row(numbers), _join_latex_row(details)]


def _format_latex_published(cell: CellText) -> str:
    """Format the published number, in grey if ours has another protocol."""
    text = escape_latex(cell.published)
    if text and cell.is_grey:
        return rf"\textcolor{{gray}}{{{text}}}"
    return text


def _format_latex_score(cell: CellText) -> str:
    """Format our number in bold; the reason why there is none in italics."""
    text = escape_latex(cell.ours)
    if cell.is_measured or cell.status == COMPUTED:
        return rf"\textbf{{{text}}}{escape_latex(cell.marker)}"
    return rf"\textit{{{text}}}" if text else ""


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, inside table cells too."""
    return re.sub(r"([\\`*_\[\]|~<>])", r"\\\1", text)


def format_markdown_table(title: str, grid: Grid, notes: list[str]) -> str:
    """Format a heading, the table with the paper's and our column under each head, and notes."""
    heads = [""]
    bars = ["---"]
    for head, published in zip(grid.heads, grid.published, strict=True):
        if published:
            heads += [escape_markdown(f"{head}, paper"), escape_markdown(f"{head}, ours")]
            bars += ["---:", "---"]
        else:
            heads.append(escape_markdown(head))
            bars.append("---")
    lines = [
        f"## {escape_markdown(title)}",
        "",
        _join_markdown_row(heads),
        _join_markdown_row(bars),
    ]
    for line in grid.lines:
        if line.heading:
            empty = [""] * (len(heads) - 1)
            lines.append(_join_markdown_row([f"**{escape_markdown(line.heading)}**", *empty]))
        texts = [escape_markdown(line.label)]
        for cell, published in zip(line.cells, grid.published, strict=True):
            if published:
                texts.append(escape_markdown(cell.published))
            texts.append(_format_markdown_score(cell))
        lines.append(_join_markdown_row(texts))
    lines.append("")
    lines += [f"- {escape_markdown(note)}" for note in notes]
    return "\n".join([*lines, ""])


def _format_markdown_score(cell: CellText) -> str:
    """Format our number with seeds and difference, or the reason why there is none."""
    if cell.status == COMPUTED:
        return f"**{cell.ours}**"
    if not cell.is_measured:
        return escape_markdown(cell.ours)
    details = "; ".join(filter(None, (cell.seeds, cell.difference)))
    return f"**{cell.ours}**{cell.marker} ({details})"


def _join_markdown_row(texts: list[str]) -> str:
    """Join the cells of a row, which are escaped."""
    return f"| {' | '.join(texts)} |"

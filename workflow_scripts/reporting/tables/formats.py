r"""Tables as LaTeX, for `\input` under the packages booktabs and xcolor, and as GitHub Markdown."""

import re

from workflow_scripts.reporting.tables.cells import COMPUTED
from workflow_scripts.reporting.tables.layout import CellText, Grid

SYMBOLS = {
    "\\": "backslash",
    "~": "asciitilde",
    "^": "asciicircum",
    "<": "less",
    ">": "greater",
    "|": "bar",
}
SYMBOLS |= {"`": "asciigrave"}
MATHS = {"±": r"\pm", "−": "-", "α": r"\alpha", "†": r"\dagger", "‡": r"\ddagger"}
SPECIAL = {letter: f"\\{letter}" for letter in "{}&%$#_"} | {
    letter: f"${text}$" for letter, text in MATHS.items()
}
SPECIAL |= {letter: rf"\text{name}{{}}" for letter, name in SYMBOLS.items()}


def escape_latex(text: str) -> str:
    """Escape text for LaTeX."""
    return text.translate(str.maketrans(SPECIAL))


def format_latex_table(title: str, grid: Grid, notes: list[str]) -> str:
    """Format a table environment with the paper's and our column under each head."""
    widths = [2 if published else 1 for published in grid.published]
    heads, rules, subheads, position = [""], [], [""], 2
    for head, width in zip(grid.heads, widths, strict=True):
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(head)}}}")
        rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        subheads += ["paper", "ours"] if width == 2 else ["ours"]
        position += width
    body = []
    for line in grid.lines:
        if line.heading:
            heading = rf"\multicolumn{{{position - 1}}}{{l}}{{\textit{{{escape_latex(line.heading)}}}}} \\"
            body += [r"\addlinespace", heading]
        texts, below = [escape_latex(line.label)], [""]
        for cell, published in zip(line.cells, grid.published, strict=True):
            if published:
                text = escape_latex(cell.published)
                texts.append(rf"\textcolor{{gray}}{{{text}}}" if text and cell.is_grey else text)
                below.append("")
            texts.append(_format_latex_score(cell))
            details = escape_latex("; ".join(filter(None, (cell.seeds, cell.difference))))
            below.append(rf"{{\scriptsize {details}}}" if details else "")
        body.append(" & ".join(texts) + r" \\")
        body += [" & ".join(below) + r" \\"] if any(below) else []
    top = [r"% needs \usepackage{booktabs} and \usepackage{xcolor}", r"\begin{table}"]
    top += [r"\centering\small\setlength{\tabcolsep}{4pt}", rf"\caption{{{escape_latex(title)}}}"]
    top += [
        rf"\begin{{tabular}}{{l{'r' * (position - 2)}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        " ".join(rules),
    ]
    top += [" & ".join(subheads) + r" \\"] if any(grid.published) else []
    below = [rf"\par\raggedright\footnotesize {escape_latex(note)}" for note in notes]
    end = [r"\bottomrule", r"\end{tabular}\medskip", *below, r"\end{table}", ""]
    return "\n".join([*top, r"\midrule", *body, *end])


def _format_latex_score(cell: CellText) -> str:
    text = escape_latex(cell.ours)
    if cell.is_measured:
        return rf"\textbf{{{text}}}{escape_latex(cell.marker)}"
    return rf"\textit{{{text}}}" if text and cell.status != COMPUTED else text


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, inside table cells too."""
    return re.sub(r"([\\`*_\[\]|~<>])", r"\\\1", text)


def format_markdown_table(title: str, grid: Grid, notes: list[str]) -> str:
    """Format a heading, the table with the paper's and our column under each head, and the notes."""
    heads, bars = [""], ["---"]
    for head, published in zip(grid.heads, grid.published, strict=True):
        heads += [
            escape_markdown(text)
            for text in ([f"{head}, paper", f"{head}, ours"] if published else [head])
        ]
        bars += ["---:", "---"] if published else ["---"]
    lines = [f"## {escape_markdown(title)}", "", _join(heads), _join(bars)]
    for line in grid.lines:
        if line.heading:
            lines.append(_join([f"**{escape_markdown(line.heading)}**"] + [""] * (len(heads) - 1)))
        texts = [escape_markdown(line.label)]
        for cell, published in zip(line.cells, grid.published, strict=True):
            texts += [escape_markdown(cell.published)] * published + [_format_markdown_score(cell)]
        lines.append(_join(texts))
    return "\n".join([*lines, "", *(f"- {escape_markdown(note)}" for note in notes), ""])


def _format_markdown_score(cell: CellText) -> str:
    if not cell.is_measured:
        return escape_markdown(cell.ours)
    return (
        f"**{cell.ours}**{cell.marker} ({'; '.join(filter(None, (cell.seeds, cell.difference)))})"
    )


def _join(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"

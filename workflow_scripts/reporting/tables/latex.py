"""Tables as LaTeX, for `\\input` under the packages booktabs and xcolor."""

from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, Cell
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.layout import (
    MARKERS,
    Grid,
    format_difference,
    format_published,
    format_reproduced,
    format_seeds,
)

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "α": r"$\alpha$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "`": r"\textasciigrave{}",
}


def escape_latex(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def format_latex_table(title: str, grid: Grid, tests: dict[str, ExampleTest], notes: list[str]) -> str:
    """Format a table environment with the paper's and our column under each head."""
    widths = [2 if published else 1 for published in grid.published]
    heads, rules, subheads, position = [""], [], [""], 2
    for head, width in zip(grid.heads, widths, strict=True):
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(head)}}}")
        rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        subheads += ["paper", "ours"] if width == 2 else ["ours"]
        position += width
    body, group = [], ""
    for line in grid.lines:
        if line.group != group:
            group = line.group
            body += [r"\addlinespace", rf"\multicolumn{{{position - 1}}}{{l}}{{\textit{{{escape_latex(group)}}}}} \\"]
        texts, below = [escape_latex(line.label)], [""]
        for cell, published in zip(line.cells, grid.published, strict=True):
            texts += [_published(cell)] if published else []
            texts.append(_ours(cell, tests))
            below += [""] * published + [_below(cell)]
        body.append(" & ".join(texts) + r" \\")
        body += [" & ".join(below) + r" \\"] if any(below) else []
    return "\n".join(
        [
            "% needs \\usepackage{booktabs} and \\usepackage{xcolor}",
            r"\begin{table}",
            r"\centering\small\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{escape_latex(title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (position - 2)}}}",
            r"\toprule",
            " & ".join(heads) + r" \\",
            " ".join(rules),
            *([" & ".join(subheads) + r" \\"] if any(grid.published) else []),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}\medskip",
            *(rf"\par\raggedright\footnotesize {escape_latex(note)}" for note in notes),
            r"\end{table}",
            "",
        ]
    )


def _published(cell: Cell | None) -> str:
    text = escape_latex(format_published(cell))
    # Grey where no difference may be formed: beside measurements of another protocol than the paper's.
    return rf"\textcolor{{gray}}{{{text}}}" if text and cell.status == MEASURED and cell.protocol != "paper" else text


def _ours(cell: Cell | None, tests: dict[str, ExampleTest]) -> str:
    text = escape_latex(format_reproduced(cell))
    if cell is not None and cell.status == COMPUTED:
        return text
    if cell is None or cell.status != MEASURED:
        return rf"\textit{{{text}}}" if text else ""
    marker = escape_latex(MARKERS[tests[cell.key].outcome]) if cell.key in tests else ""
    return rf"\textbf{{{text}}}{marker}"


def _below(cell: Cell | None) -> str:
    """Format the small second line of a measured cell: seeds, interval and difference."""
    if cell is None or cell.status != MEASURED:
        return ""
    difference = f"; {escape_latex(format_difference(cell))}" if cell.difference is not None else ""
    return rf"{{\scriptsize {escape_latex(format_seeds(cell))}{difference}}}"

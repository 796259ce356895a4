"""Options of the figure sememes_of_words."""

from workflow_scripts.common.validation import StrictModel


class Options(StrictModel):
    """The words whose sememes are shown."""

    words: list[str] = []  # some of those of the analysis

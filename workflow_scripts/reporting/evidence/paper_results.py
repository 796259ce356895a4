"""The results that the tables, figures and claims of a paper are made of."""

from dataclasses import dataclass

from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.provenance.unfinished import NOTHING, Unfinished


@dataclass(frozen=True)
class PaperResults:
    """The results of a paper at a scale.

    paper: its key, the folder in papers/. folder: with runs/ and analyses/ of the scale.
    unfinished: the files that are not there because jobs failed; runs without them are left out.
    """

    catalogue: Catalogue
    paper: str
    scale: str
    folder: ScaleFolder
    unfinished: Unfinished = NOTHING

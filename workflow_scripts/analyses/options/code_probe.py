"""Options of the analysis code_probe."""

from pydantic import PositiveInt

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The tokens that the probe is fitted on and predicts."""

    split: SplitName = "test"  # whose tokens are predicted
    sentences: PositiveInt = 20000  # distinct ones of each set that are tagged, at most

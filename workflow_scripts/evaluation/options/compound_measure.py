"""Options of the measure compound_measure."""

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.evaluation.measures import MeasureOptions


class Options(StrictModel, MeasureOptions):
    """It has no keys."""

    def list_metrics(self) -> list[str]:
        """Return the names of the metrics."""
        return ["cter_instance", "cter_aggregate"]

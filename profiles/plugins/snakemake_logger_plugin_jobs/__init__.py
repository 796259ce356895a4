"""Print a dry run as data: a line of JSON for each job that Snakemake would run.

`why` and the tests read it.
"""

import json
import logging
import sys

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent


class LogHandler(LogHandlerBase):
    """Receives every record of Snakemake's logger."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print a job, or an error."""
        if getattr(record, "event", None) == LogEvent.JOB_INFO:
            job = {
                "rule": record.rule_name,
                "wildcards": dict(record.wildcards),
                "input": [str(file) for file in record.input],
                "output": [str(file) for file in record.output],
                "command": record.shellcmd,
                "reason": record.reason,
            }
            print(json.dumps(job), flush=True)
        elif record.levelno >= logging.ERROR:
            print(record.getMessage(), file=sys.stderr, flush=True)

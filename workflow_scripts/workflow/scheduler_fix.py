"""Limit Snakemake's scheduler to one timer at a time.

After each search for jobs to start, Snakemake 9.27 sets a timer that triggers the next search a
second later, even if other timers are running, and it waits for all timers at its end. Each job
that finishes while others wait for a core therefore adds one search per second and one thread until
the end: a tenth of a core after 160 jobs, and thousands of threads in a run of all papers.
"""

import threading
from typing import Any

from snakemake.scheduling.job_scheduler import JobScheduler


def limit_scheduler_timers() -> None:
    """Let schedulers of this process set no second timer, and none that outlives the process."""

    def set_timer(scheduler: Any, delay: int) -> None:
        if getattr(scheduler, "timer", None):
            return

        def look() -> None:
            scheduler.timer = None  # before the search, which may set the next timer
            scheduler._open_jobs.release()

        scheduler.timer = threading.Timer(delay, look)
        scheduler.timer.daemon = True
        scheduler.timer.start()

    setattr(JobScheduler, "_schedule_reevalutation", set_timer)  # noqa: B010 (a method of another type)

"""Snakemake's scheduler with one timer at a time.

After each look for jobs to start, Snakemake 9.27 sets a timer that makes it look again a second later, whatever other
timers there are, and waits for all of them at its end. So each job that finishes while others wait for a core adds one
look a second and one thread, to the end of the call: a tenth of a core after 160 jobs, and thousands of threads in a
run of all papers.
"""

import threading

from snakemake.scheduling.job_scheduler import JobScheduler


def limit_scheduler_timers() -> None:
    """Make the schedulers of this process set no timer while one is running, and none that outlives the process."""

    def schedule(scheduler: JobScheduler, delay: float) -> None:
        if getattr(scheduler, "timer", None):
            return

        def look() -> None:
            scheduler.timer = None  # first: the look that follows may want the next one
            scheduler._open_jobs.release()

        scheduler.timer = threading.Timer(delay, look)
        scheduler.timer.daemon = True
        scheduler.timer.start()

    JobScheduler._schedule_reevalutation = schedule

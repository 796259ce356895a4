"""Time that a job on a run asks a cluster for, in minutes.

It follows from step times and from earlier jobs where they are known, else from the scale's hours.
"""

import math
from collections.abc import Iterable

from workflow_scripts.provenance.run_job_spec import JobResources

# Of the estimated time: cards differ by so much, and a job that is too short starts again.
MARGIN = 3
# The least that a job asks for: to start, read a large model and write results takes minutes.
MIN_MINUTES = 10
# Of the scale's hours, for scoring whose time is unknown. After a time limit it asks for twice as
# much, so that the third attempt of an evaluation has the hours of the scale.
SHARES_OF_HOURS = {"train": 1, "search": 1, "evaluate": 1 / 4, "intervene": 1 / 2}
# Rules whose jobs save their state before the time limit, `save_seconds` earlier.
SAVING_RULES = ("train", "search")


def find_job_minutes(rule: str, resources: JobResources, seconds: float | None) -> int:
    """Return the minutes that the first attempt of a job on a run asks for.

    seconds: how long it is estimated to take; None if that is unknown.
    """
    limit = 60 * resources.hours
    if seconds is None:
        return max(math.ceil(SHARES_OF_HOURS[rule] * limit), MIN_MINUTES)
    needed = MARGIN * seconds
    least = 60 * MIN_MINUTES
    if rule in SAVING_RULES:
        needed += resources.save_seconds
        least += resources.save_seconds
    return min(math.ceil(max(needed, least) / 60), limit)


def format_time_limits(minutes: Iterable[int]) -> str:
    """Format the shortest and the longest time of jobs, such as `0.38-24 h` or `41-45 min`."""
    times = list(minutes)
    shortest, longest = min(times), max(times)
    unit, texts = "min", [str(shortest), str(longest)]
    if longest >= 60:
        unit, texts = "h", [f"{shortest / 60:.2g}", f"{longest / 60:.2g}"]
    return f"{'-'.join(dict.fromkeys(texts))} {unit}"

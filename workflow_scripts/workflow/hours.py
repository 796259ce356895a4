"""Training hours of runs, from the recorded step times."""

from workflow_scripts.config.loading import Catalogue
from workflow_scripts.config.run_specs import resolve_run
from workflow_scripts.config.runs import Run
from workflow_scripts.workflow.step_times import read_step_times, seconds_per_step


def hours(catalogue: Catalogue, runs: list[Run], scale: str, precision: str, device: str) -> tuple[float, int]:
    """Estimate the training hours on one CPU thread, or on one device of another kind.

    The second value is the number of runs without a recorded step time; the estimate leaves them out.
    """
    times, total, unknown = read_step_times(), 0.0, 0
    for run in runs:
        seconds = seconds_per_step(times, run, scale, device)
        training = resolve_run(catalogue, run, scale, precision)["training"]
        steps = (training["torch_threads"] if device == "cpu" else 1) * training["max_steps"]
        if seconds is not None:
            total += seconds * steps / 3600
        elif steps:
            unknown += 1
    return total, unknown


def hours_text(total: float, unknown: int) -> str:
    """Format the return value of `hours`, such as `12 + 3 runs that nobody has timed`."""
    if not unknown:
        return rounded(total)
    known = f"{rounded(total)} + " if total else ""
    return f"{known}{unknown} run{'s' * (unknown > 1)} that nobody has timed"


def rounded(number: float) -> str:
    """Format a number with two significant digits."""
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"

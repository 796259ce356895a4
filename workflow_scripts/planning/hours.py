"""Training hours of runs, by the recorded times of a step."""

from dataclasses import replace

from workflow_scripts.catalogue.loading import Catalogue
from workflow_scripts.catalogue.run_specs import resolve_run
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.planning.sizes import run_step_seconds
from workflow_scripts.planning.step_times import read_step_times, seconds_per_step


def hours(catalogue: Catalogue, runs: list[Run], scale: str, precision: str, device: str) -> tuple[float, float, int]:
    """Training hours of a CPU thread, or of one device of another kind: (by recorded step times, at most, by sizes, for
    the other runs, number of these)."""
    times, total, at_most, reckoned = read_step_times(), 0.0, 0.0, 0
    for run in runs:
        seconds = seconds_per_step(times, run, scale, device)
        training = resolve_run(catalogue, run, scale, precision)["training"]
        spent = (training["torch_threads"] if device == "cpu" else 1) * training["max_steps"] / 3600
        if seconds is not None:
            total += seconds * spent
        elif spent:
            at_most += run_step_seconds(replace(run, seed=0), scale, device) * spent
            reckoned += 1
    return total, at_most, reckoned


def hours_text(total: float, at_most: float, reckoned: int) -> str:
    """`12 + at most 30 (3 runs)` of what `hours` returns."""
    if not reckoned:
        return rounded(total)
    known = f"{rounded(total)} + " if total else ""
    return f"{known}at most {rounded(at_most)} ({reckoned} run{'s' * (reckoned > 1)})"


def rounded(number: float) -> str:
    """To two digits."""
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"

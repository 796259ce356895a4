"""Learning-rate schedules: functions of the step alone, so that resuming needs no scheduler state."""


def inverse_square_root(step: int, peak: float, warmup_steps: int) -> float:
    """Learning rate of update `step` (from 1): linear to `peak` at `warmup_steps`, then peak * sqrt(warmup / step).

    With warmup_steps = 0 the decay starts at the first update.
    """
    warmup = max(warmup_steps, 1)
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def linear(step: int, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Learning rate of update `step` (from 1): linear to `peak` at `warmup_steps`, then linear to 0 after `max_steps`.

    As in Hugging Face's schedule, it is the rate after k updates: with a warm-up the first update has rate 0. A run
    that is no longer than its warm-up never reaches the peak.
    """
    done = step - 1
    if done < warmup_steps:
        return peak * done / warmup_steps
    return peak * (max_steps - done) / max(max_steps - warmup_steps, 1)


def constant(step: int, peak: float, warmup_steps: int) -> float:
    """Learning rate of update `step` (from 1): linear to `peak` at `warmup_steps`, then `peak`."""
    return peak * min(step / max(warmup_steps, 1), 1.0)


def constant_then_linear(step: int, peak: float, warmup_steps: int, decay_steps: int, max_steps: int) -> float:
    """Learning rate of update `step` (from 1): as `constant`, then linear to 0 over the last `decay_steps` updates.

    The last update still has the rate peak / decay_steps: 0 is reached after it.
    """
    return constant(step, peak, warmup_steps) * min((max_steps - step + 1) / decay_steps, 1.0)

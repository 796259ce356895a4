"""Learning-rate schedules: functions of the step alone, so that resuming needs no scheduler state."""


def inverse_square_root(step: int, peak: float, warmup_steps: int) -> float:
    """Learning rate of update `step` (from 1): linear to `peak` at `warmup_steps`, then peak * sqrt(warmup / step).

    With warmup_steps = 0 the decay starts at the first update.
    """
    warmup = max(warmup_steps, 1)
    return peak * min(step / warmup, (warmup / step) ** 0.5)

"""The learning rate as a function of the step alone, so that resuming needs no scheduler state."""

from workflow_scripts.tasks.settings import Training


def compute_learning_rate(settings: Training, step: int) -> float:
    """Return the learning rate of update `step`, from 1.

    It rises linearly to the peak during the warm-up. Then `inverse_square_root` is peak * sqrt(warm-up / step), and
    `linear` falls to 0 after `max_steps`, `constant_then_linear` only during the last `decay_steps`. As in Hugging
    Face's schedule, `linear` has the rate 0 at the first update of a warm-up; the others reach the peak at its last.
    """
    peak, warmup, max_steps = settings.learning_rate, settings.warmup, settings.max_steps
    if settings.schedule == "linear":
        done = step - 1
        return peak * done / warmup if done < warmup else peak * (max_steps - done) / max(max_steps - warmup, 1)
    warmup = max(warmup, 1)
    if settings.schedule == "inverse_square_root":
        return peak * min(step / warmup, (warmup / step) ** 0.5)
    rate = peak * min(step / warmup, 1.0)
    if settings.schedule == "constant_then_linear":
        rate *= min((max_steps - step + 1) / settings.decay_steps, 1.0)
    return rate

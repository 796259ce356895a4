"""What comes of a claim: its measurement, and a verdict or the reason why it has none."""

from dataclasses import dataclass, replace

from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation.statistics import Effect, SuccessRates
from workflow_scripts.reporting.claims.comparison import Comparison, Side

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
INCONCLUSIVE = "inconclusive"
# Measured, but a control fails, data are generated, or seeds of the plan are missing.
NO_VERDICT = "no verdict"
NOT_RUN = "not run"  # not measured
MEANINGS = {
    REPRODUCED: "the whole interval is beyond what is claimed; "
    "of exploratory claims q is at most 0.05, too",
    NOT_REPRODUCED: "the whole interval is below the smallest effect of interest, "
    "or below the margin if there is none",
    INCONCLUSIVE: "neither of the two",
    NO_VERDICT: "planned seeds are missing, a control fails or is not measured, "
    "or the data are generated",
    NOT_RUN: "this scale does not measure it",
}
VERDICTS = tuple(MEANINGS)
DECIDED = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)  # by all planned seeds


@dataclass(frozen=True)
class MeasuredEffect:
    """The effect of a claim over seeds.

    interval: by the quantile of the claim; None for a single seed, and for few seeds of one value.
    p_value: of the bound that the interval is beyond, None if it is not tested. q_value: among the
    exploratory claims of the paper.
    """

    effect: Effect
    interval: tuple[float, float] | None
    p_value: float | None = None
    q_value: float | None = None

    @property
    def n_seeds(self) -> int:
        """The seeds of the side with fewer of them."""
        return self.effect.n


@dataclass(frozen=True)
class MeasuredSuccess:
    """How many seeds of each side are above the threshold of the analysis plan."""

    rates: SuccessRates
    threshold: float

    @property
    def n_seeds(self) -> int:
        """The seeds of the side with fewer of them."""
        return min(self.rates.left_n, self.rates.right_n)


Measurement = MeasuredEffect | MeasuredSuccess


@dataclass(frozen=True)
class Outcome:
    """A judged claim.

    measurement: None if a side was not measured, or if planned seeds are missing. protocol: the
    worst of its cells. n_seeds: how many seeds the side with fewer of them has; None if that is not
    known. reason: why it has this verdict or none.
    """

    comparison: Comparison
    verdict: str
    reason: str
    measurement: Measurement | None = None
    protocol: str = ""
    n_seeds: int | None = None

    @property
    def claim(self) -> Claim:
        """The claim as claims.yaml has it."""
        return self.comparison.claim

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides with their seeds."""
        return self.comparison.sides

    @property
    def role(self) -> str:
        """Whether the claim is primary or exploratory."""
        return self.comparison.role


@dataclass(frozen=True)
class OpenClaim:
    """A measured claim that nothing keeps from a verdict yet."""

    comparison: Comparison
    measurement: Measurement
    protocol: str

    @property
    def exploratory_p_value(self) -> float | None:
        """The p value of an exploratory claim; None of a primary one, and of a single seed."""
        if self.comparison.planned is None and isinstance(self.measurement, MeasuredEffect):
            return self.measurement.p_value
        return None

    def add_q_value(self, q_value: float) -> "OpenClaim":
        """Return the claim with the q value of its effect."""
        if not isinstance(self.measurement, MeasuredEffect):
            raise TypeError(f"{self.comparison.claim.claim} has no p value")
        return replace(self, measurement=replace(self.measurement, q_value=q_value))

    def decide(self, verdict: str, reason: str) -> Outcome:
        """Return the outcome with this verdict."""
        return Outcome(
            self.comparison,
            verdict,
            reason,
            measurement=self.measurement,
            protocol=self.protocol,
            n_seeds=self.measurement.n_seeds,
        )

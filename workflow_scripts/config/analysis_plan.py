"""Analysis plans of a paper: primary claims, the seeds that judge them, and limits of a verdict.

A plan is committed before its seeds are run, and never changed after that. The first of a paper is
analysis_plan.yaml, later ones are plans/<date>-<name>.yaml. A claim belongs to at most one of them.
"""

import datetime
import math
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from workflow_scripts.common.validation import Seeds, StrictModel
from workflow_scripts.config.display_schema import NULLS, Measure, list_cells
from workflow_scripts.training.settings import Precision

FIRST_PLAN = "analysis_plan.yaml"  # in the folder of a paper
LATER_PLANS = "plans"  # a folder in the folder of a paper
# Two-sided level that the primary claims of a paper share: at most 5% of any wrong verdict.
ANY_WRONG = 0.10
FEWEST_SEEDS = 4
# Of the published effect: what the smallest effect of interest may be above the margin.
SHARES = (0.25, 0.5, 1.0)
# One-sided level of the limit of a spread by which later plans count their seeds.
UPPER_LIMIT = 0.8
# Plans written until this day may have their quantile: they are registered with it and are not
# changed.
LAST_DAY_OF_WRITTEN_QUANTILES = datetime.date(2026, 11, 23)


def _require_enough_seeds(seeds: list[int]) -> list[int]:
    if len(seeds) < FEWEST_SEEDS:
        raise ValueError(f"{len(seeds)} seeds; a primary claim needs at least {FEWEST_SEEDS}")
    return seeds


PlannedSeeds = Annotated[Seeds, AfterValidator(_require_enough_seeds)]


class Requirement(StrictModel):
    """A cell whose mean over the planned seeds must be at least `at_least`."""

    cell: str
    at_least: float


class Control(StrictModel):
    """Conditions for a verdict on a primary claim, checked on the means over the planned seeds."""

    floor: float | str | None = Field(
        default=None,
        description="Chance, the constant answer or 0, as a number or a cell: the lower limit of "
        "the better side must exceed it by smallest - margin.",
    )
    perfect: float | None = Field(
        default=None,
        description="The best possible score of a claim about a difference: the worse side must "
        "be at least half of the published effect away.",
    )
    requires: list[Requirement] = []
    same_sign: str | None = Field(
        default=None,
        description="Claim whose effect must have the same sign for the verdict `reproduced`.",
    )

    @property
    def cells(self) -> list[str]:
        """The cells that the conditions are about."""
        return [*list_cells(self.floor), *(requirement.cell for requirement in self.requires)]


class Pilots(StrictModel):
    """Earlier seeds. `plan --power` uses their spread; they are never pooled with planned seeds."""

    seeds: Seeds
    source: str = Field(description="File of the repository that has their scores.")


class Spread(StrictModel):
    """Standard deviation over seeds, in the claim's unit: of the effect (paired) or of a side."""

    sd: float = Field(gt=0)
    freedom: int = Field(gt=0, description="Degrees of freedom that it was pooled from.")
    paired: bool

    def compute_upper_limit(self) -> float:
        """Return the one-sided upper 80% limit of the standard deviation.

        It follows from the chi-squared distribution.
        """
        from scipy.special import gammaincinv

        # The quantile of chi-squared.
        lower_quantile = 2 * float(gammaincinv(self.freedom / 2, 1 - UPPER_LIMIT))
        return self.sd * math.sqrt(self.freedom / lower_quantile)


class PrimaryClaim(StrictModel):
    """A claim of the paper's abstract. Numbers are in the unit and direction of the claim."""

    claim: str
    measure: Measure | None = Field(
        None,
        description="How the sides are compared. Plans of plans/ always name it, and "
        "analysis_plan.yaml if it is `superiority`; any other may be in claims.yaml instead. It is "
        "never in both.",
    )
    seeds: PlannedSeeds | None = Field(None, description="Where they differ from the plan's.")
    base_rate: float | None = Field(
        None,
        gt=0,
        lt=100,
        description="Percent that the pilots of the baseline have; margin and smallest are for it.",
    )
    published: float | None = Field(
        None, gt=0, description="The paper's effect; none for a claim of no loss."
    )
    margin: float = Field(
        0.0,
        description="What the effect must exceed; not above 0 for `no_gain`. In claims.yaml it is "
        "not repeated.",
    )
    smallest: float = Field(
        description="Smallest effect of interest; equal to the margin for a claim of no loss."
    )
    threshold: float | None = Field(
        None,
        description="A seed above it has succeeded. Of measure success_rate, whose margin and "
        "smallest are shares; the reason of a verdict by measure superiority says how many seeds "
        "are above it.",
    )
    control: Control = Control()
    spread: Spread | None = Field(
        None, description="Of the pilots; none for success_rate and superiority."
    )

    @property
    def null(self) -> float:
        """The effect if both sides are alike."""
        if self.measure is None:
            return 0.0
        return NULLS.get(self.measure, 0.0)

    @property
    def success_threshold(self) -> float | None:
        """The threshold of a claim that compares shares of seeds above it; None of all others."""
        if self.measure == "superiority":
            return None
        return self.threshold

    @property
    def counts_successes(self) -> bool:
        """Whether it compares shares of seeds above the threshold."""
        return self.success_threshold is not None

    @model_validator(mode="after")
    def _smallest_is_a_share_of_the_published_effect(self) -> Self:
        if self.counts_successes:
            if not 0 < self.smallest <= 1:
                rule = "with a threshold it is a share, above 0 and at most 1"
                raise ValueError(f"smallest is {self.smallest}; {rule}")
            return self
        if self.measure == "superiority" and not self.null <= self.margin < self.smallest <= 1:
            rule = "of measure superiority both are chances, and 0.5 <= margin < smallest <= 1"
            raise ValueError(f"margin is {self.margin} and smallest {self.smallest}; {rule}")
        if self.published is None:
            if self.smallest != self.margin:
                rule = f"without a published effect it is the margin, {self.margin}"
                raise ValueError(f"smallest is {self.smallest}; {rule}")
        elif self.published <= self.null:
            rule = f"the effect of equal sides is {self.null}; write what is above it"
            raise ValueError(f"published is {self.published}, but {rule}")
        else:
            share = (self.smallest - self.margin) / (self.published - self.null)
            if min(abs(share - allowed) for allowed in SHARES) >= 0.01:
                shares = ", ".join(map(str, SHARES))
                rule = f"it must be margin + q x published, q one of {shares}"
                raise ValueError(f"smallest is {self.smallest}; {rule}")
        if self.spread is None and self.measure != "superiority":
            advice = "of a claim of superiority, `measure: superiority` is here, not in claims.yaml"
            raise ValueError(f"spread is missing; add that of the pilots ({advice})")
        return self


class AnalysisPlan(StrictModel):
    """What all analysis plans have."""

    scale: str
    written: datetime.date
    seeds: PlannedSeeds
    pilots: Pilots
    precision: Precision = Field(
        "fp32", description="Of its trainings; in another one there is no verdict."
    )
    draws: int | None = Field(
        None, gt=1, description="Draws of an intervention over which each score is averaged."
    )
    primary: list[PrimaryClaim] = Field(min_length=1)
    secondary: list[str] = Field(
        [], description="Claims named in advance that have no verdict in the headline."
    )
    stop: str

    @model_validator(mode="after")
    def _claims_and_seeds_are_told_apart(self) -> Self:
        names: set[str] = set()
        for name in (*(entry.claim for entry in self.primary), *self.secondary):
            if name in names:
                raise ValueError(f"claim {name} is named twice")
            names.add(name)
        planned_seeds: set[int] = set()
        for entry in self.primary:
            planned_seeds |= set(self.select_seeds(entry))
        planned_pilots = planned_seeds.intersection(self.pilots.seeds)
        if planned_pilots:
            raise ValueError(f"seed {min(planned_pilots)} is a pilot; planned seeds are fresh")
        return self

    @model_validator(mode="after")
    def _both_verdicts_are_possible(self) -> Self:
        """Check that claims on success rates can get either verdict.

        With no success among n seeds, a success rate of 1 - (1 - quantile)^(1/n) is still possible.
        All of n seeds against none of n happens by chance in 1 of (2n choose n) cases.
        """
        luck = 1 - self.limit_quantile
        for entry in self.primary:
            if not entry.counts_successes:
                continue
            seeds = len(self.select_seeds(entry))
            possible_share = 1 - luck ** (1 / seeds)
            if possible_share >= entry.smallest:
                problem = f"where none of {seeds} seeds succeeds the share can still be"
                raise ValueError(
                    f"smallest of {entry.claim} is {entry.smallest}; {problem} {possible_share:.2f}"
                    ", so it could never be not reproduced: raise it, or name more seeds"
                )
            if 1 / math.comb(2 * seeds, seeds) > luck:
                problem = "with so few it could never be reproduced"
                raise ValueError(f"{entry.claim} has {seeds} seeds; {problem}: name more")
        return self

    @property
    def limit_quantile(self) -> float:
        """1 - 0.05 / K for K primary claims.

        It is the quantile of Student's t for both limits of an interval.
        """
        return 1 - ANY_WRONG / 2 / len(self.primary)

    def select_seeds(self, entry: PrimaryClaim) -> list[int]:
        """Return the seeds that judge a primary claim."""
        return entry.seeds or self.seeds


class FirstPlan(AnalysisPlan):
    """An analysis_plan.yaml."""

    quantile: float | None = Field(
        None,
        gt=0,
        lt=1,
        description=f"In plans written until {LAST_DAY_OF_WRITTEN_QUANTILES} alone: 1 - 0.05 / K "
        "for K primary claims, which may be rounded. Later plans leave it out: it follows.",
    )

    @property
    def limit_quantile(self) -> float:
        """The quantile as it is written, if it is, else as it follows."""
        if self.quantile is None:
            return super().limit_quantile
        return self.quantile

    @model_validator(mode="after")
    def _written_quantile_is_old_and_right(self) -> Self:
        if self.quantile is None:
            return self
        if self.written > LAST_DAY_OF_WRITTEN_QUANTILES:
            follows = "it follows from the number of primary claims"
            raise ValueError(f"quantile is {self.quantile}; leave it out, {follows}")
        quantile = super().limit_quantile
        if abs(self.quantile - quantile) > 1e-4:
            follows = f"with {len(self.primary)} primary claims it is {quantile:.4f}"
            raise ValueError(f"quantile is {self.quantile}; {follows}")
        return self


class LaterPlan(AnalysisPlan):
    """A file of plans/. Its intervals have the level 1 - 0.10 / K."""

    unit: str = Field(
        description="What differs between two seeds: the first weights, the order of the data, or "
        "both."
    )
    device: Literal["cpu", "cuda"] = Field(
        description="Of its trainings; on another one there is no verdict."
    )
    seen: str = Field(description="Which results were known when the plan was written.")

    @model_validator(mode="after")
    def _entries_say_their_scale(self) -> Self:
        for entry in self.primary:
            if entry.measure is None:
                raise ValueError(f"{entry.claim} has no measure; a plan of plans/ names it")
            if entry.measure in ("difference", "log_odds") and entry.base_rate is None:
                rule = "a plan of plans/ names what the baseline has"
                raise ValueError(f"{entry.claim} has no base_rate; {rule}")
            if entry.measure != "difference" and entry.control.perfect is not None:
                rule = "only a difference is in the unit of the best possible score"
                raise ValueError(f"{entry.claim} of measure {entry.measure} has perfect; {rule}")
        return self


@dataclass(frozen=True)
class PlannedClaim:
    """A primary claim and the plan that names it.

    file: of the plan, in the folder of the paper.
    """

    file: str
    plan: AnalysisPlan
    entry: PrimaryClaim

    @property
    def name(self) -> str:
        """The claim of claims.yaml."""
        return self.entry.claim

    @property
    def seeds(self) -> list[int]:
        """The seeds that judge it."""
        return self.plan.select_seeds(self.entry)

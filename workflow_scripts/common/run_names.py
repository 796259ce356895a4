"""The names of variants, `<task>/<method>/<variant>`, and of runs, `<variant's name>/seed-<n>`.

Functions take and return these types. A name is parsed where it comes in (command line, wildcards,
files), and formatted with `str` where it leaves. Named tuples are sorted, hashed and unpacked fast.
"""

from typing import NamedTuple, Self

from workflow_scripts.common.errors import UserError

# In the place of a task whose weights are scored: those that a training begins with.
START = "start"


class VariantKey(NamedTuple):
    """A variant of a method on a task.

    The variant `<variant>@<task>` is not trained: it has the weights that the variant has after its
    training on that task, `<variant>@start` those that it would begin with.
    """

    task: str
    method: str
    variant: str

    def __str__(self) -> str:
        return "/".join(self)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `<task>/<method>/<variant>`. Raises UserError for another form."""
        parts = text.strip("/").split("/")
        if len(parts) != 3:
            raise UserError(f"variant '{text}' is not of the form <task>/<method>/<variant>")
        return cls(*parts)

    @property
    def weights(self) -> str | None:
        """Whose weights are scored, a task or START; None for a training."""
        return split_weights(self.variant)[1]

    @property
    def trained_variant(self) -> "VariantKey":
        """The variant that is trained on this task."""
        return self._replace(variant=split_weights(self.variant)[0])

    def make_run(self, seed: int) -> "Run":
        """Return the run with a seed."""
        return Run(*self, seed)


class Run(NamedTuple):
    """One training, the same for every paper that requests it, or one scoring of given weights.

    `VariantKey` says which variants have given weights.
    """

    task: str
    method: str
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}/{self.method}/{self.variant}/{format_seed(self.seed)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `<task>/<method>/<variant>/seed-<n>`. Raises UserError for another form."""
        parts = text.strip("/").split("/")
        if len(parts) != 4 or not _is_seed(parts[3]):
            form = "<task>/<method>/<variant>/seed-<n>"
            raise UserError(f"run '{text}' is not of the form {form}")
        task, method, variant, seed = parts
        return cls(task, method, variant, parse_seed(seed))

    @property
    def variant_key(self) -> VariantKey:
        """The name without the seed."""
        return VariantKey(self.task, self.method, self.variant)

    @property
    def weights(self) -> str | None:
        """Whose weights are scored, a task or START; None for a training."""
        return split_weights(self.variant)[1]

    @property
    def training(self) -> "Run":
        """The training of the variant on this task."""
        return self._replace(variant=split_weights(self.variant)[0])


def format_seed(seed: int) -> str:
    """Return the last part of the name of a run, `seed-<n>`."""
    return f"seed-{seed}"


def parse_seed(part: str) -> int:
    """Parse the last part of the name of a run."""
    return int(part.removeprefix("seed-"))


def _is_seed(part: str) -> bool:
    """Whether a part of the name of a run is `seed-<n>`."""
    return part.startswith("seed-") and part.removeprefix("seed-").isdecimal()


def name_weights(variant: str, weights: str | None) -> str:
    """Return `<variant>@<weights>`, or the variant alone if it has no given weights."""
    if not weights:
        return variant
    return f"{variant}@{weights}"


def split_weights(variant: str) -> tuple[str, str | None]:
    """Return the name of the trained variant, and whose weights it has or None.

    It undoes `name_weights`.
    """
    trained_variant, at, weights = variant.partition("@")
    return trained_variant, weights if at else None

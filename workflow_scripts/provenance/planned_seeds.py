"""The planned seeds of variants, by the analysis plans of all papers."""

from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.catalogue import Catalogue, store_with_catalogue


@store_with_catalogue
def collect_planned_seeds(
    catalogue: Catalogue, paper: str, scale: str
) -> dict[VariantKey, list[int]]:
    """Return variant -> its planned seeds at a scale, for the displays of a paper.

    They are those of the paper's own plans, or of another paper's if its own name no claim about
    the variant.
    """
    planned_seeds: dict[VariantKey, list[int]] = {}
    # The paper's own plans come last, so that they count.
    papers = catalogue.papers
    for key in sorted(papers, key=lambda key: key == paper):
        planned_seeds |= papers[key].list_planned_seeds(scale)
    return planned_seeds

"""Amazon reviews (He and McAuley 2016) with one to five stars: trained on music, tested on films.

Splits: `train`, `valid`, `in_distribution` (music), `test` (films). If there are too few reviews,
as in the files of the 5-core set, `in_distribution` gets the remaining ones.
"""

import json
from pathlib import Path

from pydantic import PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    UpstreamOptions,
    build_limited_table,
    shuffle_rows,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.archives import read_lines

MUSIC = "amazon/reviews_Digital_Music_5.json.gz"
VIDEO = "amazon/reviews_Amazon_Instant_Video_5.json.gz"
LABELS = ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]


class Options(UpstreamOptions):
    """Numbers of reviews, sampled without replacement."""

    train: PositiveInt = 50000
    valid: PositiveInt = 10000
    test: PositiveInt = 5000  # of each of `in_distribution` and `test`

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return False

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "in_distribution", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits; with fewer test reviews than were asked for, the protocol is reduced.

    Raises UserError for a missing or malformed source, or if too few reviews are left for testing.
    """
    music = read_amazon_reviews(settings.find_source(sources, MUSIC))
    music = shuffle_rows(music, settings.seed, MUSIC)
    video = read_amazon_reviews(settings.find_source(sources, VIDEO))
    video = shuffle_rows(video, settings.seed, VIDEO)
    held_out = settings.train + settings.valid
    if len(music) <= held_out:
        raise settings.make_error(
            f"keys 'train' and 'valid' ask for {held_out} reviews; {MUSIC} has {len(music)}"
        )
    splits = {
        "train": music[: settings.train],
        "valid": music[settings.train : held_out],
        "in_distribution": music[held_out : held_out + settings.test],
        "test": video[: settings.test],
    }
    notes = [f"drawn with seed {settings.seed}"]
    protocol = "paper"
    for name in ("in_distribution", "test"):
        size = len(splits[name])
        if size < settings.test:
            notes.append(f"{name}: {size} reviews, {settings.test} were asked for")
            protocol = "reduced"
    return build_limited_table(splits, LABELS, settings, notes, protocol)


def read_amazon_reviews(path: Path) -> list[Sentence]:
    """Read the non-empty reviews of a gzipped JSON Lines file; classes are stars less one.

    Raises UserError with the line that is not a review.
    """
    category = path.name.split(".")[0]
    reviews = []
    for line, content in read_lines(path):
        try:
            review = json.loads(content)
            stars = float(review["overall"])
            if stars not in (1, 2, 3, 4, 5):
                raise ValueError(f"overall is {stars:g}")
            text = review["reviewText"]
            if text.strip():
                reviews.append(Sentence(f"{category}-{line}", text, None, stars - 1))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"not a review with reviewText and overall ({error})"
            raise UserError(f"{path}:{line}: {problem}; fetch it again") from error
    return reviews

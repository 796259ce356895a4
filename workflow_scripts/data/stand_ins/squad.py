"""Made-up paragraphs in the format of SQuAD: who lives where and keeps what; in the adversarial files with one more
sentence, on somebody else."""

import json
import random
from pathlib import Path
from typing import Any

ROWS = {"train-v1.1.json": 120, "dev-v1.1.json": 40, "AddSent.json": 40, "AddOneSent.json": 40}
PEOPLE = ["Anna", "Boris", "Clara", "David", "Edith", "Frank"]
PLACES = ["Athens", "Bergen", "Cairo", "Dublin", "Essen"]
ANIMALS = ["a goat", "an otter", "a camel", "a hen", "two geese"]


def write(folder: Path, seed: int) -> dict[str, Path]:
    """Write the four files, and return them by the names of the sources."""
    rng = random.Random(f"{seed}/squad stand-in")
    written = {}
    for name, rows in ROWS.items():
        made = [paragraph(rng, f"{name.split('.')[0]}-{row}", name.startswith("Add")) for row in range(rows)]
        written[f"squad/{name}"] = folder / name
        written[f"squad/{name}"].write_text(json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": made}]}))
    return written


def paragraph(rng: random.Random, key: str, misled: bool) -> dict[str, Any]:
    """Two sentences, three where `misled`, and two questions on the first person."""
    one, other, third = rng.sample(PEOPLE, 3)
    place, animal = rng.choice(PLACES), rng.choice(ANIMALS)
    context = f"{one} lives in {place} and keeps {animal}. {other} is a friend."
    if misled:
        context += f" {third} lives in {rng.choice(PLACES)} and keeps {rng.choice(ANIMALS)}."
    return {
        "context": context,
        "qas": [
            {
                "id": f"{key}-{number}",
                "question": question,
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            for number, (question, answer) in enumerate(
                [(f"Where does {one} live?", place), (f"What does {one} keep?", animal)]
            )
        ],
    }

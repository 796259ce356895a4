"""Stand-in data for SQuAD: paragraphs about where people live and what they keep.

The adversarial files also have variants with a sentence on somebody else: two of each paragraph in
AddSent, one in AddOneSent. As in upstream, a variant's key is the key of the unchanged question,
`-` and a name.
"""

import json
import random
from pathlib import Path
from typing import Any

FILES = {  # file: (name in keys, paragraphs, variants of each)
    "train-v1.1.json": ("train", 120, 0),
    "dev-v1.1.json": ("dev", 40, 0),
    "AddSent.json": ("AddSent", 40, 2),
    "AddOneSent.json": ("AddOneSent", 40, 1),
}
PEOPLE = ["Anna", "Boris", "Clara", "David", "Edith", "Frank"]
PLACES = ["Athens", "Bergen", "Cairo", "Dublin", "Essen"]
ANIMALS = ["a goat", "an otter", "a camel", "a hen", "two geese"]


def write_squad(folder: Path, seed: int) -> dict[str, Path]:
    """Write the four files. Returns their paths by source name."""
    rng = random.Random(f"{seed}/squad stand-in")
    for file, (name, rows, variants) in FILES.items():
        made = [
            found
            for row in range(rows)
            for found in generate_paragraphs(rng, f"{name}{row}", variants)
        ]
        (folder / file).write_text(
            json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": made}]})
        )
    return {f"squad/{file}": folder / file for file in FILES}


def generate_paragraphs(rng: random.Random, key: str, variants: int) -> list[dict[str, Any]]:
    """Generate two sentences with two questions on the first person, and `variants` copies with a third sentence."""
    one, other, third = rng.sample(PEOPLE, 3)
    place, animal = rng.choice(PLACES), rng.choice(ANIMALS)
    plain = f"{one} lives in {place} and keeps {animal}. {other} is a friend."
    contexts = {"": plain}
    for number in range(variants):
        contexts[f"-turk{number}"] = (
            f"{plain} {third} lives in {rng.choice(PLACES)} and keeps {rng.choice(ANIMALS)}."
        )
    asked = [(f"Where does {one} live?", place), (f"What does {one} keep?", animal)]
    paragraphs = []
    for name, context in contexts.items():
        questions = []
        for number, (question, answer) in enumerate(asked):
            answers = [{"text": answer, "answer_start": context.index(answer)}]
            questions.append(
                {"id": f"{key}q{number}{name}", "question": question, "answers": answers}
            )
        paragraphs.append({"context": context, "qas": questions})
    return paragraphs

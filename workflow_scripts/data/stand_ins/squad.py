"""Stand-in data for SQuAD: paragraphs about where people live and what they keep.

The adversarial files also have variants with a sentence on somebody else: two of each paragraph in
AddSent, one in AddOneSent. As in upstream, a variant's key is the key of the unchanged question,
`-` and a name.
"""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple


class SquadFile(NamedTuple):
    """What a file has: its name in keys, and the numbers of paragraphs and of variants of each."""

    name: str
    paragraphs: int
    variants: int


FILES = {
    "train-v1.1.json": SquadFile("train", 120, 0),
    "dev-v1.1.json": SquadFile("dev", 40, 0),
    "AddSent.json": SquadFile("AddSent", 40, 2),
    "AddOneSent.json": SquadFile("AddOneSent", 40, 1),
}
PEOPLE = ["Anna", "Boris", "Clara", "David", "Edith", "Frank"]
PLACES = ["Athens", "Bergen", "Cairo", "Dublin", "Essen"]
ANIMALS = ["a goat", "an otter", "a camel", "a hen", "two geese"]


def write_squad(folder: Path, seed: int) -> dict[str, Path]:
    """Write the four files. Returns their paths by source name."""
    rng = random.Random(f"{seed}/squad stand-in")
    for file, layout in FILES.items():
        paragraphs = []
        for row in range(layout.paragraphs):
            paragraphs += generate_paragraphs(rng, f"{layout.name}{row}", layout.variants)
        content = {"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}
        (folder / file).write_text(json.dumps(content), encoding="utf-8")
    return {f"squad/{file}": folder / file for file in FILES}


def generate_paragraphs(rng: random.Random, key: str, variants: int) -> list[dict[str, Any]]:
    """Generate two sentences with two questions on the first person.

    They are followed by `variants` copies with a third sentence.
    """
    person, friend, stranger = rng.sample(PEOPLE, 3)
    place = rng.choice(PLACES)
    animal = rng.choice(ANIMALS)
    plain = f"{person} lives in {place} and keeps {animal}. {friend} is a friend."
    contexts = {"": plain}
    for number in range(variants):
        elsewhere = rng.choice(PLACES)
        other_animal = rng.choice(ANIMALS)
        misleading = f"{stranger} lives in {elsewhere} and keeps {other_animal}."
        contexts[f"-turk{number}"] = f"{plain} {misleading}"
    answers = {f"Where does {person} live?": place, f"What does {person} keep?": animal}
    paragraphs = []
    for name, context in contexts.items():
        questions = []
        for number, (question, answer) in enumerate(answers.items()):
            span = {"text": answer, "answer_start": context.index(answer)}
            questions.append(
                {"id": f"{key}q{number}{name}", "question": question, "answers": [span]}
            )
        paragraphs.append({"context": context, "qas": questions})
    return paragraphs

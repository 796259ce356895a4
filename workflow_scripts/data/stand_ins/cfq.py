"""Stand-in data for CFQ: questions of a small grammar about films, in an archive like upstream's.

As in the MCD splits, training and test have the same words but other compounds: the pairs of a role
and a verb in `HELD_OUT` occur only in validation and test questions.
"""

import json
import random
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.data.sources.task_sources import write_tar


@dataclass(frozen=True)
class Role:
    """A role in films: its verb after `Did`, past participle, and predicates in queries.

    of_person: of a person, who has this role in a film. of_film: the inverse, of a film.
    """

    verb: str
    participle: str
    of_person: str
    of_film: str


ROLES = {  # by noun
    "director": Role("direct", "directed", "film.director.film", "film.film.directed_by"),
    "editor": Role("edit", "edited", "film.editor.film", "film.film.edited_by"),
    "writer": Role("write", "written", "film.writer.film", "film.film.written_by"),
    "producer": Role(
        "produce",
        "produced",
        "film.producer.film|ns:film.production_company.films",
        "film.film.produced_by|ns:film.film.production_companies",
    ),
}
NATIONALITIES = {"Spanish": "m.06mkj", "Canadian": "m.0d060g", "Dutch": "m.059j2"}
MARRIED = (
    "people.person.spouse_s/ns:people.marriage.spouse|"
    "ns:fictional_universe.fictional_character.married_to/"
    "ns:fictional_universe.marriage_of_fictional_characters.spouses"
)
HELD_OUT = {
    ("director", "edit"),
    ("editor", "write"),
    ("writer", "produce"),
    ("producer", "direct"),
}
ITEMS = 1500
ROWS = {"trainIdxs": 800, "devIdxs": 60, "testIdxs": 120}


class GeneratedQuestion(NamedTuple):
    """An item of dataset.json, and whether it has a pair of role and verb in `HELD_OUT`."""

    item: dict[str, Any]
    is_held_out: bool


def write_cfq(folder: Path, seed: int) -> dict[str, Path]:
    """Write an archive of `cfq/dataset.json` and `cfq/splits/mcd1.json` to `mcd3.json`.

    Each split is an independent sample. Returns the path of the archive by its source name.
    """
    rng = random.Random(f"{seed}/cfq stand-in")
    questions: dict[str, GeneratedQuestion] = {}
    while len(questions) < ITEMS:
        question = generate_question(rng)
        questions.setdefault(question.item["questionPatternModEntities"], question)
    files: dict[str, Any] = {"cfq/dataset.json": [each.item for each in questions.values()]}
    held_out_positions = []
    usual_positions = []
    for position, question in enumerate(questions.values()):
        if question.is_held_out:
            held_out_positions.append(position)
        else:
            usual_positions.append(position)
    for split in ("mcd1", "mcd2", "mcd3"):
        n_held_out = ROWS["devIdxs"] + ROWS["testIdxs"]
        held_out = rng.sample(held_out_positions, n_held_out)
        files[f"cfq/splits/{split}.json"] = {
            "trainIdxs": rng.sample(usual_positions, ROWS["trainIdxs"]),
            "devIdxs": held_out[: ROWS["devIdxs"]],
            "testIdxs": held_out[ROWS["devIdxs"] :],
        }
    contents = {}
    for name, content in files.items():
        contents[name] = json.dumps(content, indent=2).encode()
    archive = folder / "cfq.tar.gz"
    write_tar(archive, "w:gz", contents)
    return {"cfq/cfq.tar.gz": archive}


def generate_question(rng: random.Random) -> GeneratedQuestion:
    """Generate a question with its query."""
    entities = [f"M{number}" for number in rng.sample(range(6), 5)]
    owner = entities[0]
    noun = rng.choice(list(ROLES))
    other_nouns = rng.sample(list(ROLES), rng.randint(1, 2))
    roles = [ROLES[other] for other in other_nouns]
    films = entities[1 : 1 + rng.randint(1, 3)]
    kind = rng.choice(["did", "did", "marry", "was", "who"])

    verbs = join_words([role.verb for role in roles])
    participles = join_words([role.participle for role in roles])
    of_owner = f"?x0 ns:{ROLES[noun].of_person} {owner}"
    of_films = [f"?x0 ns:{role.of_person} {film}" for role, film in product(roles, films)]
    head = "SELECT count(*)"
    filters = []
    is_held_out = any((noun, role.verb) in HELD_OUT for role in roles)
    if kind == "did":
        text = f"Did {owner} 's {noun} {verbs} {join_words(films)}"
        conditions = [of_owner, *of_films]
    elif kind == "marry":
        nationality = rng.choice(list(NATIONALITIES))
        spouse = entities[1]
        text = f"Did {owner} 's {nationality} {noun} marry {spouse}"
        of_nation = f"?x0 ns:people.person.nationality ns:{NATIONALITIES[nationality]}"
        conditions = [of_owner, of_nation, f"?x0 ns:{MARRIED} {spouse}"]
        filters = [f"FILTER ( ?x0 != {spouse} )"]
        other_nouns = []
        is_held_out = False
    elif kind == "was":
        people = entities[3:5]
        if len(films) > 1:
            people = entities[4:5]
        text = f"Were {join_words(films)} {participles} by {join_words(people)}"
        conditions = []
        for film, role, person in product(films, roles, people):
            conditions.append(f"{film} ns:{role.of_film} {person}")
        is_held_out = False
    else:
        text = f"Who {verbs} {join_words(films)} and was {owner} 's {noun}"
        conditions = ["?x0 a ns:people.person", of_owner, *of_films]
        head = "SELECT DISTINCT ?x0"
    body = " .\n".join([*sorted(conditions), *filters])
    item = {
        "questionPatternModEntities": text,
        "sparqlPatternModEntities": f"{head} WHERE {{\n{body}\n}}",
        # Upstream has more in each item, which the reader must skip.
        "complexityMeasures": {"questionTemplate": text.replace(owner, "entity")},
        "ruleTree": {"ruleId": kind, "subTrees": [{"ruleId": other} for other in other_nouns]},
    }
    return GeneratedQuestion(item, is_held_out)


def join_words(words: list[str]) -> str:
    """Format a list like CFQ: `a`, `a and b`, `a , b , and c`."""
    if len(words) < 3:
        return " and ".join(words)
    return f"{' , '.join(words[:-1])} , and {words[-1]}"

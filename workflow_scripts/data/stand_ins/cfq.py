"""Stand-in data for CFQ: questions of a small grammar about films, in an archive like upstream's.

As in the MCD splits, training and test have the same words but other compounds: the pairs of a role
and a verb in `HELD_OUT` occur only in validation and test questions.
"""

import itertools
import json
import random
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_tar

ROLES = {  # noun: (verb after `Did`, past participle, predicate of a person, its inverse, of a film)
    "director": ("direct", "directed", "film.director.film", "film.film.directed_by"),
    "editor": ("edit", "edited", "film.editor.film", "film.film.edited_by"),
    "writer": ("write", "written", "film.writer.film", "film.film.written_by"),
    "producer": (
        "produce",
        "produced",
        "film.producer.film|ns:film.production_company.films",
        "film.film.produced_by|ns:film.film.production_companies",
    ),
}
NATIONALITIES = {"Spanish": "m.06mkj", "Canadian": "m.0d060g", "Dutch": "m.059j2"}
MARRIED = (
    "people.person.spouse_s/ns:people.marriage.spouse|ns:fictional_universe.fictional_character.married_to/"
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


def write_cfq(folder: Path, seed: int) -> dict[str, Path]:
    """Write an archive of `cfq/dataset.json` and `cfq/splits/mcd1.json` to `mcd3.json`, each an independent sample."""
    rng = random.Random(f"{seed}/cfq stand-in")
    items: dict[str, tuple[dict, bool]] = {}
    while len(items) < ITEMS:
        item, held_out = generate_question(rng)
        items.setdefault(item["questionPatternModEntities"], (item, held_out))
    files = {"cfq/dataset.json": [item for item, _ in items.values()]}
    for split in ("mcd1", "mcd2", "mcd3"):
        novel, known = (
            [i for i, (_, new) in enumerate(items.values()) if new == side]
            for side in (True, False)
        )
        drawn = rng.sample(novel, ROWS["devIdxs"] + ROWS["testIdxs"])
        files[f"cfq/splits/{split}.json"] = {
            "trainIdxs": rng.sample(known, ROWS["trainIdxs"]),
            "devIdxs": drawn[: ROWS["devIdxs"]],
            "testIdxs": drawn[ROWS["devIdxs"] :],
        }
    archive = folder / "cfq.tar.gz"
    write_tar(
        archive,
        "w:gz",
        {name: json.dumps(content, indent=2).encode() for name, content in files.items()},
    )
    return {"cfq/cfq.tar.gz": archive}


def generate_question(rng: random.Random) -> tuple[dict, bool]:
    """Generate an item of dataset.json.

    Also returns whether it has a pair of role and verb in `HELD_OUT`.
    """
    entities = [f"M{i}" for i in rng.sample(range(6), 5)]
    role = rng.choice(list(ROLES))
    verbs = rng.sample(list(ROLES), rng.randint(1, 2))
    films = entities[1 : 1 + rng.randint(1, 3)]
    done = [(f"?x0 ns:{ROLES[verb][2]}", film) for verb in verbs for film in films]
    of = f"?x0 ns:{ROLES[role][2]} {entities[0]}"
    kind = rng.choice(["did", "did", "marry", "was", "who"])
    if kind == "did":
        text = f"Did {entities[0]} 's {role} {join_words([ROLES[verb][0] for verb in verbs])} {join_words(films)}"
        conditions, filters, head = [of, *map(" ".join, done)], [], "SELECT count(*)"
    elif kind == "marry":
        nationality = rng.choice(list(NATIONALITIES))
        text = f"Did {entities[0]} 's {nationality} {role} marry {entities[1]}"
        where_from = f"?x0 ns:people.person.nationality ns:{NATIONALITIES[nationality]}"
        conditions = [of, where_from, f"?x0 ns:{MARRIED} {entities[1]}"]
        filters, head, verbs = [f"FILTER ( ?x0 != {entities[1]} )"], "SELECT count(*)", []
    elif kind == "was":
        people = entities[4:5] if len(films) > 1 else entities[3:5]
        text = f"Were {join_words(films)} {join_words([ROLES[verb][1] for verb in verbs])} by {join_words(people)}"
        every = itertools.product(films, verbs, people)
        conditions = [f"{film} ns:{ROLES[verb][3]} {person}" for film, verb, person in every]
        filters, head, role = [], "SELECT count(*)", ""
    else:
        text = f"Who {join_words([ROLES[verb][0] for verb in verbs])} {join_words(films)} and was {entities[0]} 's {role}"
        conditions, filters, head = (
            ["?x0 a ns:people.person", of, *map(" ".join, done)],
            [],
            "SELECT DISTINCT ?x0",
        )
    body = " .\n".join([*sorted(conditions), *filters])
    item = {
        "questionPatternModEntities": text,
        "sparqlPatternModEntities": f"{head} WHERE {{\n{body}\n}}",
        "complexityMeasures": {"questionTemplate": text.replace(entities[0], "entity")},
        "ruleTree": {"ruleId": kind, "subTrees": [{"ruleId": verb} for verb in verbs]},
    }
    return item, any((role, ROLES[verb][0]) in HELD_OUT for verb in verbs)


def join_words(words: list[str]) -> str:
    """Format a list like CFQ: `a`, `a and b`, `a , b , and c`."""
    return " and ".join(words) if len(words) < 3 else f"{' , '.join(words[:-1])} , and {words[-1]}"

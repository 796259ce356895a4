"""The SPARQL queries of CFQ as sequences of tokens, in two preprocessings.

`tokenised` is that of Keysers et al. (2020). `grouped` is that of Zheng and Lapata (2022): what a query asks for does
not hang on the order of its conditions, so they get one order, and conditions that share parts are written once.
"""

from collections import defaultdict
from collections.abc import Iterable

Triple = tuple[str, str, str]  # subject, predicate, object

# Predicates that say the same with subject and object exchanged; a path keeps `ns:` inside.
INVERSE = {
    "film.film.directed_by": "film.director.film",
    "film.film.edited_by": "film.editor.film",
    "film.film.written_by": "film.writer.film",
    "film.film.produced_by|ns:film.film.production_companies": ("film.producer.film|ns:film.production_company.films"),
    "film.film.executive_produced_by": "film.producer.films_executive_produced",
    "film.film.distributors/ns:film.film_film_distributor_relationship.distributor": (
        "film.film_distributor.films_distributed/ns:film.film_film_distributor_relationship.film"
    ),
    "influence.influence_node.influenced_by": "influence.influence_node.influenced",
    "organization.organization.acquired_by/ns:business.acquisition.acquiring_company": (
        "organization.organization.companies_acquired/ns:business.acquisition.company_acquired"
    ),
    "organization.organization.founders": "organization.organization_founder.organizations_founded",
    "people.person.employment_history/ns:business.employment_tenure.company": (
        "business.employer.employees/ns:business.employment_tenure.person"
    ),
}


def tokenised(query: str) -> str:
    """Tokens joined by one space: `count(*)` is five of them, `ns:film.actor` becomes `film.actor`, `m.02` `m_02`."""
    tokens = (token.removeprefix("ns:") for token in query.replace("count(*)", "count ( * )").split())
    return " ".join(f"m_{token[2:]}" if token.startswith("m.") else token for token in tokens)


def grouped(query: str, inverse: bool) -> str:
    """A `tokenised` query as `SELECT ... WHERE { item . item . ... }` with sorted items.

    An item is a FILTER, or the subjects, predicates and objects (each sorted) of the triples that it stands for: all
    that the three lists combine to. `inverse` exchanges subject and object of the predicates of INVERSE first.
    Raises ValueError for a query of another form.
    """
    head, opened, body = query.partition(" { ")
    if not (opened and body.endswith(" }")):
        raise ValueError(f"not a query of the form 'SELECT ... WHERE {{ ... }}': {query[:60]!r}")
    filters, triples = [], []
    for condition in body.removesuffix(" }").split(" . "):
        tokens = condition.split(" ")
        if tokens[0] == "FILTER":
            filters.append(condition)
        elif len(tokens) == 3:
            triples.append((tokens[0], tokens[1], tokens[2]))
        else:
            raise ValueError(f"neither a FILTER nor a subject, predicate and object: {condition[:60]!r}")
    if inverse:
        triples = [(o, INVERSE[p], s) if p in INVERSE else (s, p, o) for s, p, o in triples]
    items = [" ".join([*subjects, *predicates, *objects]) for subjects, predicates, objects in groups(triples)]
    return f"{head} {{ {' . '.join(sorted(items + filters))} }}"


def groups(triples: Iterable[Triple]) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """(subjects, predicates, objects), each sorted, whose products are together exactly the triples.

    First the objects of one subject and predicate are put together, then the subjects of one predicate with the same
    objects, then the predicates of the same subjects and objects.
    """
    objects: dict[tuple[str, str], list[str]] = defaultdict(list)
    for subject, predicate, object_ in triples:
        objects[subject, predicate].append(object_)
    subjects: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (subject, predicate), found in objects.items():
        subjects[predicate, tuple(sorted(found))].append(subject)
    predicates: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (predicate, of), found in subjects.items():
        predicates[tuple(sorted(found)), of].append(predicate)
    return [(found, tuple(sorted(shared)), of) for (found, of), shared in predicates.items()]

"""Preprocessing of CFQ's SPARQL queries into tokens (Keysers et al. 2020) and groups (Zheng and Lapata 2022)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

# Predicate -> predicate with the same meaning if subject and object are exchanged; inside a path
# `ns:` is kept.
INVERSE = {
    "film.film.directed_by": "film.director.film",
    "film.film.edited_by": "film.editor.film",
    "film.film.written_by": "film.writer.film",
    "film.film.produced_by|ns:film.film.production_companies": "film.producer.film|ns:film.production_company.films",
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


def tokenise_sparql(query: str) -> str:
    """Tokenise a query.

    `count(*)` becomes 4 tokens, `ns:film.actor` becomes `film.actor`, `m.02` becomes `m_02`.
    """
    tokens = (
        token.removeprefix("ns:") for token in query.replace("count(*)", "count ( * )").split()
    )
    return " ".join(f"m_{token[2:]}" if token.startswith("m.") else token for token in tokens)


def group_conditions(query: str, inverse: bool) -> str:
    """Format a tokenised query as `SELECT ... WHERE { item . item . ... }` with sorted items; order has no meaning.

    An item is a FILTER, or sorted lists of subjects, predicates and objects, which mean all their
    combinations as triples. `inverse` first replaces the predicates in INVERSE, exchanging subject
    and object.
    """
    head, body = query.removesuffix(" }").split(" { ")
    conditions = body.split(" . ")
    filters = [condition for condition in conditions if condition.startswith("FILTER ")]
    triples = [
        condition.split(" ") for condition in conditions if not condition.startswith("FILTER ")
    ]
    if inverse:
        triples = [(o, INVERSE[p], s) if p in INVERSE else (s, p, o) for s, p, o in triples]
    items = [
        " ".join([*subjects, *predicates, *objects])
        for subjects, predicates, objects in group_triples(triples)
    ]
    return f"{head} {{ {' . '.join(sorted(items + filters))} }}"


def group_triples(
    triples: Iterable[Sequence[str]],
) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Group triples into (subjects, predicates, objects), each sorted; the products of all groups are the triples.

    A triple is (subject, predicate, object). Merges first objects with equal subject and predicate,
    then subjects with equal predicate and objects, then predicates with equal subjects and objects.
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

"""Preprocessing of CFQ's SPARQL queries.

Queries become tokens (Keysers et al. 2020) and groups (Zheng and Lapata 2022).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

# Predicate -> predicate with the same meaning if subject and object are exchanged; inside a path
# `ns:` is kept.
INVERSE = {
    "film.film.directed_by": "film.director.film",
    "film.film.edited_by": "film.editor.film",
    "film.film.written_by": "film.writer.film",
    "film.film.produced_by|ns:film.film.production_companies": (
        "film.producer.film|ns:film.production_company.films"
    ),
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
    tokens = []
    for word in query.replace("count(*)", "count ( * )").split():
        token = word.removeprefix("ns:")
        if token.startswith("m."):
            token = f"m_{token[2:]}"
        tokens.append(token)
    return " ".join(tokens)


def group_conditions(query: str, inverse: bool) -> str:
    """Format a tokenised query as `SELECT ... WHERE { item . item . ... }` with sorted items.

    Their order has no meaning. An item is a FILTER, or sorted lists of subjects, predicates and
    objects, which mean all their combinations as triples. `inverse` first replaces the predicates
    in INVERSE, exchanging subject and object.
    """
    head, body = query.removesuffix(" }").split(" { ")
    items = []
    triples = []
    for condition in body.split(" . "):
        if condition.startswith("FILTER "):
            items.append(condition)
            continue
        subject, predicate, object_ = condition.split(" ")
        if inverse and predicate in INVERSE:
            triples.append((object_, INVERSE[predicate], subject))
        else:
            triples.append((subject, predicate, object_))
    for subjects, predicates, objects in group_triples(triples):
        items.append(" ".join([*subjects, *predicates, *objects]))
    return f"{head} {{ {' . '.join(sorted(items))} }}"


def group_triples(
    triples: Iterable[Sequence[str]],
) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Group triples into (subjects, predicates, objects), each sorted.

    The products of all groups are the triples. A triple is (subject, predicate, object). Merges
    first objects with equal subject and predicate, then subjects with equal predicate and objects,
    then predicates with equal subjects and objects.
    """
    objects_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for subject, predicate, object_ in triples:
        objects_of[subject, predicate].append(object_)
    subjects_of: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (subject, predicate), object_list in objects_of.items():
        objects = tuple(sorted(object_list))
        subjects_of[predicate, objects].append(subject)
    predicates_of: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (predicate, objects), subject_list in subjects_of.items():
        subjects = tuple(sorted(subject_list))
        predicates_of[subjects, objects].append(predicate)
    groups = []
    for (subjects, objects), predicate_list in predicates_of.items():
        groups.append((subjects, tuple(sorted(predicate_list)), objects))
    return groups

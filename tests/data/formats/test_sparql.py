"""The queries of CFQ: hand-worked examples of both preprocessings, and what grouping must keep."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.data.formats.sparql import (
    INVERSE,
    group_conditions,
    group_triples,
    tokenise_sparql,
)

QUERY = (
    "SELECT count(*) WHERE {\n?x0 ns:film.director.film M0 .\n?x0 ns:film.director.film M1 .\n"
    "?x0 ns:film.editor.film M1 .\n?x0 ns:film.editor.film M0 .\n?x0 ns:people.person.gender ns:m.05zppz .\n"
    "?x1 a ns:film.actor .\nFILTER ( ?x0 != ?x1 )\n}"
)
PARENTS = "a.b.parent|ns:a.c.parent"


def test_official_by_hand():
    assert tokenise_sparql(QUERY) == (
        "SELECT count ( * ) WHERE { ?x0 film.director.film M0 . ?x0 film.director.film M1 . ?x0 film.editor.film M1 . "
        "?x0 film.editor.film M0 . ?x0 people.person.gender m_05zppz . ?x1 a film.actor . FILTER ( ?x0 != ?x1 ) }"
    )


def test_paths_keep_the_prefix_inside():
    path = "ns:film.producer.film|ns:film.production_company.films"
    assert tokenise_sparql(f"SELECT DISTINCT ?x0 WHERE {{\n?x0 {path} m.01\n}}") == (
        "SELECT DISTINCT ?x0 WHERE { ?x0 film.producer.film|ns:film.production_company.films m_01 }"
    )


def test_grouped_by_hand():
    assert group_conditions(tokenise_sparql(QUERY), inverse=False) == (
        "SELECT count ( * ) WHERE { ?x0 film.director.film film.editor.film M0 M1 . "
        "?x0 people.person.gender m_05zppz . ?x1 a film.actor . FILTER ( ?x0 != ?x1 ) }"
    )


DIRECTED = "M0 film.film.directed_by ?x0 . M1 film.film.directed_by ?x0 . ?x0 a film.actor"


@pytest.mark.parametrize(
    ("conditions", "inverse", "grouped"),
    [
        # Subjects with the same objects are put together, inverse predicates exchange both, filters
        # are sorted, too.
        (
            "M2 p.q.r M0 . ?x0 p.q.r M1 . ?x0 p.q.r M0 . M2 p.q.r M1 . M2 a b",
            False,
            "?x0 M2 p.q.r M0 M1 . M2 a b",
        ),
        (DIRECTED, True, "?x0 a film.actor . ?x0 film.director.film M0 M1"),
        (DIRECTED, False, "?x0 a film.actor . M0 M1 film.film.directed_by ?x0"),
        (
            "M0 p.q.r ?x0 . FILTER ( ?x0 ) . ?x0 s.t.u ?x1",
            False,
            "?x0 s.t.u ?x1 . FILTER ( ?x0 ) . M0 p.q.r ?x0",
        ),
    ],
)
def test_groups_by_hand(conditions, inverse, grouped):
    form = "SELECT count ( * ) WHERE {{ {} }}"
    assert group_conditions(form.format(conditions), inverse) == form.format(grouped)


def test_the_ten_inverses():
    assert len(INVERSE) == 10
    assert not INVERSE.keys() & set(INVERSE.values()), "to invert twice must change nothing more"
    assert len(set(INVERSE.values())) == 10, "no two say the same"


entities = st.sampled_from(["?x0", "?x1", "?x2", "M0", "M1", "M2", "m_02"])
links = st.tuples(
    entities, st.sampled_from(["a.b.child", "a.b.friend", PARENTS, *INVERSE]), entities
)
kinds = st.tuples(entities, st.just("a"), st.sampled_from(["film.actor", "film.editor"]))
triples = st.lists(st.one_of(links, kinds), min_size=1, max_size=14, unique=True)


def is_predicate(token: str) -> bool:
    """Predicates name a property of a type (two dots), types do not (one dot)."""
    return token == "a" or re.sub(r"[|/].*", "", token).count(".") == 2


def expanded(query: str) -> set[tuple[str, str, str]]:
    """The triples of a grouped query, read from its text alone."""
    found = []
    for item in query.removesuffix(" }").split(" { ")[1].split(" . "):
        tokens = item.split(" ")
        predicates = [i for i, token in enumerate(tokens) if is_predicate(token)]
        first, last = predicates[0], predicates[-1] + 1
        found += [
            (s, p, o) for s in tokens[:first] for p in tokens[first:last] for o in tokens[last:]
        ]
    assert len(found) == len(set(found)), "a triple is written once"
    return set(found)


def query_of(conditions) -> str:
    return f"SELECT count ( * ) WHERE {{ {' . '.join(map(' '.join, conditions))} }}"


@given(triples, st.randoms(use_true_random=False), st.booleans())
def test_grouping_knows_no_order(conditions, random, inverse):
    shuffled = random.sample(conditions, len(conditions))
    assert group_conditions(query_of(shuffled), inverse) == group_conditions(
        query_of(conditions), inverse
    )


@given(triples)
def test_grouping_keeps_the_triples(conditions):
    assert expanded(group_conditions(query_of(conditions), inverse=False)) == set(conditions)


@given(triples)
def test_groups_are_sorted_and_no_two_could_be_one_by_predicate(conditions):
    found = group_triples(conditions)
    assert all(list(part) == sorted(part) for group in found for part in group)
    assert len({(subjects, objects) for subjects, _, objects in found}) == len(found)

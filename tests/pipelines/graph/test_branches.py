"""Questions that are trees: joins count what enumeration counts, and only trees to the answer have the shape."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.graph.branches import find_tree_problems
from pipelines.graph.query import TYPE, Indexes, Query, Side, follow_chain
from schemas.proofs import Branch, Constraint, Evidence, Hop, PathNode, Proof
from tests.toy import box, build_toy_corpus

KINDS = ("bridge", "museum", "tower")
RELATIONS = ("owner", "architect", "location")
SIZE = 14
EVIDENCE = Evidence(
    page_id=1, title="", revision=1, kind="infobox", key="owner", start=0, end=1, text="", link_start=-1
)


def make_world(seed):
    """Return the type of each entity and its value of each relation, drawn."""
    draw = random.Random(seed)
    names = [f"Stone {number}" for number in range(SIZE)]
    kinds = {name: draw.choice(KINDS) for name in names}
    facts = {(name, relation): draw.choice([*names, ""]) for name in names for relation in RELATIONS}
    return kinds, {place: value for place, value in facts.items() if value not in ("", place[0])}


@pytest.fixture(scope="module", params=[1, 2, 3])
def world(request, tmp_path_factory):
    kinds, facts = make_world(request.param)
    pages = {
        name: box(kind, f"'''{name}''' is a {kind}.", *(f"{r} = [[{v}]]" for (n, r), v in facts.items() if n == name))
        for name, kind in kinds.items()
    }
    corpus = build_toy_corpus(tmp_path_factory.mktemp("stones"), pages, {})
    return Indexes(corpus), kinds, facts


def make_hop(index, relation):
    return Hop(index=index, relation=relation, subject_id=1, object_id=1, clause="", evidence=EVIDENCE, backward=True)


@st.composite
def trees(draw):
    """Return a chain's relations, its branches as (host, relation, named, entity), the anchor, and types by number."""
    chain = draw(st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=2))
    count = draw(st.integers(0, 3))
    hosts = [draw(st.integers(1, len(chain) + place)) for place in range(count)]
    first = len(chain) + 1
    sides = [
        (host, draw(st.sampled_from(RELATIONS)), first + place not in hosts, draw(st.integers(0, SIZE - 1)))
        for place, host in enumerate(hosts)
    ]
    typed = draw(st.dictionaries(st.integers(1, len(chain) + count), st.sampled_from(KINDS), max_size=3))
    return chain, sides, draw(st.integers(0, SIZE - 1)), typed


def enumerate_ends(tree, kinds, facts):
    """Return the entities that each number can be in an assignment of entities to all numbers that fits every fact."""
    chain, sides, anchor, typed = tree
    names, first = list(kinds), len(chain) + 1
    named = {first + place: names[entity] for place, (_, _, named, entity) in enumerate(sides) if named}
    free = [number for number in range(1, first + len(sides)) if number not in named]
    found = {number: set() for number in range(first + len(sides))}
    for chosen in product(names, repeat=len(free)):
        given = {0: names[anchor], **named, **dict(zip(free, chosen, strict=True))}
        told = [(given[number], relation, given[number - 1]) for number, relation in enumerate(chain, 1)]
        told += [(given[host], relation, given[first + place]) for place, (host, relation, *_) in enumerate(sides)]
        fits = all(facts.get((subject, relation)) == value for subject, relation, value in told)
        if fits and all(number in named or kinds[given[number]] == kind for number, kind in typed.items()):
            for number, name in given.items():
                found[number].add(name)
    return found


def make_query(ground, tree):
    chain, sides, anchor, typed = tree
    numbers = [ground.corpus.find(f"Stone {number}") for number in range(SIZE)]
    first = len(chain) + 1
    return Query(
        numbers[anchor],
        tuple(make_hop(index, relation) for index, relation in enumerate(chain, 1)),
        tuple(
            Constraint(node=number, relation=TYPE, value=kind)
            for number, kind in typed.items()
            if number < first or not sides[number - first][2]
        ),
        "length",
        (),
        sides=tuple(
            Side(first + place, host, make_hop(first + place, relation), numbers[entity], named)
            for place, (host, relation, named, entity) in enumerate(sides)
        ),
    )


@settings(max_examples=60, deadline=None)
@given(tree=trees())
def test_joins_over_a_tree_find_what_enumeration_finds(world, tree):
    ground, kinds, facts = world
    query, expected = make_query(ground, tree), enumerate_ends(tree, kinds, facts)
    sets = follow_chain(ground, query, query.anchor)
    ends = {ground.corpus.page(number).title for number in sets[-1]} if len(sets) == len(query.hops) + 1 else set()
    assert ends == expected[len(query.hops)]


def make_proof(*branches):
    """Return a proof of two hops with branches given as (host, named)."""
    nodes = tuple(
        PathNode(page_id=number, title=f"N{number}", role=role, type="bridge", in_degree=1)
        for number, role in enumerate(("anchor", "bridge", "answer"))
    )
    return Proof(
        corpus="", snapshot="", nodes=nodes, hops=(make_hop(1, "owner"), make_hop(2, "owner")),
        answer_relation="length", answer_evidence=EVIDENCE, constraints=(), counts=(), alias_digest="",
        branches=tuple(
            Branch(host=host, relation="owner", evidence=EVIDENCE, named=named, descriptor="" if named else "the one",
                   node=PathNode(page_id=9 + place, title=f"B{place}", role="branch", type="bridge", in_degree=1))
            for place, (host, named) in enumerate(branches)
        ),
    )  # fmt: skip


def test_branches_of_branches_make_a_tree():
    assert list(find_tree_problems(make_proof((2, False), (3, False), (4, True), (1, True)))) == []


@pytest.mark.parametrize(
    ("branches", "problem"),
    [
        ([(0, True)], "smaller number, not 0"),
        ([(3, True)], "smaller number"),
        ([(4, False), (3, True)], "smaller number"),
        ([(2, False)], "branches of its own"),
        ([(2, True), (3, True)], "branches of its own"),
    ],
)
def test_what_is_no_tree_to_the_answer_is_named(branches, problem):
    assert problem in next(find_tree_problems(make_proof(*branches)))

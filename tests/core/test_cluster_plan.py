"""Shares of a cluster: even, steady, and the same for everybody who works them out."""

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.core.cluster import Holding, Node, View, holder, plan, ranked, shares

NODES = ("a", "b", "c", "d", "e")
NAMES = st.sampled_from(NODES)
DATABASES = st.sampled_from(["", "west"])
ROUNDS_MAX = 200


@st.composite
def views(draw: st.DrawFn, *, is_plain: bool = False) -> View:
    """Any state that the tables can be in; a plain one has one database and no pins."""
    known = draw(st.lists(NAMES, unique=True, min_size=1))
    nodes = {
        name: Node(
            name=name,
            is_alive=draw(st.booleans()),
            is_draining=draw(st.booleans()),
            is_leaving=draw(st.booleans()),
            databases=frozenset({""} if is_plain else draw(st.sets(DATABASES))),
        )
        for name in known
    }
    count = draw(st.integers(0, 12))
    maybe = st.none() | NAMES
    holdings = {
        f"p{number}": Holding(
            partition=f"p{number}",
            database="" if is_plain else draw(DATABASES),
            node=draw(maybe),
            wanted=draw(maybe),
            pinned=None if is_plain else draw(maybe),
        )
        for number in range(count)
    }
    return View(nodes, holdings)


def after(view: View, *, order: list[str]) -> View:
    """Every node that is alive does what it plans, one after another, as it sees it."""
    holdings = dict(view.holdings)
    for me in order:
        seen = View(view.nodes, holdings)
        acts = plan(seen, me)
        for name in acts.claims:
            assert holder(seen, holdings[name]) is None
            holdings[name] = msgspec.structs.replace(
                holdings[name], node=me, wanted=None
            )
        for name, to in acts.releases:
            assert holdings[name].node == me
            holdings[name] = msgspec.structs.replace(
                holdings[name], node=None, wanted=to
            )
    return View(view.nodes, holdings)


def settled(view: View, order: list[str]) -> tuple[View, int]:
    """How it is when nobody does anything more, and how many moves that took."""
    moves = 0
    for _ in range(ROUNDS_MAX):
        following = after(view, order=order)
        moves += sum(
            holder(view, view.holdings[name]) not in (None, one.node)
            for name, one in following.holdings.items()
        )
        if following == view:
            return view, moves
        view = following
    raise AssertionError("they never agree")


def alive(view: View) -> list[str]:
    return sorted(name for name, node in view.nodes.items() if node.is_alive)


@given(view=views(), shuffled=st.permutations(NODES))
def test_in_any_order_of_acting_nodes_agree_in_the_end(
    view: View, shuffled: list[str]
) -> None:
    order = [name for name in shuffled if name in alive(view)]
    found, _ = settled(view, order)
    for name, one in found.holdings.items():
        target = shares(found).get(name)
        assert target == holder(found, one)


@given(view=views(is_plain=True))
def test_nodes_that_take_have_as_many_as_each_other_or_one_more(view: View) -> None:
    found, _ = settled(view, alive(view))
    taking = [name for name, node in view.nodes.items() if node.is_taking]
    have = Counter(holder(found, one) for one in found.holdings.values())
    if taking:
        counts = [have[name] for name in taking]
        assert sum(counts) == len(found.holdings)
        assert max(counts) - min(counts) <= 1


@given(view=views())
def test_no_move_would_make_shares_more_even(view: View) -> None:
    found, _ = settled(view, alive(view))
    have = Counter(holder(found, one) for one in found.holdings.values())
    for one in found.holdings.values():
        may = [
            node.name
            for node in found.nodes.values()
            if node.is_taking and one.database in node.databases
        ]
        if not may:
            continue
        current = holder(found, one)
        assert current in may
        if one.pinned in may:
            assert current == one.pinned
        else:
            assert all(have[current] - have[other] < 2 for other in may)


@given(view=views())
def test_nobody_claims_what_a_live_node_holds(view: View) -> None:
    for me in alive(view):
        for name in plan(view, me).claims:
            assert holder(view, view.holdings[name]) is None


@given(view=views())
def test_a_free_partition_is_meant_for_one_node_and_not_for_two(view: View) -> None:
    claims = [name for me in alive(view) for name in plan(view, me).claims]
    assert len(claims) == len(set(claims))


@given(view=views())
def test_a_node_that_drains_or_leaves_is_given_nothing(view: View) -> None:
    for name, node in view.nodes.items():
        if node.is_alive and not node.is_taking:
            assert not plan(view, name).claims
        assert all(to != name or node.is_taking for to in released_to(view))


def released_to(view: View) -> list[str]:
    return [to for me in alive(view) for _, to in plan(view, me).releases]


@given(counts=st.lists(st.integers(0, 8), min_size=2, max_size=5))
def test_no_more_is_moved_than_the_surplus(counts: list[int]) -> None:
    nodes = {name: Node(name=name) for name in NODES[: len(counts)]}
    holdings: dict[str, Holding] = {}
    for node, count in zip(nodes, counts, strict=True):
        for _ in range(count):
            name = f"p{len(holdings):02}"
            holdings[name] = Holding(partition=name, node=node)
    view = View(nodes, holdings)
    share, rest = divmod(len(holdings), len(nodes))
    wanted = sorted(counts, reverse=True)
    goal = [share + 1] * rest + [share] * (len(nodes) - rest)
    surplus = sum(max(0, have - due) for have, due in zip(wanted, goal, strict=True))
    _, moves = settled(view, list(nodes))
    assert moves == surplus


@given(view=views(is_plain=True), name=NAMES)
def test_a_node_that_dies_moves_only_its_own(view: View, name: str) -> None:
    before, _ = settled(view, alive(view))
    if name not in before.nodes:
        return
    gone = msgspec.structs.replace(before.nodes[name], is_alive=False)
    dead = View({**before.nodes, name: gone}, before.holdings)
    found, moves = settled(dead, alive(dead))
    taking = [one for one in dead.nodes.values() if one.is_taking]
    if taking:
        assert moves == 0
    for one in before.holdings.values():
        if holder(before, one) not in (name, None) and taking:
            assert found.holdings[one.partition].node == one.node


@given(
    queue=st.text(min_size=1, max_size=9),
    names=st.sets(st.sampled_from([f"p{n}" for n in range(20)]), min_size=2),
)
def test_a_queue_goes_elsewhere_only_if_its_partition_goes(
    queue: str, names: set[str]
) -> None:
    order = ranked(queue, names)
    assert sorted(order) == sorted(names)
    for gone in names:
        left = ranked(queue, names - {gone})
        assert left == [one for one in order if one != gone]


def test_queues_are_spread_evenly() -> None:
    names = [f"p{number}" for number in range(8)]
    homes = Counter(ranked(f"queue-{number}", names)[0] for number in range(8_000))
    assert set(homes) == set(names)
    assert all(800 < count < 1_200 for count in homes.values())

"""The nodes of a cluster and its partitions: how they are, and what is done to them."""

from collections.abc import Callable
from typing import Any, Final

from headway.runtime.ranking import QueueRanking, RankQueues
from headway.server.call import Call, answer
from headway.server.members import Told
from headway.server.plans import Awaited, Plan, ask
from headway.server.problems import of_error
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.wire import nodes as wire
from headway.wire.queues import Done


class _Under:
    """A change that is on its way to the tables."""

    is_waiting = True

    def abandon(self) -> None:
        """It is carried out all the same."""


def list_nodes(call: Call) -> Plan:
    """All nodes of the cluster: how they are, and what they hold.

    A server that is no node tells of itself alone.
    """
    return answer(call.facilities.members.nodes())


def list_partitions(call: Call) -> Plan:
    """All partitions of the cluster: who serves them, and how many queues they have."""
    found = call.facilities.members.partitions()
    if found.is_cluster:
        return answer(found)

    def told(ranking: QueueRanking) -> Plan:
        for one in found.partitions:
            one.queues = ranking.total
        return answer(found)

    return ask(RankQueues(limit=1), told)


def drain(call: Call) -> Plan:
    """Have a node give its partitions to the others, and take none until undrained."""
    members = call.facilities.members
    return _done(lambda told: members.drain(call.params["name"], told, is_on=True))


def undrain(call: Call) -> Plan:
    """Have a node take partitions again."""
    members = call.facilities.members
    return _done(lambda told: members.drain(call.params["name"], told, is_on=False))


def move(call: Call) -> Plan:
    """Have a partition served by a node, for as long as that one serves.

    Without a node it is left to the nodes again. It moves within moments; requests for
    it wait meanwhile.
    """
    body: wire.Move = call.body
    members = call.facilities.members
    return _done(lambda told: members.move(call.params["partition"], body.node, told))


def _done(begin: Callable[[Told], None]) -> Plan:
    def begun(tell: Callable[[Plan], None]) -> _Under:
        def told(error: Exception | None) -> None:
            tell(answer(Done()) if error is None else of_error(error))

        begin(told)
        return _Under()

    return Awaited(begun)


def _look(path: str, handler: Any, answers: Any) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        verb=Verb.READ,
        tag="cluster",
        is_of_nodes=True,
        answers={200: answers},
    )


def _act(path: str, handler: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=path,
        handler=handler,
        verb=Verb.OPERATE,
        tag="cluster",
        is_of_nodes=True,
        answers={200: Done},
        **more,
    )


ROUTES: Final = (
    _look("/v1/nodes", list_nodes, wire.Nodes),
    _look("/v1/partitions", list_partitions, wire.Partitions),
    _act("/v1/nodes/{name}/drain", drain, problems=("not_found",)),
    _act("/v1/nodes/{name}/undrain", undrain, problems=("not_found",)),
    _act(
        "/v1/partitions/{partition}/move",
        move,
        body=wire.Move,
        problems=("not_found",),
        example={"node": "rack-2"},
    ),
)

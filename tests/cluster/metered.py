"""Metrics of a node, read."""

import re
from typing import Protocol

from tests.server.process import Answer

_SAMPLE = re.compile(r'^headway_node_(\w+)\{node="([^"]+)"(.*)\} (\S+)$', re.M)


class Asked(Protocol):
    """A node that answers."""

    name: str

    def ask(self, method: str, path: str) -> Answer: ...


def of_node(node: Asked) -> dict[str, float]:
    """What it tells of itself, by names without their beginning.

    Further labels follow the name as they are written.
    """
    answer = node.ask("GET", "/metrics")
    assert answer.status == 200, answer
    found = _SAMPLE.findall(answer.body.decode())
    assert {name for _, name, _, _ in found} == {node.name}
    return {metric + more: float(value) for metric, _, more, value in found}

"""Metrics of several partitions as one page: each sample says which one it is of."""

from collections.abc import Sequence

from headway.server.http.message import Response


def merged(got: Sequence[tuple[str, Response]]) -> Response:
    """Samples of one metric stay together, below the lines that say what it is."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for partition, response in got:
        name = ""
        for line in response.body.decode().splitlines():
            if line.startswith("#"):
                name = line.split(" ", 3)[2]
                head = heads.setdefault(name, [])
                if line not in head:
                    head.append(line)
            elif line:
                samples.setdefault(name, []).append(labelled(line, partition))
    lines: list[str] = []
    for name in dict.fromkeys([*heads, *samples]):
        lines += heads.get(name, [])
        lines += samples.get(name, [])
    body = "".join(f"{line}\n" for line in lines).encode()
    return Response(200, body, got[0][1].kind)


def labelled(line: str, partition: str) -> str:
    """A sample with one label more. Names of partitions need no escapes."""
    label = f'partition="{partition}"'
    name, brace, rest = line.partition("{")
    if not brace:
        name, _, rest = line.partition(" ")
        return f"{name}{{{label}}} {rest}"
    return f"{name}{{{label},{rest}"

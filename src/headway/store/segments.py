"""How much of history one answer holds: the same rule for every store."""

from collections.abc import Iterable, Iterator

from headway.store.port import Segment


def up_to(most_bytes: int, segments: Iterable[Segment]) -> Iterator[Segment]:
    """The first in any case; then as many as stay within the bytes."""
    total_bytes = 0
    is_first = True
    for segment in segments:
        total_bytes += len(segment.blob)
        if total_bytes > most_bytes and not is_first:
            return
        is_first = False
        yield segment

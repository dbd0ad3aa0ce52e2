"""How far each partition is: through the last message before which none is open."""

from collections import deque
from collections.abc import Sequence
from threading import Lock

from headway.bridge.port import Marks, Place


class Track:
    """One partition, from when it was given to us until it is taken away."""

    __slots__ = ("committed", "is_gone", "next", "open", "over")

    def __init__(self) -> None:
        self.open: deque[int] = deque()
        """Offsets as they were read. They need not follow each other."""
        self.over: set[int] = set()
        self.next = -1
        """From where the next reader goes on."""
        self.committed = -1
        self.is_gone = False


class Ticket:
    """One message that has been read and is not over."""

    __slots__ = ("offset", "track")

    def __init__(self, track: Track, offset: int) -> None:
        self.track = track
        self.offset = offset

    @property
    def is_gone(self) -> bool:
        """Another reader has the partition now: the message is no longer ours."""
        return self.track.is_gone


class Ledger:
    """The partitions that are ours. The source's thread looks at it as well."""

    def __init__(self) -> None:
        self._tracks: dict[Place, Track] = {}
        self._turn = Lock()

    def begin(self, place: Place, offset: int) -> Ticket:
        with self._turn:
            track = self._tracks.setdefault(place, Track())
            track.open.append(offset)
        return Ticket(track, offset)

    def end(self, ticket: Ticket) -> None:
        """The message needs to be read by nobody any more."""
        with self._turn:
            ticket.track.over.add(ticket.offset)

    def due(self) -> Marks:
        """What can be committed and is not yet."""
        with self._turn:
            return self._due(list(self._tracks))

    def committed(self, marks: Marks) -> None:
        with self._turn:
            for place, offset in marks.items():
                track = self._tracks.get(place)
                if track is not None:
                    track.committed = max(track.committed, offset)

    def release(self, places: Sequence[Place]) -> Marks:
        """Forgets the places and whatever is open there; answers what is due."""
        with self._turn:
            due = self._due(places)
            for place in places:
                track = self._tracks.pop(place, None)
                if track is not None:
                    track.is_gone = True
        return due

    def _due(self, places: Sequence[Place]) -> dict[Place, int]:
        due = {}
        for place in places:
            track = self._tracks.get(place)
            if track is None:
                continue
            while track.open and track.open[0] in track.over:
                offset = track.open.popleft()
                track.over.discard(offset)
                track.next = offset + 1
            if track.next > track.committed:
                due[place] = track.next
        return due

"""Which job waits for which answer, and answers that nobody waits for yet."""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from headway.core.commands import FactKind
from headway.core.config import QueueConfig
from headway.core.errors import RepliesFull
from headway.core.job import Job

if TYPE_CHECKING:
    from headway.core.queue import Shared

RESOLVED_KEPT: Final = 100_000
"""Keys that were answered are known for this many later ones, to tell repeats."""


class EarlyReply(msgspec.Struct, frozen=True):
    payload: bytes
    until_ms: int


class ReplyBook:
    """The reply keys of one queue. A key resolves at most one wait."""

    __slots__ = ("_early", "_queue", "_resolved", "_shared", "_waiting")

    def __init__(self, queue: str, shared: "Shared") -> None:
        self._queue = queue
        self._shared = shared
        self._waiting: dict[str, Job] = {}
        self._early: OrderedDict[str, EarlyReply] = OrderedDict()
        self._resolved: OrderedDict[str, bool] = OrderedDict()

    @property
    def waiting(self) -> list[Job]:
        """Jobs that wait for a reply."""
        return list(self._waiting.values())

    @property
    def kept(self) -> int:
        """Answers that are kept for a job that has not asked yet."""
        return len(self._early)

    def waits(self, key: str) -> Job | None:
        return self._waiting.get(key)

    def wait(self, key: str, job: Job) -> None:
        self._waiting[key] = job
        if self._resolved.pop(key, None) is not None:
            self._changed(FactKind.ANSWER, key)

    def resume(self, key: str, job: Job) -> None:
        """The job waited before the partition was restored."""
        self._waiting[key] = job

    def stop_waiting(self, key: str, *, is_answered: bool) -> None:
        """The wait ended; an answer from now on is repeated, or late."""
        del self._waiting[key]
        self._resolved[key] = is_answered
        self._changed(FactKind.ANSWER, key)
        if len(self._resolved) > RESOLVED_KEPT:
            oldest, _ = self._resolved.popitem(last=False)
            self._changed(FactKind.ANSWER, oldest)

    def was_answered(self, key: str) -> bool | None:
        """How the last wait for the key ended; None if there was none."""
        return self._resolved.get(key)

    def early(self, key: str) -> EarlyReply | None:
        return self._early.get(key)

    def take_early(self, key: str, now_ms: int) -> bytes | None:
        """The answer that came before its question, if one is kept."""
        reply = self._early.pop(key, None)
        if reply is None:
            return None
        self._changed(FactKind.REPLY, key)
        return None if reply.until_ms <= now_ms else reply.payload

    def is_early(self, key: str, now_ms: int) -> bool:
        reply = self._early.get(key)
        return reply is not None and reply.until_ms > now_ms

    def keep_early(
        self, key: str, payload: bytes, config: QueueConfig, now_ms: int
    ) -> None:
        """Keeps an answer for a job that has not asked yet; the first one stands."""
        while self._early:
            oldest = next(iter(self._early))
            if self._early[oldest].until_ms > now_ms:
                break
            del self._early[oldest]
            self._changed(FactKind.REPLY, oldest)
        if len(self._early) >= config.early_replies_max:
            raise RepliesFull(f"{len(self._early)} early replies are kept already")
        self._early[key] = EarlyReply(payload, now_ms + config.early_reply_ms)
        self._changed(FactKind.REPLY, key)

    def restore_early(self, key: str, reply: EarlyReply) -> None:
        self._early[key] = reply

    def order(self) -> None:
        """All of them are restored: those that end first come first."""
        pairs = sorted(self._early.items(), key=lambda pair: pair[1].until_ms)
        self._early = OrderedDict(pairs)

    def restore_answer(self, key: str, *, is_answered: bool) -> None:
        self._resolved[key] = is_answered

    def _changed(self, kind: FactKind, key: str) -> None:
        self._shared.facts[kind, self._queue, key] = None

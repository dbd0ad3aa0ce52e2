"""Keys by which a repeated enqueue is known, within their window."""

from hashlib import blake2b

import msgspec

from headway.core import defaults
from headway.core.errors import IdempotencyConflict
from headway.core.spec import JobSpec

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class KeyBook:
    """Two generations of keys: each is known for one to two windows."""

    __slots__ = ("_new", "_old", "_since_ms")

    def __init__(self) -> None:
        self._new: dict[str, tuple[int, bytes, int]] = {}
        self._old: dict[str, tuple[int, bytes, int]] = {}
        self._since_ms = 0

    def find(self, key: str, spec: JobSpec, window_ms: int, now_ms: int) -> int | None:
        """The job enqueued under this key; another body is an error."""
        self._turn_over(window_ms, now_ms)
        known = self._new.get(key) or self._old.get(key)
        if known is None or now_ms - known[2] >= window_ms:
            return None
        seq, digest, _ = known
        if digest != fingerprint(spec):
            raise IdempotencyConflict(f"idempotency key {key!r} has another body")
        return seq

    def add(self, key: str, seq: int, spec: JobSpec, now_ms: int) -> bytes:
        """Remembers the job under its key; answers its fingerprint."""
        digest = fingerprint(spec)
        self._new[key] = (seq, digest, now_ms)
        return digest

    def holds(self, key: str) -> bool:
        """Whether anything is remembered under the key."""
        return key in self._new or key in self._old

    def restore(self, key: str, seq: int, digest: bytes, at_ms: int) -> None:
        """What an earlier owner of the partition remembered."""
        self._new[key] = (seq, digest, at_ms)

    def shrink(self, most: int) -> None:
        """Forgets all if there are more: where a store holds them they come back."""
        if len(self._new) + len(self._old) > most:
            self._new = {}
            self._old = {}

    def _turn_over(self, window_ms: int, now_ms: int) -> None:
        is_full = len(self._new) >= defaults.IDEMPOTENCY_KEYS_MAX
        if is_full or now_ms - self._since_ms >= window_ms:
            self._old = self._new
            self._new = {}
            self._since_ms = now_ms


def fingerprint(spec: JobSpec) -> bytes:
    """Of all that the caller said of the job, the key included.

    Headers tell of the call, such as its trace, and are others when it is repeated.
    """
    if spec.headers is not None:
        spec = msgspec.structs.replace(spec, headers=None)
    return blake2b(_encode(spec), digest_size=16).digest()

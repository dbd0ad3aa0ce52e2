"""Names of any length as an index can hold them."""

from hashlib import blake2b
from typing import Final

TURN_MAX: Final = 1_024
_KEPT: Final = 1_000
"""What a longer turn keeps of its name: so turns stand in the order of their names."""
_KEY_MAX: Final = 64


def short_turn(turn: bytes) -> bytes:
    """The turn, or what stands for it: longer than any turn that stands for itself."""
    if len(turn) <= TURN_MAX:
        return turn
    return turn[:_KEPT] + b"\xff" + blake2b(turn, digest_size=24).digest()


def key_name(key: bytes) -> bytes:
    """What a key is known by; one that is long, by its digest."""
    if len(key) <= _KEY_MAX:
        return b"\0" + key
    return b"\1" + blake2b(key, digest_size=24).digest()


def pair_name(queue: bytes, key: bytes) -> bytes:
    """What an idempotency key of a queue is known by."""
    return key_name(len(queue).to_bytes(4, "big") + queue + key)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")

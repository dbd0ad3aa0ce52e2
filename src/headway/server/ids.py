"""Identities as clients see them, and lease tokens that can't be made up.

A job is `partition_123`. A lease token names its partition, its queue and the delivery,
and is signed: whoever was not given it can't guess it, and it says to which queue it
belongs without a look at the job.
"""

import os
import secrets
from contextlib import suppress
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Final

from headway.core.errors import BadValue, UnknownJob
from headway.server.private import write_private
from headway.server.problems import Refused
from headway.store.sqlite.place import sync_directory

KEY: Final = "signing.key"
KEY_BYTES: Final = 32
_KEY_BYTES_MAX: Final = 64

_MAC_BYTES: Final = 8
_PROOF: Final = 2 * (8 + _MAC_BYTES)
"""Hex digits of a number and its signature."""
_SEQ_DIGITS: Final = 15


class Ids:
    """Writes and reads the identities of one partition."""

    def __init__(self, partition: str, key: bytes) -> None:
        self.partition = partition
        self._signing = blake2b(digest_size=_MAC_BYTES, key=key)
        """Copied for each token: to take the key in is half of the work."""
        self._prefix = f"{partition}_"

    def job(self, seq: int) -> str:
        return f"{self._prefix}{seq}"

    def seq(self, text: str) -> int:
        """The number of a job; raises if it can't be one of ours."""
        digits = text.removeprefix(self._prefix)
        is_ours = text.startswith(self._prefix) and 1 <= len(digits) <= _SEQ_DIGITS
        if not is_ours or not digits.isdecimal() or not digits.isascii():
            raise UnknownJob(f"there is no job {text[:80]!r}")
        return int(digits)

    def token(self, token: int, queue: str) -> str:
        return f"{self._prefix}{self._proof(token, queue)}.{queue}"

    def read_token(self, text: str) -> tuple[int, str] | None:
        """The number of the lease and its queue; None if it is not one of ours."""
        named, _, queue = text.partition(".")
        token = self._checked(named, queue)
        return None if token is None else (token, queue)

    def delivery(self, token: int, queue: str) -> str:
        """For the four-endpoint API: a delivery of one queue, as a plain id."""
        return f"{self._prefix}{self._proof(token, queue)}"

    def read_delivery(self, text: str, queue: str) -> int:
        token = self._checked(text, queue)
        if token is None:
            raise Refused("unknown_job", f"there is no record {text[:80]!r}")
        return token

    def _checked(self, text: str, queue: str) -> int | None:
        if not text.startswith(self._prefix):
            return None
        proof = text[len(self._prefix) :]
        if len(proof) != _PROOF:
            return None
        try:
            number = int(proof[:16], 16)
            is_ours = compare_digest(self._proof(number, queue), proof)
        except (ValueError, TypeError, OverflowError):
            return None
        return number if is_ours else None

    def _proof(self, token: int, queue: str) -> str:
        number = token.to_bytes(8, "big")
        signing = self._signing.copy()
        signing.update(number + queue.encode())
        return (number + signing.digest()).hex()


def signing_key(path: Path) -> bytes:
    """The key that signs lease tokens, made once for a folder.

    It appears whole or not at all: a key that was cut short would sign as well, and
    anybody could guess it.
    """
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        try:
            write_private(fresh, secrets.token_bytes(KEY_BYTES))
            with suppress(FileExistsError):  # another server was quicker
                os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
        sync_directory(path.parent)
    key = path.read_bytes()[:_KEY_BYTES_MAX]
    if len(key) < KEY_BYTES:
        rule = (
            "is no key; without it a new one is made, and leases that are out are void"
        )
        raise BadValue("signing key", path.name, rule)
    return key

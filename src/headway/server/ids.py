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
_MAC: Final = 2 * _MAC_BYTES
"""Hex digits of a signature."""
_NUMBER: Final = 16
"""Hex digits of a number."""
_BLOCK_BITS: Final = 3
_BLOCK: Final = 1 << _BLOCK_BITS
"""Numbers in a row whose signatures are cut out of one digest."""
_BLOCKS_MAX: Final = 4_096
_DIGITS: Final = "0123456789abcdef"
_SEQ_DIGITS: Final = 15


class _Block:
    """Numbers in a row, of one queue, and what signs each of them."""

    def __init__(self, head: str, macs: str) -> None:
        self.head = head
        """All digits of the numbers but the last."""
        self.macs = macs


class Ids:
    """Writes and reads the identities of one partition.

    A keyed digest of 64 bytes is eight signatures of 8 bytes: to whoever has not the key
    each of them is as good as random, whatever else of the digest they know. Numbers
    come in a row, to be signed and to be read, so there is one digest for eight.
    """

    def __init__(self, partition: str, key: bytes) -> None:
        self.partition = partition
        self._signing = blake2b(digest_size=_BLOCK * _MAC_BYTES, key=key)
        """Copied for each digest."""
        self._signing_one = blake2b(digest_size=_MAC_BYTES, key=key)
        """Signs as servers did that had a digest for each token."""
        self.prefix = f"{partition}_"
        self._proof_end = len(self.prefix) + _NUMBER + _MAC
        self._blocks: dict[str, dict[int, _Block]] = {}
        """By queue and number, those of late."""
        self._blocks_count = 0

    def job(self, seq: int) -> str:
        return f"{self.prefix}{seq}"

    def seq(self, text: str) -> int:
        """The number of a job; raises if it can't be one of ours."""
        digits = text.removeprefix(self.prefix)
        is_ours = text.startswith(self.prefix) and 1 <= len(digits) <= _SEQ_DIGITS
        if not is_ours or not digits.isdecimal() or not digits.isascii():
            raise UnknownJob(f"there is no job {text[:80]!r}")
        return int(digits)

    def token(self, token: int, queue: str) -> str:
        return f"{self.delivery(token, queue)}.{queue}"

    def read_tokens(
        self, texts: list[str]
    ) -> tuple[dict[int, str], list[str], list[str]]:
        """Tokens by number, once each; those that are none of ours; and the queues."""
        good: dict[int, str] = {}
        stale: list[str] = []
        tails: list[str] = []
        end = self._proof_end
        tail = ""
        for text in texts:
            if len(text) != end + len(tail) or not text.endswith(tail):
                tail = text[end:]
            # Behind the dot stands the queue.
            token = self._checked(text[:end], tail[1:]) if tail[:1] == "." else None
            if token is None:
                stale.append(text)
                continue
            if tail not in tails:
                tails.append(tail)
            good[token] = text
        return good, stale, [tail[1:] for tail in tails]

    def delivery(self, token: int, queue: str) -> str:
        """For the four-endpoint API: a delivery of one queue, as a plain id."""
        block = self._block(token >> _BLOCK_BITS, queue)
        mac = (token & (_BLOCK - 1)) * _MAC
        return f"{block.head}{_DIGITS[token & 15]}{block.macs[mac : mac + _MAC]}"

    def read_delivery(self, text: str, queue: str) -> int:
        token = self._checked(text, queue)
        if token is None:
            raise Refused("unknown_job", f"there is no record {text[:80]!r}")
        return token

    def _checked(self, text: str, queue: str) -> int | None:
        prefix = self.prefix
        if len(text) != self._proof_end or not text.startswith(prefix):
            return None
        try:
            number = int(text[len(prefix) : len(prefix) + _NUMBER], 16)
            if compare_digest(self.delivery(number, queue), text):
                return number
            is_ours = compare_digest(self._signed_alone(number, queue), text)
        except (ValueError, TypeError, OverflowError):
            return None
        return number if is_ours else None

    def _block(self, number: int, queue: str) -> _Block:
        blocks = self._blocks.get(queue)
        if blocks is not None:
            block = blocks.get(number)
            if block is not None:
                return block
        signing = self._signing.copy()
        signing.update(number.to_bytes(8, "big") + queue.encode())
        head = f"{self.prefix}{number >> 1:015x}"
        block = _Block(head, signing.hexdigest())
        if self._blocks_count >= _BLOCKS_MAX:
            self._blocks.clear()
            self._blocks_count = 0
        self._blocks.setdefault(queue, {})[number] = block
        self._blocks_count += 1
        return block

    def _signed_alone(self, token: int, queue: str) -> str:
        number = token.to_bytes(8, "big")
        signing = self._signing_one.copy()
        signing.update(number + queue.encode())
        return f"{self.prefix}{(number + signing.digest()).hex()}"


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

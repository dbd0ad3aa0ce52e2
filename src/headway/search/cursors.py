"""Where a page ended, as text for the caller: signed, and good for its search only."""

import base64
import binascii
from hashlib import blake2b
from hmac import compare_digest
from typing import Final, NamedTuple

import msgspec

from headway.core.errors import BadValue
from headway.search.query import Search

SIGN_BYTES: Final = 12
_RULE: Final = "not a cursor of this search"

_encode: Final = msgspec.msgpack.Encoder(order="deterministic").encode
_decode: Final = msgspec.msgpack.Decoder(tuple[int, int]).decode


class Cursor(NamedTuple):
    last: int
    """Key of the last job of the page."""
    end: int
    """The first event that had not been indexed when the first page was read."""


def pack(cursor: Cursor, search: Search, key: bytes) -> str:
    blob = _encode(tuple(cursor))
    return _written(_sign(blob, search, key) + blob)


def unpack(text: str, search: Search, key: bytes) -> Cursor:
    """Raises BadValue if it was not made here for the same search."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        signed = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise BadValue("cursor", text, _RULE) from error
    sign, blob = signed[:SIGN_BYTES], signed[SIGN_BYTES:]
    is_signed = compare_digest(sign, _sign(blob, search, key))
    if not is_signed or _written(signed) != text:
        raise BadValue("cursor", text, _RULE)
    return Cursor(*_decode(blob))


def _written(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode("ascii")


def _sign(blob: bytes, search: Search, key: bytes) -> bytes:
    """Pages may differ in length, and in nothing else."""
    plain = msgspec.structs.replace(search, cursor=None, limit=1)
    text = _encode((blob, plain))
    return blake2b(text, digest_size=SIGN_BYTES, key=key).digest()

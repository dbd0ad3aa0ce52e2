"""Signatures of Standard Webhooks: who has the secret wrote this, just now."""

import secrets
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Final

from headway.core.errors import BadValue
from headway.server.problems import Refused

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
TOLERANCE_S: Final = 300
"""How far the clock of a partner may be from ours, and how old a message may be."""
SIGNATURES_MAX: Final = 16
ID_BYTES_MAX: Final = 256
_NOBODYS: Final = (secrets.token_bytes(SECRET_BYTES),)
"""For a source that is not there: it takes as long to refuse as one that is."""
_VERSION: Final = b"v1,"


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The key in a secret as it is shown. Raises BadValue, without the secret."""
    rule = (
        f"must be {PREFIX} and base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes"
    )
    text = secret.removeprefix(PREFIX)
    try:
        # Some partners leave the padding out.
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (NoBase64, ValueError):
        raise BadValue("secret", "…", rule) from None
    is_long_enough = SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX
    if not secret.startswith(PREFIX) or not is_long_enough:
        raise BadValue("secret", "…", rule)
    return key


def sign(key: bytes, message_id: bytes, timestamp: bytes, body: bytes) -> bytes:
    """The signature, as the header has it."""
    content = b"%s.%s.%s" % (message_id, timestamp, body)
    return _VERSION + b64encode(digest(key, content, sha256))


def check(
    keys: Sequence[bytes], headers: Mapping[bytes, bytes], body: bytes, now_ms: int
) -> bytes:
    """The id of a message that one of the keys has signed, and not long ago.

    Refuses all others alike. How old it is, only a holder of a key is told.
    """
    message_id = headers.get(b"webhook-id", b"")
    timestamp = headers.get(b"webhook-timestamp", b"")
    signatures = headers.get(b"webhook-signature", b"").split()
    if not message_id or not timestamp or not signatures:
        text = "webhook-id, webhook-timestamp and webhook-signature are needed"
        raise Refused("bad_signature", text)
    is_good = False
    for key in keys or _NOBODYS:
        wanted = sign(key, message_id, timestamp, body)
        for signature in signatures[:SIGNATURES_MAX]:
            is_good |= compare_digest(wanted, signature)
    if not keys or not is_good or len(message_id) > ID_BYTES_MAX:
        text = "there is no such source, or this is not its signature"
        raise Refused("bad_signature", text)
    is_number = timestamp.isdigit() and len(timestamp) <= 12
    if not is_number or abs(now_ms // 1_000 - int(timestamp)) > TOLERANCE_S:
        raise Refused("bad_signature", "its timestamp is more than 5 minutes off")
    return message_id

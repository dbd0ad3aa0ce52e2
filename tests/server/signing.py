"""Signed messages as a partner's library makes them."""

import time
from datetime import UTC, datetime

from standardwebhooks import Webhook

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1_000)
BODY = b'{"order": 17, "status": "paid"}'
SECRET = "whsec_" + "MfKQ9r8G" * 5 + "MfI="


def signed(
    secret: str, body: bytes = BODY, at: datetime | None = None, name: str = "m-1"
) -> dict[str, str]:
    """What a partner's library sends."""
    at = at or datetime.fromtimestamp(time.time(), UTC)
    return {
        "webhook_id": name,
        "webhook_timestamp": str(int(at.timestamp())),
        "webhook_signature": Webhook(secret).sign(name, at, body.decode()),
    }


def raw(headers: dict[str, str]) -> dict[bytes, bytes]:
    return {
        name.replace("_", "-").encode(): value.encode()
        for name, value in headers.items()
    }

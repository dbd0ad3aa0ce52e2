"""The dashboard's files, read once, with what a browser has to know of them."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

import msgspec

KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
INDEX: Final = "index.html"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Scripts, styles and answers of this server, and nothing else: neither inline nor from
anywhere, nor any text that becomes markup."""
_GUARDS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    # Asked for again each time, and answered by 304 while it is the same.
    (b"cache-control", b"no-cache"),
)


class File(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    content: bytes
    kind: bytes
    tag: bytes

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return ((b"etag", self.tag), *_GUARDS)


@cache
def all_files() -> dict[str, File]:
    """By name; there are no folders among them."""
    found: dict[str, File] = {}
    for entry in files(__package__).joinpath("static").iterdir():
        kind = KINDS.get(entry.name.rpartition(".")[2])
        if kind is not None:
            content = entry.read_bytes()
            tag = f'"{sha256(content).hexdigest()[:32]}"'.encode()
            found[entry.name] = File(content, kind.encode(), tag)
    return found

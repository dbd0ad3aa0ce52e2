"""Errors as RFC 9457 has them, with codes that stay."""

import msgspec


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What went wrong. `code` is for programs and never changes its meaning."""

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    key: str = ""
    """The value that is at fault, where one is."""

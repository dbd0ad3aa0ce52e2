"""Servers for the client's tests."""

from tests.server.conftest import serve, served

__all__ = ["serve", "served"]

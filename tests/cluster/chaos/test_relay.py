"""Links pass on what they are given, until they are cut or held."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cluster.chaos.relay import Link, Relays

WAIT_S = 30.0


@pytest.fixture
def link() -> Iterator[Link]:
    """To somebody who says everything again."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=echo, args=(client,), daemon=True).start()

    def echo(client: socket.socket) -> None:
        with client, suppress(OSError):
            while data := client.recv(1 << 16):
                client.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    relays = Relays()
    yield relays.link(listener.getsockname()[1])
    relays.close()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connected(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=WAIT_S)


def read(client: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (part := client.recv(count - len(found))):
        found += part
    return found


def test_bytes_go_through_whole_and_in_order(link: Link) -> None:
    sent = bytes(range(256)) * 4_000
    with connected(link) as client:
        threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
        assert read(client, len(sent)) == sent


def test_what_is_held_comes_when_the_link_is_healed(link: Link) -> None:
    with connected(link) as client:
        client.sendall(b"one")
        assert read(client, 3) == b"one"
        link.hold()
        client.sendall(b"two")
        with connected(link) as other:
            other.sendall(b"late")
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(1)
            client.settimeout(WAIT_S)
            link.heal()
            assert read(client, 3) == b"two"
            assert read(other, 4) == b"late"


def test_a_cut_link_hangs_up_and_takes_nobody(link: Link) -> None:
    with connected(link) as client:
        client.sendall(b"one")
        assert read(client, 3) == b"one"
        link.cut()
        assert _is_gone(client)
        with suppress(ConnectionError), connected(link) as other:
            assert _is_gone(other)
    link.heal()
    with connected(link) as client:
        client.sendall(b"two")
        assert read(client, 3) == b"two"


def _is_gone(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True

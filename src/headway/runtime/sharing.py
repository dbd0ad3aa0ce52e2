"""One owner for several processes: the first to open a file serves the others.

They speak over a Unix socket beside the file, which only its user may open. When the
owner dies, one of the others takes over; what was asked of it and not answered is
unknown, and its callers are told so.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from headway.core.commands import Lease, Withdraw
from headway.runtime import frames
from headway.runtime.errors import OwnerBusy, OwnerStopped
from headway.runtime.frames import FRAME_MAX, HEAD, Withdrawn
from headway.runtime.owner import Ask
from headway.runtime.results import EndWatch, Held, taken_back
from headway.runtime.service import Service

RECEIVED: Final = 1 << 18
"""Bytes that are read at one go."""
SENT: Final = 1 << 20
"""Bytes that the kernel is asked to keep of what the other side has not read yet: whoever
sends more waits for it."""
PEERS_MAX: Final = 128
"""Processes that one owner serves."""


class Address:
    """The socket beside a file, by a name that is short enough for the kernel."""

    def __init__(self, path: Path) -> None:
        whole = Path(os.path.realpath(path))
        self._folder = os.open(whole.parent, os.O_RDONLY | os.O_DIRECTORY)
        name = f"{whole.name}.sock"
        self.name = name if len(name.encode()) <= 64 else f".{hash_of(name)}.sock"
        self.address = f"/proc/self/fd/{self._folder}/{self.name}"

    def forget(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self._folder)

    def close(self) -> None:
        os.close(self._folder)


def hash_of(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


class Host:
    """Lets other processes speak to the owner in this one."""

    def __init__(self, service: Service, path: Path) -> None:
        self._service = service
        self._address = Address(path)
        self._address.forget()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self._address.address)
        Path(self._address.address).chmod(0o600)
        self._socket.listen(PEERS_MAX)
        self._peers: set[socket.socket] = set()
        self._turn = threading.Lock()
        _thread("headway-host", self._accept)

    def close(self) -> None:
        """Nobody else comes in, and who is in is let go."""
        self._address.forget()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._turn:
            for peer in self._peers:
                with suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
        self._address.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with self._turn:
                is_room = len(self._peers) < PEERS_MAX
                if is_room:
                    self._peers.add(peer)
            if is_room:
                _widen(peer)
                _thread("headway-peer", lambda peer=peer: self._serve(peer))  # type: ignore[misc]
            else:
                peer.close()

    def _serve(self, peer: socket.socket) -> None:
        talk = Talk(self._service, peer)
        try:
            read_frames(peer, talk.heard)
        finally:
            with self._turn:
                self._peers.discard(peer)
            talk.gone()


class Talk:
    """What one other process has asked and not been told yet."""

    def __init__(self, service: Service, peer: socket.socket) -> None:
        self._service = service
        self._peer = peer
        self._held: dict[int, Held] = {}
        self._turn = threading.Lock()

    def heard(self, call: int, said: Any) -> None:
        ask: Ask = said
        if isinstance(said, Withdrawn):
            ask = taken_back(self._held.get(said.call) or Lease())
        elif isinstance(said, Held):
            self._held[call] = said
        try:
            future = self._service.submit(ask)
        except (OwnerBusy, OwnerStopped) as error:
            self._tell(call, error)
            return
        future.add_done_callback(lambda done: self._done(call, done))

    def gone(self) -> None:
        """The other process is gone: what it still waits for is withdrawn."""
        for held in list(self._held.values()):
            with suppress(OwnerBusy, OwnerStopped):
                self._service.submit(taken_back(held))
        self._peer.close()

    def _done(self, call: int, done: Future[Any]) -> None:
        self._held.pop(call, None)
        error = done.exception()
        self._tell(call, done.result() if error is None else error)

    def _tell(self, call: int, answer: object) -> None:
        with self._turn, suppress(OSError):
            self._peer.sendall(frames.pack(call, answer))
            if isinstance(answer, OwnerStopped):
                # Nothing more will be answered here: it may take over.
                self._peer.shutdown(socket.SHUT_RDWR)


class Guest:
    """The way to an owner in another process."""

    def __init__(self, path: Path, on_lost: Callable[[], None]) -> None:
        """Raises an OSError if nobody answers there."""
        address = Address(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(address.address)
        except OSError:
            self._socket.close()
            raise
        finally:
            address.close()
        _widen(self._socket)
        self._on_lost = on_lost
        self._turn = threading.Lock()
        self._calls = 0
        self._waiting: dict[int, Future[Any]] = {}
        self._held: dict[int, int] = {}
        self.is_lost = False
        self._begin()

    def submit(self, ask: Ask) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._turn:
            if self.is_lost:
                raise OwnerStopped("the owner is gone")
            self._calls += 1
            call = self._calls
            self._waiting[call] = future
            if isinstance(ask, Withdraw | EndWatch):
                held = ask.lease if isinstance(ask, Withdraw) else ask.watch
                frame = frames.pack_withdraw(call, self._held.get(id(held), 0))
            else:
                frame = frames.pack(call, ask)
            if isinstance(ask, Held):
                self._held[id(ask)] = call
                future.add_done_callback(lambda _: self._held.pop(id(ask), None))
            with suppress(OSError):
                # If it is lost, the listener tells.
                self._socket.sendall(frame)
        return future

    def close(self) -> None:
        self._on_lost = _nothing
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _begin(self) -> None:
        """Listens to the owner, in a thread that does nothing else."""
        _thread("headway-guest", self._listen)

    def _listen(self) -> None:
        try:
            read_frames(self._socket, self._heard)
        finally:
            self._end()

    def _end(self) -> None:
        """Nothing more will be heard. It may take a while: somebody takes over."""
        self._socket.close()
        with self._turn:
            self.is_lost = True
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            future.set_exception(OwnerStopped("the owner is gone: outcome unknown"))
        self._on_lost()

    def _heard(self, call: int, answer: Any) -> None:
        with self._turn:
            future = self._waiting.pop(call, None)
        if future is None:
            return
        if isinstance(answer, OwnerBusy | OwnerStopped):
            future.set_exception(answer)
        else:
            future.set_result(answer)


class LoopGuest(Guest):
    """The same for a server: its event loop listens, and no thread takes its time."""

    def __init__(
        self, path: Path, on_lost: Callable[[], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self._unread = bytearray()
        super().__init__(path, on_lost)

    def _begin(self) -> None:
        self._loop.call_soon_threadsafe(self._attend)

    def _attend(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._readable)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(RECEIVED, socket.MSG_DONTWAIT)
            is_over = not data or not self._take(data)
        except BlockingIOError:
            return
        except (OSError, msgspec.MsgspecError):
            is_over = True
        if is_over:
            self._loop.remove_reader(self._socket.fileno())
            _thread("headway-guest", self._end)

    def _take(self, data: bytes) -> bool:
        """What has come whole is heard; False if it is none of ours."""
        unread = self._unread
        unread += data
        at = 0
        while len(unread) - at >= HEAD.size:
            (length,) = HEAD.unpack_from(unread, at)
            if length > FRAME_MAX:
                return False
            end = at + HEAD.size + length
            if end > len(unread):
                break
            self._heard(*frames.unpack(bytes(unread[at + HEAD.size : end])))
            at = end
        del unread[:at]
        return True


def read_frames(peer: socket.socket, heard: Callable[[int, Any], None]) -> None:
    """Until the other side is gone, or says what it may not say."""
    stream = peer.makefile("rb", buffering=RECEIVED)
    with stream, suppress(OSError, msgspec.MsgspecError):
        while head := stream.read(HEAD.size):
            if len(head) < HEAD.size:
                return
            (length,) = HEAD.unpack(head)
            if length > FRAME_MAX:
                return
            blob = stream.read(length)
            if len(blob) < length:
                return
            heard(*frames.unpack(blob))


def _widen(peer: socket.socket) -> None:
    """As far as the machine lets us."""
    with suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT)


def _thread(name: str, target: Callable[[], None]) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()


def _nothing() -> None:
    return None

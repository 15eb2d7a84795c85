"""Daemons that do what none should: scripts that speak the protocol, as far as it goes."""

import asyncio
import socket
import struct
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from unittest import mock

import rota
from cluster import PATIENCE
from rota import _gap

HASTY = rota.Backoff(0.002, 0.02)
#: Of waits that end by themselves.
SHORT = 0.5


def framed(kind: int, body: bytes) -> bytes:
    return struct.pack("<IB", 1 + len(body), kind) + body


def text(of: str) -> bytes:
    return bytes([len(of)]) + of.encode()


WELCOME = framed(0x81, struct.pack("<H", 1) + text("#alice#n1") + struct.pack("<II", 1000, 5000))
MESSAGE = framed(0x85, text("#bob#n2") + bytes([4, 0, 0, 0, 1]) + text("orders") + bytes(1000))
NO_CREDIT = framed(0x89, bytes(4))


class Peer:
    """One client, seen from the daemon."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        stream.settimeout(PATIENCE)
        self.next()
        self.tell(WELCOME)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count and (more := self.stream.recv(count - len(data))):
            data += more
        return data

    def next(self) -> bytes:
        """The body of the next frame; nothing at the end."""
        try:
            head = self._read(5)
            return self._read(struct.unpack("<IB", head)[0] - 1) if len(head) == 5 else b""
        except OSError:
            return b""

    def tell(self, *frames: bytes) -> None:
        self.stream.sendall(b"".join(frames))

    def join(self, before: bytes = b"") -> None:
        """Answers a join, behind something."""
        request = self.next()[:4]
        self.tell(before, framed(0x83, request))

    def flood(self) -> None:
        """Sends without end what no application is told."""
        try:
            while True:
                self.tell(NO_CREDIT * 8000)
        except OSError:
            self.stream.close()

    def until_gone(self) -> None:
        while self.next():
            pass
        self.stream.close()


class House:
    """Where a script plays a daemon."""

    def __init__(self, script: Callable[["House"], None]) -> None:
        self._dir = tempfile.TemporaryDirectory()
        self.path = str(Path(self._dir.name) / "s")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=script, args=[self], daemon=True)

    def accept(self) -> Peer:
        return Peer(self._listener.accept()[0])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.join(PATIENCE)
        self._listener.close()
        self._dir.cleanup()


def too_much(house: House) -> None:
    """Loses its client, and says too much to it before the join of its second connection is done."""
    first = house.accept()
    first.join()
    first.stream.close()
    second = house.accept()
    try:
        second.join(MESSAGE * 300)
    except OSError:
        # It has hung up already.
        pass
    second.until_gone()
    third = house.accept()
    third.join()
    third.until_gone()


def flooding(house: House) -> None:
    house.accept().flood()


class Threads(unittest.TestCase):
    def test_what_comes_before_the_gap_has_an_end(self) -> None:
        with House(too_much) as house, mock.patch.object(_gap, "EARLY_BYTES", 5000):
            client = rota.Reconnecting(
                house.path, unread_bytes=1000, timeout=PATIENCE, backoff=HASTY
            )
            client.join("orders")
            self.assertIsInstance(client.recv(PATIENCE), rota.Reconnected)
            with self.assertRaises(rota.TimedOutError):
                client.recv(0.02)
            with self.assertRaises(ZeroDivisionError), client:
                _ = 1 / 0

    def test_a_daemon_that_sends_without_end_keeps_nobody_waiting(self) -> None:
        with House(flooding) as house:
            client = rota.Client(house.path, timeout=SHORT)
            with self.assertRaises(rota.TimedOutError):
                client.join("orders")
            with self.assertRaises(rota.TimedOutError):
                client.recv(SHORT)
            self.assertIsNone(client.try_recv())
            with self.assertRaises(rota.TimedOutError):
                client.close()

    def test_time_outs_may_be_longer_than_threads_can_wait(self) -> None:
        with House(lambda house: house.accept().stream.close()) as house:
            client = rota.Reconnecting(house.path, backoff=rota.Backoff(1e300, 1e300))
            with self.assertRaises(rota.TimedOutError):
                client.recv(SHORT)
            threading.Timer(SHORT, client.close).start()
            with self.assertRaises(rota.ConnectionLostError):
                client.recv(1e300)


class Loop(unittest.IsolatedAsyncioTestCase):
    async def test_what_comes_before_the_gap_has_an_end(self) -> None:
        with House(too_much) as house, mock.patch.object(_gap, "EARLY_BYTES", 5000):
            client = rota.aio.Reconnecting(
                house.path, unread_bytes=1000, timeout=SHORT, backoff=HASTY
            )
            await client.connect()
            await client.join("orders")
            async with asyncio.timeout(PATIENCE):
                self.assertIsInstance(await client.recv(), rota.Reconnected)
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(client.recv(), 0.02)
            assert client.client is not None
            client.client._hang_up()

    async def test_a_daemon_that_sends_without_end_keeps_no_task_waiting(self) -> None:
        with House(flooding) as house:
            client = await rota.aio.Client(house.path, timeout=SHORT).connect()
            with self.assertRaises(rota.TimedOutError):
                await client.join("orders")
            self.assertIsNone(client.try_recv())
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(client.recv(), SHORT)
            with self.assertRaises(rota.TimedOutError):
                await client.close()

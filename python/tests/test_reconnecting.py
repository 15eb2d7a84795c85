"""Clients that connect again, with real daemons that are killed and come back."""

import asyncio
import threading
import time
import unittest
from collections.abc import Callable
from contextlib import suppress
from unittest import mock

import rota
from cluster import PATIENCE, Cluster
from rota._gap import may_pass

HASTY = rota.Backoff(0.01, 0.2)


def until_gap(client: rota.Reconnecting) -> rota.Reconnected:
    while True:
        event = client.recv(PATIENCE)
        if isinstance(event, rota.Reconnected):
            return event


async def until_gap_async(client: rota.aio.Reconnecting) -> rota.Reconnected:
    while True:
        event = await client.recv()
        if isinstance(event, rota.Reconnected):
            return event


class Threads(unittest.TestCase):
    def test_a_killed_daemon_that_comes_back_is_found_and_the_gap_said(self) -> None:
        with Cluster(2) as cluster:
            client = rota.Reconnecting(
                cluster.socket(2), name="lasting", membership=True, timeout=PATIENCE, backoff=HASTY
            )
            client.join("orders")
            client.send("orders", b"before")
            while not isinstance(event := client.recv(PATIENCE), rota.Message):
                pass
            self.assertEqual(event.payload, b"before")
            cluster.kill(2)
            with self.assertRaises(rota.TimedOutError):
                while True:
                    client.recv(0.3)
            self.assertIsNone(client.client)
            with self.assertRaises(rota.ConnectionLostError):
                client.send("orders", b"nobody takes this")
            cluster.restart(2)
            gap = until_gap(client)
            self.assertEqual(gap.name, "#lasting#n2")
            self.assertEqual((gap.unsettled_bytes, gap.not_joined), (0, {}))
            self.assertGreater(gap.duration, 0)
            client.send("orders", b"after")
            while not isinstance(event := client.recv(PATIENCE), rota.Message):
                pass
            self.assertEqual(event.payload, b"after")
            client.close()
            with self.assertRaises(rota.ConnectionLostError):
                client.recv(PATIENCE)

    def test_closing_ends_the_attempts_of_another_thread(self) -> None:
        with Cluster(1) as cluster:
            client = rota.Reconnecting(cluster.socket(1), backoff=HASTY)
            cluster.kill(1)
            ended = threading.Event()

            def wait() -> None:
                with suppress(rota.ConnectionLostError):
                    client.recv(PATIENCE)
                ended.set()

            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.1)
            client.close()
            self.assertTrue(ended.wait(PATIENCE))
            waiting.join()

    def test_a_refusal_that_stays_is_raised(self) -> None:
        self.assertFalse(may_pass(rota.RefusedError("no", 5)))
        self.assertTrue(may_pass(rota.RefusedError("no", 2)))
        self.assertFalse(may_pass(rota.TlsError("no")))
        self.assertTrue(may_pass(rota.ConnectionLostError("it has ended")))
        self.assertFalse(may_pass(rota.InvalidError("no")))

    def test_pauses_double_up_to_the_longest_and_are_never_less_than_half(self) -> None:
        backoff = rota.Backoff()
        self.assertEqual(backoff.pause(0, 0), backoff.first / 2)
        self.assertEqual(backoff.pause(2, 1), 4 * backoff.first)
        for attempts in (10, 40, 10_000):
            self.assertEqual(backoff.pause(attempts, 0), backoff.longest / 2)
            self.assertEqual(backoff.pause(attempts, 1), backoff.longest)

    def test_what_comes_while_groups_are_joined_again_waits(self) -> None:
        """A busy group fills what may lie unread over and over: that is no reason to begin once more."""
        with Cluster(2) as cluster:
            client = rota.Reconnecting(
                cluster.socket(2), timeout=PATIENCE, unread_bytes=2000, backoff=HASTY
            )
            for group in ("a", "b", "c"):
                client.join(group)
            over = threading.Event()

            def speak() -> None:
                speaker = cluster.client(1)
                while not over.is_set():
                    speaker.send(["a", "b"], b"x" * 1000)
                speaker.close()

            speaking = threading.Thread(target=speak)
            speaking.start()
            try:
                cluster.kill(2)
                cluster.restart(2)
                gap = until_gap(client)
                self.assertEqual(gap.not_joined, {})
                event = client.recv(PATIENCE)
                self.assertIsInstance(event, rota.Message)
                asker = cluster.client(1)
                self.assertEqual(asker.members("c"), [gap.name])
                asker.close()
            finally:
                over.set()
                speaking.join()

    def test_a_group_that_is_left_while_it_is_joined_again_is_left(self) -> None:
        with Cluster(2) as cluster:
            client = rota.Reconnecting(cluster.socket(2), timeout=PATIENCE, backoff=HASTY)
            client.join("orders")
            client.join("stock")
            cluster.kill(2)
            cluster.restart(2)
            ask = client._ask

            def leaving(request: Callable[[str], None], group: str) -> None:
                ask(request, group)
                if request.__name__ == "join" and group == "orders":
                    with self.assertRaises(rota.ConnectionLostError):
                        client.leave("orders")

            with mock.patch.object(client, "_ask", leaving):
                gap = until_gap(client)
            self.assertEqual(gap.not_joined, {})
            self.assertEqual(client.members("stock"), [gap.name])
            self.assertEqual(client.members("orders"), [])
            client.close()

    def test_an_attempt_that_is_interrupted_leaves_nothing_behind(self) -> None:
        with Cluster(2) as cluster:
            client = rota.Reconnecting(
                cluster.socket(2), name="lasting", timeout=PATIENCE, unread_bytes=0, backoff=HASTY
            )
            client.join("orders")
            client.join("stock")
            cluster.kill(2)
            cluster.restart(2)
            ask = client._ask
            speaker = cluster.client(1)
            #: Joins of the attempt that was interrupted.
            kept: list[Callable[[str], None]] = []

            def interrupted(request: Callable[[str], None], group: str) -> None:
                ask(request, group)
                speaker.send("orders", b"x")
                kept.append(request)
                raise KeyboardInterrupt

            with (
                mock.patch.object(client, "_ask", interrupted),
                self.assertRaises(KeyboardInterrupt),
            ):
                client.recv(PATIENCE)
            with self.assertRaises(rota.ConnectionLostError):
                kept[0]("stock")
            self.assertIsInstance(client.recv(PATIENCE), rota.Reconnected)
            speaker.close()
            client.close()


class Loop(unittest.IsolatedAsyncioTestCase):
    async def test_a_killed_daemon_that_comes_back_is_found_and_the_gap_said(self) -> None:
        with Cluster(2) as cluster:
            client = rota.aio.Reconnecting(
                cluster.socket(2), name="lasting", membership=True, timeout=PATIENCE, backoff=HASTY
            )
            async with client, asyncio.timeout(PATIENCE):
                await client.join("orders")
                cluster.kill(2)
                # Calls that end early lose nothing.
                with self.assertRaises(TimeoutError):
                    while True:
                        async with asyncio.timeout(0.3):
                            await client.recv()
                self.assertIsNone(client.client)
                with self.assertRaises(rota.ConnectionLostError):
                    await client.send("orders", b"nobody takes this")
                await asyncio.to_thread(cluster.restart, 2)
                gap = None
                while gap is None:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.01):
                            gap = await until_gap_async(client)
                self.assertEqual(gap.name, "#lasting#n2")
                await client.send("orders", b"after")
                while not isinstance(event := await client.recv(), rota.Message):
                    pass
                self.assertEqual(event.payload, b"after")

    async def test_a_gap_that_nobody_waits_for_stands_before_what_follows(self) -> None:
        with Cluster(1) as cluster:
            client = rota.aio.Reconnecting(cluster.socket(1), timeout=PATIENCE, backoff=HASTY)
            async with client, asyncio.timeout(PATIENCE):
                await client.join("orders")
                await client.join("stock")
                for _ in range(2):
                    earlier = client.client
                    await asyncio.to_thread(cluster.kill, 1)
                    await asyncio.to_thread(cluster.restart, 1)
                    waiting = asyncio.create_task(client.recv())
                    while client._attempt is None:
                        await asyncio.sleep(0)
                    waiting.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await waiting
                    while client._standing() in (None, earlier):
                        await asyncio.sleep(0.01)
                    # Nothing is sent behind a gap that has not been seen.
                    self.assertIsNone(client.client)
                    with self.assertRaises(rota.ConnectionLostError):
                        await client.send("orders", b"too early")
                    # It has been joined again by now.
                    await client.leave("stock")
                    gap = await client.recv()
                    assert isinstance(gap, rota.Reconnected), gap
                    await client.send("orders", b"after")
                    event = await client.recv()
                    assert isinstance(event, rota.Message), event
                    self.assertEqual(event.payload, b"after")
                    self.assertEqual(await client.members("orders"), [gap.name])
                    self.assertEqual(await client.members("stock"), [])
                    await client.join("stock")

    async def test_a_connection_lost_while_a_group_is_left_is_followed_by_another(self) -> None:
        with Cluster(1) as cluster:
            client = rota.aio.Reconnecting(cluster.socket(1), timeout=PATIENCE, backoff=HASTY)
            async with client, asyncio.timeout(PATIENCE):
                await client.join("orders")
                await client.join("stock")
                await asyncio.to_thread(cluster.kill, 1)
                await asyncio.to_thread(cluster.restart, 1)
                join, left = rota.aio.Client.join, []

                async def joining(to: rota.aio.Client, group: str) -> None:
                    await join(to, group)
                    if group == "orders":
                        with suppress(rota.ConnectionLostError):
                            await client.leave("orders")

                async def leaving(to: rota.aio.Client, group: str) -> None:
                    left.append(group)
                    raise rota.ConnectionLostError("it has ended")

                with (
                    mock.patch.object(rota.aio.Client, "join", joining),
                    mock.patch.object(rota.aio.Client, "leave", leaving),
                ):
                    gap = await until_gap_async(client)
                self.assertEqual((gap.not_joined, left), ({}, ["orders"]))
                await client.send(["orders", "stock"], b"after")
                event = await client.recv()
                assert isinstance(event, rota.Message), event
                self.assertEqual(await client.members("stock"), [gap.name])

    async def test_closing_ends_the_attempts(self) -> None:
        with Cluster(1) as cluster:
            client = await rota.aio.Reconnecting(cluster.socket(1), backoff=HASTY).connect()
            cluster.kill(1)
            waiting = asyncio.create_task(client.recv())
            await asyncio.sleep(0.1)
            await client.close()
            with self.assertRaises(rota.ConnectionLostError):
                await waiting


if __name__ == "__main__":
    unittest.main()

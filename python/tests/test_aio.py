"""The client for asyncio, with real daemons."""

import asyncio
import signal
import unittest

import rota
from cluster import PATIENCE, Cluster, message


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    cluster: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(2)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.cluster.stop()

    async def test_a_session(self) -> None:
        async with asyncio.timeout(PATIENCE):
            async with self.cluster.aio(1, "alice", membership=True) as alice:
                self.assertEqual(alice.name, "#alice#n1")
                await alice.join("orders")
                view = await alice.recv()
                self.assertIsInstance(view, rota.View)
                await alice.feed("orders", b"fed", service="safe", kind=3)
                await alice.flush()
                await alice.send(["orders", alice.name], bytearray(b"hello"))
                fed, hello = message(await alice.recv()), message(await alice.recv())
                self.assertEqual((fed.payload, fed.service, fed.kind), (b"fed", "safe", 3))
                self.assertEqual(hello.payload, b"hello")
                self.assertEqual(await alice.groups(), {"orders": 1})
                self.assertEqual(await alice.members("orders"), ["#alice#n1"])
                with self.assertRaises(rota.InvalidError):
                    await alice.join("no group")
                with self.assertRaises(rota.InvalidError):
                    await alice.send("orders", bytes(alice.largest_payload + 1))
                await alice.leave("orders")
                self.assertIsInstance(await alice.recv(), rota.SelfLeave)
                self.assertIsNone(alice.try_recv())

    async def test_two_daemons_deliver_in_one_order(self) -> None:
        count = 1000

        async def listen(node: int) -> list[bytes]:
            async with self.cluster.aio(node) as listener:
                await listener.join("order")
                ready.release()
                return [message(await listener.recv()).payload for _ in range(2 * count)]

        async def speak(node: int) -> None:
            async with self.cluster.aio(node) as speaker:
                for number in range(count):
                    await speaker.feed("order", b"%d %d" % (node, number))

        ready = asyncio.Semaphore(0)
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            heard = [tasks.create_task(listen(node)) for node in (1, 2)]
            for _ in heard:
                await ready.acquire()
            for node in (1, 2):
                tasks.create_task(speak(node))
        one, other = (task.result() for task in heard)
        self.assertEqual(one, other)
        for node in (1, 2):
            own = [payload for payload in one if payload.startswith(b"%d " % node)]
            self.assertEqual(own, [b"%d %d" % (node, number) for number in range(count)])

    async def test_a_hundred_tasks_share_a_client(self) -> None:
        tasks, each = 100, 20
        heard: list[bytes] = []

        async def work(client: rota.aio.Client, task: int) -> None:
            await client.join(f"own{task}")
            for number in range(each):
                await client.send("shared", b"%d %d" % (task, number) + bytes(5000))
                heard.append(message(await client.recv()).payload)
            self.assertEqual(await client.members(f"own{task}"), [client.name])

        async with asyncio.timeout(PATIENCE), self.cluster.aio(1) as client:
            await client.join("shared")
            async with asyncio.TaskGroup() as group:
                for task in range(tasks):
                    group.create_task(work(client, task))
        self.assertEqual(len(set(heard)), tasks * each)

    async def test_a_hundred_clients_in_one_loop(self) -> None:
        clients = 100

        async def work(node: int, number: int) -> None:
            async with self.cluster.aio(node) as client:
                await client.join("crowd")
                everybody.release()
                await go.wait()
                await client.send("crowd", b"%d" % number)
                payloads = {message(await client.recv()).payload for _ in range(clients)}
                self.assertEqual(payloads, {b"%d" % number for number in range(clients)})

        everybody, go = asyncio.Semaphore(0), asyncio.Event()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(work(1 + number % 2, number))
            for _ in range(clients):
                await everybody.acquire()
            go.set()

    async def test_what_is_cancelled_loses_no_event(self) -> None:
        async with asyncio.timeout(PATIENCE), self.cluster.aio(1) as client:
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(client.recv(), 0.05)
            receivers = [asyncio.create_task(client.recv()) for _ in range(10)]
            await asyncio.sleep(0)
            for receiver in receivers[::2]:
                receiver.cancel()
            for number in range(5):
                await client.send(client.name, b"%d" % number)
            results = await asyncio.gather(*receivers, return_exceptions=True)
            payloads = []
            for at, result in enumerate(results):
                if at % 2 == 0:
                    self.assertIsInstance(result, asyncio.CancelledError)
                else:
                    assert isinstance(result, rota.Message)
                    payloads.append(result.payload)
            self.assertEqual(payloads, [b"%d" % number for number in range(5)])

    async def test_a_request_that_is_cancelled_leaves_nothing_behind(self) -> None:
        async with asyncio.timeout(PATIENCE), self.cluster.aio(1) as client:
            joining = asyncio.create_task(client.join("never"))
            await asyncio.sleep(0)
            joining.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await joining
            await client.join("then")
            self.assertEqual(await client.members("then"), [client.name])

    async def test_sending_waits_for_credit_and_others_run_meanwhile(self) -> None:
        piece = bytes(16 << 10)
        async with (
            asyncio.timeout(PATIENCE),
            self.cluster.aio(1) as client,
            self.cluster.aio(2) as listener,
        ):
            await listener.join("credit")
            sent = 0
            with self.assertRaises(rota.WouldBlockError):
                while True:
                    client.try_send("credit", piece)
                    sent += 1
            turns = 0

            async def run() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            running = asyncio.create_task(run())
            for _ in range(100):
                await client.send("credit", piece)
            self.assertGreater(turns, 0)
            running.cancel()
            for _ in range(sent + 100):
                self.assertEqual(len(message(await listener.recv()).payload), len(piece))

    async def test_who_never_takes_events_is_stopped(self) -> None:
        async with asyncio.timeout(PATIENCE):
            async with self.cluster.aio(1, timeout=1.0, unread_bytes=10_000) as client:
                await client.join("pile")
                sent = 0
                with self.assertRaises(rota.UnreadError):
                    for _ in range(1000):
                        await client.send("pile", bytes(16 << 10))
                        sent += 1
                for _ in range(sent):
                    await client.recv()
                # With a task that takes them, it waits for that.
                taking = asyncio.create_task(self.take(client, 100))
                for _ in range(100):
                    await client.send("pile", bytes(16 << 10))
                await taking

    async def take(self, client: rota.aio.Client, count: int) -> None:
        for _ in range(count):
            await client.recv()

    async def test_closing_ends_the_iteration_of_another_task(self) -> None:
        async with asyncio.timeout(PATIENCE):
            client = await self.cluster.aio(1).connect()

            async def listen() -> int:
                return len([event async for event in client])

            listening = asyncio.create_task(listen())
            await asyncio.sleep(0)
            await client.close()
            await client.close()
            self.assertEqual(await listening, 0)
            with self.assertRaises(rota.ConnectionLostError):
                await client.send("end", b"")

    async def test_all_that_was_sent_before_closing_arrives(self) -> None:
        async with asyncio.timeout(PATIENCE), self.cluster.aio(2) as listener:
            await listener.join("all")
            async with self.cluster.aio(1) as client:
                for number in range(2000):
                    await client.feed("all", b"%d" % number)
            for number in range(2000):
                self.assertEqual(message(await listener.recv()).payload, b"%d" % number)

    async def test_there_is_no_connection_before_there_is_one(self) -> None:
        client = self.cluster.aio(1)
        with self.assertRaises(rota.ConnectionLostError):
            await client.send("orders", b"")
        with self.assertRaises(rota.ConnectError):
            await rota.aio.Client("/no/such/socket").connect()


class Dying(unittest.IsolatedAsyncioTestCase):
    async def test_a_killed_daemon_is_told_to_all_that_wait(self) -> None:
        with Cluster(1) as cluster:
            async with asyncio.timeout(PATIENCE):
                client = await cluster.aio(1).connect()
                waiting = [asyncio.create_task(client.recv()) for _ in range(5)]
                await asyncio.sleep(0)
                cluster.kill(1)
                for result in await asyncio.gather(*waiting, return_exceptions=True):
                    self.assertIsInstance(result, rota.ConnectionLostError)
                with self.assertRaises(rota.ConnectionLostError):
                    await client.join("orders")
                with self.assertRaises(rota.ConnectionLostError):
                    async for _ in client:
                        pass

    async def test_what_arrived_comes_before_the_loss_also_with_something_fed(self) -> None:
        with Cluster(1) as cluster:
            async with asyncio.timeout(PATIENCE):
                client = await cluster.aio(1).connect()
                await client.join("orders")
                async with cluster.aio(1) as speaker:
                    for number in range(5):
                        await speaker.send("orders", b"%d" % number)
                await asyncio.sleep(0.5)
                await client.feed("orders", b"fed")
                cluster.kill(1)
                heard = [message(await client.recv()).payload for _ in range(5)]
                self.assertEqual(heard, [b"%d" % number for number in range(5)])
                with self.assertRaises(rota.ConnectionLostError):
                    await client.recv()

    async def test_closing_fails_if_the_daemon_dies_before_it_has_read_everything(self) -> None:
        with Cluster(1) as cluster:
            async with asyncio.timeout(PATIENCE):
                client = await cluster.aio(1).connect()
                cluster.send_signal(1, signal.SIGSTOP)
                await client.send("orders", b"never read")
                asyncio.get_running_loop().call_later(0.3, cluster.kill, 1)
                with self.assertRaises(rota.ConnectionLostError):
                    await client.close()

    async def test_whatever_has_bytes_is_a_payload(self) -> None:
        with Cluster(1) as cluster:
            async with asyncio.timeout(PATIENCE), cluster.aio(1) as client:
                await client.join("bytes")
                for payload in (bytearray(b"one two"), memoryview(b"one two three")[:7]):
                    await client.feed("bytes", payload)
                    await client.send("bytes", payload)
                    client.try_send("bytes", payload)
                    for _ in range(3):
                        self.assertEqual(message(await client.recv()).payload, b"one two")


if __name__ == "__main__":
    unittest.main()

"""The client for threads, with real daemons."""

import array
import faulthandler
import importlib.metadata
import os
import signal
import threading
import time
import unittest
from collections.abc import Callable
from functools import partial

import rota
from cluster import PATIENCE, Cluster, next_message, next_view


def in_thread(body: Callable[[], None]) -> threading.Thread:
    """A thread that has begun, and fails its test when it fails: see `Failures`."""
    thread = threading.Thread(target=body)
    thread.start()
    return thread


class Blocking(unittest.TestCase):
    cluster: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(2)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.cluster.stop()

    def setUp(self) -> None:
        self.failures: list[str] = []
        before = threading.excepthook
        threading.excepthook = lambda args: self.failures.append(repr(args.exc_value))
        self.addCleanup(lambda: setattr(threading, "excepthook", before))
        self.addCleanup(lambda: self.assertEqual(self.failures, []))

    def test_a_child_neither_uses_nor_ends_the_connection(self) -> None:
        client = self.cluster.client(1)
        client.join("forked")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                client.try_recv()
            except rota.ConnectionLostError as lost:
                status = 0 if "forked" in str(lost) else 2
            finally:
                del client
                os._exit(status)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        client.send("forked", b"still")
        self.assertEqual(next_message(client).payload, b"still")

    def test_a_child_does_not_write_what_its_parent_was_to_write(self) -> None:
        def forget(client: rota.Client) -> None:
            del client

        def leave(client: rota.Client) -> None:
            with self.assertRaises(ZeroDivisionError), client:
                raise ZeroDivisionError

        def close(client: rota.Client) -> None:
            with self.assertRaises(rota.ConnectionLostError):
                client.close()

        listener = self.cluster.client(1)
        listener.join("fed")
        for number, end in enumerate([forget, leave, close]):
            clients = [self.cluster.client(1)]
            clients[0].feed("fed", b"once %d" % number)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    end(clients.pop())
                    status = 0
                finally:
                    os._exit(status)
            _, status = os.waitpid(child, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)
            clients[0].flush()
            clients[0].send("fed", b"last")
            heard = [next_message(listener).payload for _ in range(2)]
            self.assertEqual(heard, [b"once %d" % number, b"last"])

    def test_neither_a_child_nor_its_child_sends_anything(self) -> None:
        listener = self.cluster.client(1)
        listener.join("kept")
        client = self.cluster.client(1)
        client.feed("kept", b"of the parent")
        steps: list[Callable[[], object]] = [
            client.flush,
            lambda: client.feed("kept", b"of a child"),
            lambda: client.send("kept", b"of a child"),
            lambda: client.try_send("kept", b"of a child"),
            lambda: client.join("kept"),
            lambda: client.leave("kept"),
            lambda: client.members("kept"),
            client.close,
        ]

        def in_child(body: Callable[[], None]) -> None:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    body()
                    status = 0
                finally:
                    os._exit(status)
            _, status = os.waitpid(child, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)

        def fail() -> None:
            for step in steps:
                with self.assertRaisesRegex(rota.ConnectionLostError, "forked"):
                    step()

        def fail_and_serve() -> None:
            fail()
            in_child(fail)
            # It may have a client of its own, which is none of its child's.
            with self.cluster.client(1) as own:
                steps[:] = [partial(own.send, "kept", b"of a grandchild")]
                in_child(fail)
                own.send("kept", b"of the child")

        in_child(fail_and_serve)
        client.send("kept", b"last")
        heard = [next_message(listener).payload for _ in range(3)]
        self.assertEqual(heard, [b"of the child", b"of the parent", b"last"])

    def test_two_daemons_deliver_in_one_order(self) -> None:
        count = 1000
        listeners = [self.cluster.client(node) for node in (1, 2)]
        for listener in listeners:
            listener.join("order")
        heard: list[list[bytes]] = [[], []]

        def listen(at: int) -> None:
            for _ in range(2 * count):
                heard[at].append(next_message(listeners[at]).payload)

        def speak(node: int) -> None:
            with self.cluster.client(node) as speaker:
                for number in range(count):
                    speaker.feed("order", b"%d %d" % (node, number))

        threads = [in_thread(lambda at=at: listen(at)) for at in (0, 1)]  # type: ignore[misc]
        threads += [in_thread(lambda node=node: speak(node)) for node in (1, 2)]  # type: ignore[misc]
        for thread in threads:
            thread.join()
        self.assertEqual(heard[0], heard[1])
        for node in (1, 2):
            own = [payload for payload in heard[0] if payload.startswith(b"%d " % node)]
            self.assertEqual(own, [b"%d %d" % (node, number) for number in range(count)])
        for listener in listeners:
            listener.close()

    def test_a_message_says_all_of_itself(self) -> None:
        with self.cluster.client(1, "alice") as alice, self.cluster.client(2, "bob") as bob:
            bob.join("orders")
            to = ["orders", "#bob#n2", "#alice#n1"]
            alice.send(to, b"a\0b", service="safe", kind=7, self_discard=True)
            message = next_message(bob)
            self.assertEqual((message.sender, message.payload), ("#alice#n1", b"a\0b"))
            self.assertEqual((message.service, message.kind), ("safe", 7))
            self.assertTrue(message.self_discard)
            self.assertEqual(message.to, tuple(to))
            self.assertIs(message.payload, message.payload)
            self.assertEqual(repr(message), "Message(sender='#alice#n1', payload=b'a\\x00b')")
            alice.send("#bob#n2", bytearray(b"array"))
            match next_message(bob):
                case rota.Message(sender, payload):
                    self.assertEqual((sender, payload), ("#alice#n1", b"array"))
            self.assertIsNone(alice.try_recv())

    def test_whatever_has_bytes_is_a_payload(self) -> None:
        with self.cluster.client(1) as client:
            client.join("bytes")
            large = bytes(range(256)) * 1000
            changing = bytearray(large)
            words = array.array("I", range(1000))
            payloads: list[rota.Payload] = [
                large,
                changing,
                memoryview(large),
                memoryview(large)[1000:200_000],
                memoryview(memoryview(large)[7:])[7:],
                memoryview(large)[::2],
                memoryview(changing)[1:],
                memoryview(changing)[::-1],
                memoryview(words),
                memoryview(b""),
                memoryview(large)[9:9],
            ]
            for payload in payloads:
                for send in (client.send, client.feed, client.try_send):
                    send("bytes", payload)
                    self.assertEqual(next_message(client).payload, bytes(payload))
            for wrong in ("text", [1, 2], 7, None):
                with self.assertRaises(TypeError):
                    client.send("bytes", wrong)  # type: ignore[arg-type]
            # What is fed has been taken: nobody keeps it, and it may change.
            brief = bytearray(b"as it was")
            client.feed("bytes", brief)
            brief[0] = 255
            brief.append(1)
            self.assertEqual(next_message(client).payload, b"as it was")

    def test_the_version_is_that_of_the_package(self) -> None:
        self.assertEqual(rota.__version__, importlib.metadata.version("rota"))

    def test_a_large_payload_goes_through(self) -> None:
        with self.cluster.client(1) as alice, self.cluster.client(2) as bob:
            payload = os.urandom(alice.largest_payload)
            alice.send(bob.name, payload)
            self.assertEqual(next_message(bob).payload, payload)
            with self.assertRaises(rota.InvalidError):
                alice.send(bob.name, payload + b"!")

    def test_views_say_who_is_there(self) -> None:
        with self.cluster.client(1, "alice", membership=True) as alice:
            alice.join("room")
            view = next_view(alice, 1)
            self.assertEqual((view.group, view.members), ("room", ("#alice#n1",)))
            bob = self.cluster.client(2, "bob", membership=True)
            bob.join("room")
            view = next_view(alice, 2)
            self.assertEqual((view.cause, view.changed), ("join", "#bob#n2"))
            self.assertEqual(view.me, "#alice#n1")
            self.assertEqual(view.came_with_me, ("#alice#n1",))
            self.assertEqual(view.sets, ())
            self.assertEqual(next_view(bob, 2).id, view.id)
            self.assertEqual(alice.members("room"), ["#alice#n1", "#bob#n2"])
            self.assertEqual(alice.groups()["room"], 2)
            bob.leave("room")
            while not isinstance(left := bob.recv(PATIENCE), rota.SelfLeave):
                pass
            self.assertEqual(left.group, "room")
            view = next_view(alice, 1)
            self.assertEqual((view.cause, view.changed), ("leave", "#bob#n2"))
            bob.join("room")
            next_view(alice, 2)
            bob.close()
            view = next_view(alice, 1)
            self.assertEqual((view.cause, view.changed), ("disconnect", "#bob#n2"))
            alice.leave("room")
            self.assertEqual(alice.members("room"), [])

    def test_what_is_wrong_has_a_class_and_costs_nothing(self) -> None:
        socket = self.cluster.socket(1)
        with self.cluster.client(1, "twin") as twin:
            with self.assertRaises(rota.RefusedError) as refused:
                rota.Client(socket, name="twin")
            self.assertEqual(refused.exception.code, 2)
            self.assertIsInstance(refused.exception, (rota.ConnectError, ConnectionError))
            for call in (
                lambda: rota.Client(socket, name="not a name"),
                lambda: rota.Client(socket, service="best"),  # type: ignore[arg-type]
                lambda: rota.Client(socket, timeout=-1.0),
                lambda: twin.join("no group"),
                lambda: twin.send("#twin", b""),
                lambda: twin.send([], b""),
                lambda: twin.send(["orders"] * 101, b""),
                lambda: twin.send("orders", b"", service="best"),  # type: ignore[arg-type]
            ):
                with self.assertRaises(rota.InvalidError):
                    call()
            with self.assertRaises(TypeError):
                twin.send("orders", "text")  # type: ignore[arg-type]
            with self.assertRaises(OverflowError):
                twin.send("orders", b"", kind=65_536)
            self.assertEqual(twin.members("orders"), [])
        with self.assertRaises(rota.ConnectError):
            rota.Client("/no/such/socket")
        with self.assertRaises(rota.ConnectError):
            rota.Client("tcp:192.0.2.1:4000")

    def test_a_time_out_is_an_error_and_nothing_is_lost(self) -> None:
        with self.cluster.client(1) as client:
            for timeout in (0.0, 0.05):
                with self.assertRaises(rota.TimedOutError) as late:
                    client.recv(timeout)
                self.assertIsInstance(late.exception, TimeoutError)
            client.send(client.name, b"later")
            self.assertEqual(next_message(client).payload, b"later")

    def test_credit_runs_out_and_comes_back(self) -> None:
        with self.cluster.client(1) as client, self.cluster.client(2) as listener:
            listener.join("credit")
            piece = bytes(16 << 10)
            sent = 0
            with self.assertRaises(rota.WouldBlockError):
                while True:
                    client.try_send("credit", piece)
                    sent += 1
            self.assertGreater(sent, 1)
            # This one waits, and reads what gives credit back.
            for _ in range(200):
                client.send("credit", piece)
            for _ in range(sent + 200):
                self.assertEqual(len(next_message(listener).payload), len(piece))

    def test_who_never_takes_events_is_stopped(self) -> None:
        with self.cluster.client(1, unread_bytes=10_000) as client:
            client.join("pile")
            sent = 0
            with self.assertRaises(rota.UnreadError):
                for _ in range(1000):
                    client.send("pile", bytes(16 << 10))
                    sent += 1
            for _ in range(sent):
                next_message(client)
            client.send("pile", b"room again")
            self.assertEqual(next_message(client).payload, b"room again")

    def test_threads_share_a_client(self) -> None:
        senders, each = 8, 200
        with self.cluster.client(1) as client:
            client.join("threads")
            heard: list[bytes] = []
            lock = threading.Lock()
            left = threading.Semaphore(senders * each)

            def listen() -> None:
                while left.acquire(blocking=False):
                    payload = next_message(client).payload
                    with lock:
                        heard.append(payload)

            def speak(speaker: int) -> None:
                for number in range(each):
                    client.send("threads", b"%d %d" % (speaker, number) + bytes(2000))

            threads = [in_thread(listen) for _ in range(4)]
            threads += [
                in_thread(lambda speaker=speaker: speak(speaker))  # type: ignore[misc]
                for speaker in range(senders)
            ]
            for _ in range(10):
                self.assertEqual(client.members("threads"), [client.name])
            for thread in threads:
                thread.join()
            self.assertEqual(len(heard), senders * each)
            self.assertEqual(len(set(heard)), senders * each)

    def test_waiting_lets_other_threads_run(self) -> None:
        with self.cluster.client(1) as client:
            waiting = in_thread(lambda: next_message(client) and None)
            # This thread counts, while that one waits; if it could not, it would never send.
            for _ in range(100_000):
                pass
            self.assertTrue(waiting.is_alive())
            client.send(client.name, b"go on")
            waiting.join()

    def test_ctrl_c_ends_a_wait_and_loses_nothing(self) -> None:
        # Started in the background of a shell, a process ignores it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with self.cluster.client(1) as client:
            interrupt = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
            interrupt.start()
            with self.assertRaises(KeyboardInterrupt):
                client.recv(PATIENCE)
            interrupt.join()
            client.send(client.name, b"still here")
            self.assertEqual(next_message(client).payload, b"still here")

    def test_closing_ends_the_iteration_of_another_thread(self) -> None:
        client = self.cluster.client(1)
        client.join("end")
        heard: list[rota.Event] = []
        thread = in_thread(lambda: heard.extend(client))
        client.send("end", b"last")
        while not heard:
            time.sleep(0.01)
        client.close()
        client.close()
        thread.join()
        self.assertEqual(len(heard), 1)
        for call in (lambda: client.send("end", b""), client.recv, client.try_recv):
            with self.assertRaises(rota.ConnectionLostError):
                call()
        self.assertEqual(list(client), [])

    def test_all_that_was_sent_before_closing_arrives(self) -> None:
        with self.cluster.client(2) as listener:
            listener.join("all")
            with self.cluster.client(1) as client:
                for number in range(2000):
                    client.feed("all", b"%d" % number)
            for number in range(2000):
                self.assertEqual(next_message(listener).payload, b"%d" % number)

    def test_an_exception_hangs_up(self) -> None:
        with self.assertRaises(ZeroDivisionError), self.cluster.client(1, "once") as client:
            raise ZeroDivisionError
        with self.assertRaises(rota.ConnectionLostError):
            client.recv()


class Dying(unittest.TestCase):
    def test_a_killed_daemon_is_an_error_and_the_others_are_told(self) -> None:
        with Cluster(2) as cluster:
            alice = cluster.client(1, "alice", membership=True)
            bob = cluster.client(2, "bob", membership=True)
            alice.join("orders")
            bob.join("orders")
            next_view(alice, 2)
            cluster.kill(2)
            with self.assertRaises(rota.ConnectionLostError) as lost:
                for _ in bob:
                    pass
            self.assertIsInstance(lost.exception, ConnectionError)
            with self.assertRaises(rota.ConnectionLostError):
                bob.send("orders", b"lost")
            with self.assertRaises(rota.ConnectionLostError):
                bob.join("other")
            events: list[rota.Event] = []
            while not (events and isinstance(events[-1], rota.View)):
                events.append(alice.recv(PATIENCE))
            self.assertIsInstance(events[0], rota.Transitional)
            view = next_view(alice, 1) if len(events[-1].members) > 1 else events[-1]
            self.assertEqual((view.cause, view.changed), ("network", None))
            self.assertEqual(view.sets, (("#alice#n1",),))
            alice.close()

    def test_what_arrived_comes_before_the_loss_also_with_something_fed(self) -> None:
        with Cluster(1) as cluster:
            speaker = cluster.client(1)
            client = cluster.client(1)
            client.join("orders")
            for number in range(5):
                speaker.send("orders", b"%d" % number)
            speaker.close()
            time.sleep(0.5)
            client.feed("orders", b"fed")
            cluster.kill(1)
            heard = [next_message(client).payload for _ in range(5)]
            self.assertEqual(heard, [b"%d" % number for number in range(5)])
            with self.assertRaises(rota.ConnectionLostError):
                client.recv()

    def test_closing_fails_if_the_daemon_dies_before_it_has_read_everything(self) -> None:
        with Cluster(1) as cluster:
            client = cluster.client(1)
            cluster.send_signal(1, signal.SIGSTOP)
            client.send("orders", b"never read")
            threading.Timer(0.3, cluster.kill, [1]).start()
            with self.assertRaises(rota.ConnectionLostError):
                client.close()

    def test_threads_that_are_all_told_of_the_loss_do_not_wait_for_each_other(self) -> None:
        with Cluster(1) as cluster:
            client = cluster.client(1)
            cluster.kill(1)
            with self.assertRaises(rota.ConnectionLostError):
                client.recv()

        def fail(call: Callable[[], object]) -> None:
            until = time.monotonic() + 2
            while time.monotonic() < until:
                with self.assertRaises(rota.ConnectionLostError):
                    call()

        calls: list[Callable[[], object]] = [
            lambda: client.recv(timeout=0.001),
            client.try_recv,
            lambda: client.send("orders", b""),
            lambda: client.join("orders"),
        ]
        # Who waits for ever here holds the interpreter too: nothing but this ends the program then.
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        threads = [in_thread(partial(fail, call)) for call in calls]
        for thread in threads:
            thread.join()

    def test_ctrl_c_is_not_the_end_of_one_that_is_closing(self) -> None:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with Cluster(1) as cluster:
            client = cluster.client(1)
            # So the daemon does not hang up.
            cluster.send_signal(1, signal.SIGSTOP)
            closing = in_thread(client.close)
            interrupt = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
            interrupt.start()
            with self.assertRaises(KeyboardInterrupt):
                list(client)
            interrupt.join()
            cluster.send_signal(1, signal.SIGCONT)
            closing.join()


class Rules(unittest.TestCase):
    """Where not everybody may do everything."""

    def test_who_may_not_is_told_and_stays_connected(self) -> None:
        uid = f"[[daemon.access]]\nwho = {{ uid = {os.getuid()} }}\n"
        cluster = Cluster(1, uid + 'join = ["meet", "orders"]\nsend = ["orders"]\n')
        self.addCleanup(cluster.stop)
        client = cluster.client(1)
        client.join("orders")
        with self.assertRaises(rota.RequestError) as refused:
            client.join("trades")
        self.assertIn("not allowed", str(refused.exception))
        client.send("trades", b"nobody gets this")
        match client.recv(PATIENCE):
            case rota.NotSent(to, reason) as event:
                self.assertEqual((to, reason, event.kind), ("trades", "not allowed", 0))
            case other:
                self.fail(repr(other))
        client.send("orders", b"still connected")
        self.assertEqual(next_message(client).payload, b"still connected")


if __name__ == "__main__":
    unittest.main()

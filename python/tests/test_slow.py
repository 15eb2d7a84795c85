"""Clients that read too slowly."""

import unittest

import rota
from cluster import PATIENCE, Cluster, next_message, next_view

SETTINGS = 'message_bytes = 100000\nclient_queue_bytes = 1000000\nslow_clients = "skip"\n'


class Flood:
    """Somebody who sends to "g" more than one who does not read can take, and a member who sees it go."""

    def __init__(self, cluster: Cluster, watcher: rota.Client) -> None:
        self._sender = cluster.client(1, "sender")
        self._watcher = watcher
        self.sent = 0

    def until(self, causes: list[str]) -> None:
        """Sends until the watcher has had views with these causes."""
        seen: list[str] = []
        while seen != causes:
            for _ in range(20):
                self._sender.send("g", b"%d %s" % (self.sent, bytes(1000)))
                self.sent += 1
            heard = 0
            while heard < 20:
                match self._watcher.recv(PATIENCE):
                    case rota.Message():
                        heard += 1
                    case rota.View() as view if view.changed == "#slow#n1":
                        seen.append(view.cause)

    def end(self) -> None:
        """Says the last word."""
        self._sender.send("g", b"end")
        self._sender.close()


class Reading:
    """What a slow client gets."""

    def __init__(self) -> None:
        self.before: list[int] = []
        self.behind: list[int] = []
        self.skipped: list[rota.Skipped] = []
        self.warnings = 0

    def take(self, event: rota.Event) -> bool:
        """Whether there is more."""
        match event:
            case rota.Message(_, b"end"):
                return False
            case rota.Message(_, payload):
                number = int(payload.split(b" ")[0])
                (self.behind if self.skipped else self.before).append(number)
            case rota.Skipped() as skipped:
                self.skipped.append(skipped)
            case rota.Lagging() as lagging:
                assert 0 < lagging.waiting <= lagging.limit
                self.warnings += 1
        return True


class Slow(unittest.TestCase):
    def has_skipped_once(self, reading: Reading, sent: int) -> None:
        self.assertEqual(len(reading.skipped), 1)
        [skipped] = reading.skipped
        self.assertEqual(skipped.groups, ("g",))
        self.assertGreater(skipped.messages, 0)
        self.assertGreaterEqual(skipped.bytes, 1000 * skipped.messages)
        self.assertIn(f"messages={skipped.messages}", repr(skipped))
        match skipped:
            case rota.Skipped(messages, groups):
                self.assertEqual((messages, groups), (skipped.messages, ("g",)))
        self.assertEqual(reading.warnings, 1)
        count = len(reading.before)
        self.assertEqual(reading.before, list(range(count)))
        self.assertEqual(reading.behind, list(range(count + skipped.messages, sent)))

    def test_who_is_made_to_skip_knows_what_it_has_missed(self) -> None:
        for policy in (None, "skip"):
            with Cluster(1, SETTINGS) as cluster:
                address = cluster.socket(1)
                watcher = cluster.client(1, "watcher", membership=True)
                watcher.join("g")
                slow = rota.Client(address, name="slow", when_slow=policy, timeout=PATIENCE)
                slow.join("g")
                next_view(watcher, 2)
                flood = Flood(cluster, watcher)
                flood.until(["disconnect", "join"])
                flood.end()
                reading = Reading()
                while reading.take(slow.recv(PATIENCE)):
                    pass
                self.has_skipped_once(reading, flood.sent)
                slow.send(slow.name, b"as before")
                self.assertEqual(next_message(slow).payload, b"as before")

    def test_who_would_rather_be_disconnected_is(self) -> None:
        with Cluster(1, SETTINGS) as cluster:
            watcher = cluster.client(1, "watcher", membership=True)
            watcher.join("g")
            slow = rota.Client(cluster.socket(1), name="slow", when_slow="disconnect")
            slow.join("g")
            next_view(watcher, 2)
            flood = Flood(cluster, watcher)
            flood.until(["disconnect"])
            with self.assertRaises(rota.ConnectionLostError):
                while True:
                    self.assertNotIsInstance(slow.recv(PATIENCE), rota.Skipped)

    def test_another_policy_is_none(self) -> None:
        with self.assertRaises(rota.InvalidError):
            rota.Client("/no/such/socket", when_slow="wait")  # type: ignore[arg-type]


class SlowAio(unittest.IsolatedAsyncioTestCase):
    async def test_the_same_without_threads(self) -> None:
        with Cluster(1, SETTINGS) as cluster:
            watcher = cluster.client(1, "watcher", membership=True)
            watcher.join("g")
            async with rota.aio.Client(cluster.socket(1), name="slow", when_slow="skip") as slow:
                await slow.join("g")
                next_view(watcher, 2)
                flood = Flood(cluster, watcher)
                # Meanwhile this loop stands still, and nothing is read.
                flood.until(["disconnect", "join"])
                flood.end()
                reading = Reading()
                while reading.take(await slow.recv()):
                    pass
            Slow().has_skipped_once(reading, flood.sent)


if __name__ == "__main__":
    unittest.main()

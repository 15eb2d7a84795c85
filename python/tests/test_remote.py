"""Daemons of other hosts: certificates, good and bad."""

import datetime
import os
import socket
import tempfile
import unittest
from pathlib import Path

import rota
import trustme
from cluster import PATIENCE, Cluster, next_message

NAME = "daemon.example"


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Certificates:
    """Files with certificates of two roots."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(str(path / "ca.pem"))
        trustme.CA().cert_pem.write_to_path(str(path / "other.pem"))

    def issue(self, file: str, name: str, *, expired: bool = False) -> None:
        """A certificate and its key, of the first root."""
        year = 2001 if expired else 4000
        made = self._ca.issue_cert(
            name,
            not_before=datetime.datetime(2000, 1, 1),
            not_after=datetime.datetime(year, 1, 1),
        )
        with open(self._path / f"{file}.pem", "wb") as pem:
            for part in made.cert_chain_pems:
                pem.write(part.bytes())
        made.private_key_pem.write_to_path(str(self._path / f"{file}.key"))

    def tls(self, file: str, *, ca: str = "ca.pem", name: str | None = NAME) -> rota.Tls:
        """What a client with this certificate is told."""
        return rota.Tls(
            self._path / ca,
            certificate=self._path / f"{file}.pem",
            key=self._path / f"{file}.key",
            server_name=name,
        )

    def section(self, listen: str, file: str) -> str:
        """Of a daemon that listens there, with this certificate."""
        lines = ["[daemon.tls]", f'listen = ["{listen}"]', f'client_ca = "{self._path}/ca.pem"']
        lines += [f'certificate = "{self._path}/{file}.pem"', f'key = "{self._path}/{file}.key"']
        return "\n".join(lines)


class Remote(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)
        self.certificates = Certificates(self.path)
        self.certificates.issue("daemon", NAME)
        self.certificates.issue("alice", "alice.example")

    def start(self, file: str) -> str:
        """The address of a daemon with this certificate."""
        listen = free_address()
        cluster = Cluster(1, self.certificates.section(listen, file))
        self.addCleanup(cluster.stop)
        return f"tls:{listen}"

    def refused(self, address: str, tls: rota.Tls | None, words: str) -> None:
        with self.assertRaises(rota.TlsError) as refused:
            rota.Client(address, tls=tls, timeout=PATIENCE)
        self.assertIn(words, str(refused.exception))
        self.assertIsInstance(refused.exception, (rota.ConnectError, ConnectionError))

    def test_a_client_with_a_good_certificate_is_a_client_like_all_others(self) -> None:
        address = self.start("daemon")
        with rota.Client(address, name="far", tls=self.certificates.tls("alice")) as far:
            far.join("g")
            payload = os.urandom(far.largest_payload)
            for size in (0, 100, len(payload)):
                far.send("g", payload[:size])
                self.assertEqual(next_message(far).payload, payload[:size])
            for number in range(2000):
                far.feed("g", b"%d" % number)
            for number in range(2000):
                self.assertEqual(next_message(far).payload, b"%d" % number)

    def test_certificates_that_are_no_good_are_refused_with_a_class_of_their_own(self) -> None:
        address = self.start("daemon")
        self.certificates.issue("expired", "alice.example", expired=True)
        tls = self.certificates.tls
        self.refused(address, tls("alice", ca="other.pem"), "UnknownIssuer")
        self.refused(address, tls("alice", name="elsewhere.example"), "not valid for name")
        self.refused(address, tls("alice", name=None), "not valid for name")
        self.refused(address, tls("expired"), "xpired")
        without = rota.Tls(self.path / "ca.pem", server_name=NAME)
        self.refused(address, without, "ertificate")
        self.refused(address, None, "no certificates to trust")
        rota.Client(address, tls=tls("alice")).close()

    def test_a_daemon_whose_certificate_has_expired_is_not_trusted(self) -> None:
        self.certificates.issue("late", NAME, expired=True)
        self.refused(self.start("late"), self.certificates.tls("alice"), "xpired")

    def test_files_that_are_none_are_named(self) -> None:
        for ca, key, words in (
            ("no-such-file", None, "no-such-file"),
            ("alice.key", None, "alice.key"),
            ("ca.pem", "alice.key", "certificate"),
        ):
            with self.assertRaises(rota.InvalidError) as wrong:
                rota.Tls(self.path / ca, key=key and self.path / key)
            self.assertIn(words, str(wrong.exception))


class RemoteAio(unittest.IsolatedAsyncioTestCase):
    async def test_the_same_without_threads(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            certificates = Certificates(Path(directory))
            certificates.issue("daemon", NAME)
            certificates.issue("alice", "alice.example")
            listen = free_address()
            address = f"tls:{listen}"
            with Cluster(1, certificates.section(listen, "daemon")):
                foreign = rota.aio.Client(address, tls=certificates.tls("alice", ca="other.pem"))
                with self.assertRaises(rota.TlsError):
                    await foreign.connect()
                tls = certificates.tls("alice")
                async with rota.aio.Client(address, name="far", tls=tls) as far:
                    await far.join("g")
                    payload = os.urandom(far.largest_payload)
                    for _ in range(5):
                        await far.send("g", payload)
                        for number in range(200):
                            await far.send("g", b"%d" % number)
                        event = await far.recv()
                        assert isinstance(event, rota.Message)
                        self.assertEqual(event.payload, payload)
                        for number in range(200):
                            event = await far.recv()
                            assert isinstance(event, rota.Message)
                            self.assertEqual(event.payload, b"%d" % number)


if __name__ == "__main__":
    unittest.main()

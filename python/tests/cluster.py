"""Real daemons on this host. The environment's ROTA is the binary."""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import rota

#: Nothing in these tests takes longer, unless it hangs.
PATIENCE = 60.0
#: Of each node.
PORTS = 2


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> int:
    """The first of some ports that nobody has, below those that the system hands out by itself."""
    while True:
        base = random.randrange(8_000, 12_000)
        if all(is_free(base + port) for port in range(count)):
            return base


def drain(log: IO[str]) -> None:
    with log:
        log.read()


class Cluster:
    """Daemons n1, n2 and so on."""

    def __init__(self, nodes: int, rules: str = "") -> None:
        """`rules`: what clients may do; everything if there are none."""
        self._dir = tempfile.TemporaryDirectory()
        self._path = Path(self._dir.name)
        base = free_ports(nodes * PORTS)
        lines = ["cluster = 7", "insecure = true", 'transport = "unicast"']
        for node in range(1, nodes + 1):
            port = base + (node - 1) * PORTS
            lines += ["[[node]]", f"id = {node}", f'name = "n{node}"', 'address = "127.0.0.1"']
            lines += [f"data_port = {port}", f"token_port = {port + 1}"]
        lines += ["[daemon]", f'socket = "{self._path}/{{node}}.sock"']
        lines += [f'admin = "{self._path}/{{node}}.admin"']
        (self._path / "rota.toml").write_text("\n".join([*lines, rules]))
        self._daemons = {node: self._start(node) for node in range(1, nodes + 1)}
        self._meet()

    def _start(self, node: int) -> subprocess.Popen[str]:
        config = str(self._path / "rota.toml")
        command = [os.environ["ROTA"], "daemon", "--node", str(node), "--config", config]
        daemon = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert daemon.stderr is not None
        log = []
        for line in daemon.stderr:
            log.append(line)
            if "a daemon has started" in line:
                # What it says further must not fill the pipe.
                threading.Thread(target=drain, args=[daemon.stderr], daemon=True).start()
                return daemon
        raise AssertionError(f"daemon {node} did not start: {''.join(log)}")

    def _meet(self) -> None:
        """Waits until all daemons are of one configuration."""
        early = [self.client(node, membership=True) for node in self._daemons]
        for client in early:
            client.join("meet")
        for client in early:
            while True:
                event = client.recv(PATIENCE)
                if isinstance(event, rota.View) and len(event.members) == len(early):
                    break
        for client in early:
            client.close()

    def socket(self, node: int) -> str:
        """Where daemon n`node` listens."""
        return str(self._path / f"{node}.sock")

    def client(
        self,
        node: int,
        name: str | None = None,
        *,
        membership: bool = False,
        unread_bytes: int = 16_777_216,
    ) -> rota.Client:
        return rota.Client(
            self.socket(node),
            name=name,
            membership=membership,
            timeout=PATIENCE,
            unread_bytes=unread_bytes,
        )

    def aio(
        self,
        node: int,
        name: str | None = None,
        *,
        membership: bool = False,
        timeout: float = PATIENCE,
        unread_bytes: int = 16_777_216,
    ) -> rota.aio.Client:
        return rota.aio.Client(
            self.socket(node),
            name=name,
            membership=membership,
            timeout=timeout,
            unread_bytes=unread_bytes,
        )

    def send_signal(self, node: int, number: signal.Signals) -> None:
        self._daemons[node].send_signal(number)

    def kill(self, node: int) -> None:
        daemon = self._daemons[node]
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()

    def restart(self, node: int) -> None:
        """Starts a daemon that was killed; its socket is where it was."""
        self._daemons[node] = self._start(node)

    def stop(self) -> None:
        for node in self._daemons:
            self.kill(node)
        self._dir.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def message(event: rota.Event) -> rota.Message:
    """The event, which is a message."""
    assert isinstance(event, rota.Message), event
    return event


def next_message(client: rota.Client) -> rota.Message:
    """The next message; what a machine that has too much to do does to the network is passed over."""
    while True:
        event = client.recv(PATIENCE)
        if isinstance(event, rota.Message):
            return event


def next_view(client: rota.Client, members: int) -> rota.View:
    """The next view with so many members."""
    while True:
        event = client.recv(PATIENCE)
        if isinstance(event, rota.View) and len(event.members) == members:
            return event


if "ROTA" not in os.environ:
    sys.exit("these tests want the binary in the environment's ROTA")

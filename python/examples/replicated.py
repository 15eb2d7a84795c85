"""A state machine that the members of a group have in common: what `store.py` is made of.

Another copy of what `replicated` of the examples of `crates/client` is, which says how it works; copies in all languages meet.
"""

import os
import queue
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path
from typing import IO

import rota

COMMAND, OFFER, STATE = 1, 2, 3
#: A step waits for an event for so long, in seconds.
TURN = 0.01
#: So many commands behind a checkpoint are enough for another.
LONG = 100


class Machine(ABC):
    """What the copies have in common."""

    @abstractmethod
    def apply(self, sender: str, command: str) -> str:
        """Does a command of this member, the same at each copy; the answer."""

    @abstractmethod
    def write(self) -> str:
        """The whole state, as text."""

    @abstractmethod
    def read(self, text: str) -> None:
        """The opposite."""


def digest(text: str) -> str:
    """FNV-1a of 64 bits: to tell states apart, not to keep anybody from forging one."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


class State:
    """What the copies agree on: the machine, and which commands count."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        #: Of all views with a majority that the state has been through, the numbers of their rings added up.
        self.epoch = 0
        #: Commands that count.
        self.count = 0
        #: The newest command of each session that counts.
        self.sessions: dict[str, int] = {}

    def write(self) -> str:
        sessions = (f"{session} {number}\n" for session, number in sorted(self.sessions.items()))
        return f"{self.epoch} {self.count}\n{''.join(sessions)}\n{self.machine.write()}"

    def read(self, text: str) -> None:
        head, machine = text.split("\n\n", 1)
        first, *lines = head.split("\n")
        epoch, count = first.split(" ")
        pairs = (line.split(" ") for line in lines)
        self.sessions = {session: int(number) for session, number in pairs}
        self.epoch, self.count = int(epoch), int(count)
        self.machine.read(machine)

    def apply(self, sender: str, command: str) -> tuple[int, str] | None:
        """Does a command `SESSION NUMBER TEXT`, unless it counts already; its number and the answer."""
        session, number, text = command.split(" ", 2)
        if int(number) != self.sessions.get(session, 0) + 1:
            return None
        self.sessions[session] = int(number)
        self.count += 1
        return int(number), self.machine.apply(sender, text)


class Journal:
    """A file `LENGTH`, so many bytes of a state, and a line for each command behind it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[bytes] | None = None
        self.commands = 0

    def read(self) -> tuple[str, list[str]] | None:
        """What there is; a last line that was cut off is none."""
        try:
            length, rest = self.path.read_bytes().split(b"\n", 1)
        except FileNotFoundError:
            return None
        state, commands = rest[: int(length)], rest[int(length) :]
        whole = commands[: commands.rfind(b"\n") + 1].decode()
        return state.decode(), whole.splitlines()

    def checkpoint(self, state: str) -> None:
        """Begins anew with this state: the old file stays until the new one is on disk."""
        new = self.path.with_name(self.path.name + ".new")
        with new.open("wb") as file:
            file.write(b"%d\n" % len(state.encode()) + state.encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        if self.file is not None:
            self.file.close()
        self.file = self.path.open("ab", buffering=0)
        self.commands = 0

    def append(self, command: str) -> None:
        if self.file is not None:
            self.file.write(command.encode() + b"\n")
        self.commands += 1


def say(*words: object) -> None:
    print(*words, flush=True)


def connect(address: str, name: str) -> rota.Reconnecting:
    """A daemon may take a while to notice that an earlier copy of the same name has gone."""
    for _ in range(100):
        try:
            return rota.Reconnecting(address, name=name, membership=True)
        except rota.RefusedError:
            time.sleep(0.05)
    return rota.Reconnecting(address, name=name, membership=True)


class Copy:
    """One copy."""

    def __init__(
        self, machine: Machine, address: str, name: str, group: str, copies: str, journal: str
    ) -> None:
        self.client = connect(address, name)
        assert self.client.client is not None
        self.me = self.client.client.name
        self.group = group
        self.majority = int(copies) // 2 + 1
        self.state = State(machine)
        self.session = f"{self.me}/{time.time_ns():x}.{os.getpid()}"
        self.newest = 0
        #: Own commands that are not known to count.
        self.pending: deque[tuple[int, str]] = deque()
        self.view: rota.View | None = None
        #: No signal has said that the view ends.
        self.regular = False
        #: The members of the view have agreed on a state.
        self.agreed = False
        self.offers: dict[str, tuple[int, int, str]] = {}
        #: Commands behind the view, until there is a state for them.
        self.early: list[tuple[str, str]] = []
        self.journal = Journal(Path(journal))
        if (found := self.journal.read()) is not None:
            state, commands = found
            self.state.read(state)
            for line in commands:
                sender, command = line.split(" ", 1)
                self.state.apply(sender, command)
            say("replayed", self.state.count)
        self.client.join(group)

    def command(self, text: str) -> None:
        """Gives a command; its answer comes when it counts."""
        self.newest += 1
        self.pending.append((self.newest, text))
        self.send_command(self.newest, text)

    def send_command(self, number: int, text: str) -> None:
        self.send(COMMAND, f"{self.session} {number} {text}")

    def send(self, kind: int, text: str) -> None:
        try:
            self.client.send(self.group, text.encode(), kind=kind, service="safe")
        except rota.ConnectionLostError:
            # The next view makes good for it.
            pass

    def has_majority(self) -> bool:
        return self.view is not None and len(self.view.members) >= self.majority

    def is_sure(self) -> bool:
        """What counts here counts for good."""
        return self.agreed and self.regular and self.has_majority()

    def step(self) -> None:
        """Takes the next event, if there is one soon."""
        try:
            event = self.client.recv(TURN)
        except rota.TimedOutError:
            if self.client.client is None:
                # While there is no connection nothing is sure.
                self.view, self.agreed = None, False
            return
        match event:
            case rota.View():
                self.on_view(event)
            case rota.Transitional():
                self.regular = False
            case rota.Message():
                self.on_message(event)
            case rota.Reconnected():
                say("reconnected", event.unsettled_bytes, "bytes unsure")
                self.me = event.name
                self.view, self.agreed = None, False

    def on_view(self, view: rota.View) -> None:
        self.view = view
        self.regular, self.agreed = True, False
        self.offers.clear()
        self.early.clear()
        state = self.state
        offer = f"{view.id} {state.epoch} {state.count} {digest(state.write())}"
        self.send(OFFER, offer)

    def on_message(self, message: rota.Message) -> None:
        text = message.payload.decode()
        of_view = self.view is not None and not self.agreed
        match message.kind:
            case 1 if self.agreed:
                self.on_command(message.sender, text)
            case 1:
                self.early.append((message.sender, text))
            case 2:
                of, offer = text.split(" ", 1)
                if of_view and self.view is not None and of == self.view.id:
                    self.offered(self.view, message.sender, offer)
            case 3:
                of, state = text.split("\n", 1)
                if of_view and self.view is not None and of == self.view.id:
                    self.state.read(state)
                    self.agree(self.view)

    def offered(self, view: rota.View, sender: str, offer: str) -> None:
        """When all members have offered, either all have the same, or the one with the newest sends it to all."""
        epoch, count, of = offer.split(" ")
        self.offers[sender] = (int(epoch), int(count), of)
        if not all(member in self.offers for member in view.members):
            return
        # Names are ASCII: their order is that of their bytes.
        member = max(self.offers, key=lambda name: (*self.offers[name][:2], name))
        if len({of for _, _, of in self.offers.values()}) == 1:
            self.agree(view)
        elif member == self.me:
            self.send(STATE, f"{view.id}\n{self.state.write()}")

    def agree(self, view: rota.View) -> None:
        self.agreed = True
        if self.has_majority():
            ring = view.id.split("/")[0].split(">")[-1]
            self.state.epoch += int(ring.split(".")[0])
            say("agreed", self.state.count, "of", len(view.members))
        self.journal.checkpoint(self.state.write())
        early, self.early = self.early, []
        for sender, text in early:
            self.on_command(sender, text)
        self.send_again()

    def send_again(self) -> None:
        """The agreed state tells which own commands count; the others are sent again, in their order."""
        last = self.state.sessions.get(self.session, 0)
        while self.is_sure() and self.pending and self.pending[0][0] <= last:
            say("ok", self.pending.popleft()[0])
        for number, text in list(self.pending):
            if number > last:
                self.send_command(number, text)

    def on_command(self, sender: str, text: str) -> None:
        if not self.has_majority() or (done := self.state.apply(sender, text)) is None:
            return
        self.journal.append(f"{sender} {text}")
        if self.journal.commands >= LONG:
            self.journal.checkpoint(self.state.write())
        number, answer = done
        is_own = text.split(" ", 1)[0] == self.session
        if is_own and self.is_sure() and self.pending and self.pending[0][0] == number:
            self.pending.popleft()
            say("ok", number, answer)

    def dump(self) -> None:
        sure = "sure" if self.is_sure() else "unsure"
        say("state", self.state.count, digest(self.state.write()), sure)


def run(machine: Machine) -> None:
    """Lines of the input are commands, and `dump` shows what state it is in."""
    if len(sys.argv) != 6:
        sys.exit("usage: ADDRESS NAME GROUP COPIES JOURNAL")
    copy = Copy(machine, *sys.argv[1:])
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    over = False
    # At the end of the input all its commands have to count.
    while not over or copy.pending:
        copy.step()
        try:
            line = lines.get_nowait()
        except queue.Empty:
            continue
        if line is None:
            over = True
        elif line == "dump":
            copy.dump()
        else:
            copy.command(line)
    copy.client.close()

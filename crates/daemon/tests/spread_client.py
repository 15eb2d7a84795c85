"""A client of the protocol in docs/protocols/spread.md, written from its layouts alone, and what it
expects of a daemon. `spread_client.py ADDRESS` talks to the stand-in of the tests, which plays a change of
the network when it is asked to; `spread_client.py ADDRESS ADDRESS ADDRESS PID` to three real daemons n1, n2
and n3 of one cluster, and kills the third, which is process PID. An ADDRESS is a port on 127.0.0.1 or the
path of a Unix socket. It exits with 0 if everything was as it should be.
"""

import os
import signal
import socket
import struct
import sys

MARK = 0x80000080
FIFO, AGREED, SAFE = 0x04, 0x10, 0x20
SELF_DISCARD = 0x40
BY_JOIN, BY_LEAVE, BY_DISCONNECT, BY_NETWORK = 0x100, 0x200, 0x400, 0x800
VIEW, TRANSITION = 0x1000, 0x2000
JOIN, LEAVE, KILL = 0x10000, 0x20000, 0x40000
REJECT = 0x400000


class Refused(Exception):
    """The daemon said no; its argument is the code."""


class Closed(Exception):
    """The daemon closed the connection."""


def slot(name):
    assert len(name) < 32
    return name.ljust(32, b"\0")


def unslot(raw):
    return raw.split(b"\0", 1)[0]


class Client:
    """One connection. `order` is `<` for a little-endian client, `>` for a big-endian one."""

    def __init__(self, address, name, order="<", membership=True, version=(5, 0, 1), piece=None):
        self.order, self.piece = order, piece
        if address.isdigit():
            self.socket = socket.create_connection(("127.0.0.1", int(address)))
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address)
        self.socket.settimeout(20)
        major, minor, patch = version
        hello = bytes([major, minor])
        if major * 10000 + minor * 100 > 31400:
            hello += bytes([patch])
        self.write(hello + bytes([int(membership), len(name)]) + name)
        if version >= (3, 16, 0):
            length = self.status()
            self.methods = self.read(length)
            self.write(b"NULL".ljust(90, b"\0"))
        if self.status() != 1:
            raise AssertionError("neither accepted nor refused")
        self.daemon = tuple(self.read(3 if version >= (3, 15, 0) else 2))
        self.own = self.read(self.read(1)[0])

    def status(self):
        (code,) = struct.unpack("b", self.read(1))
        if code < 0:
            raise Refused(code)
        return code

    def read(self, length):
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise Closed
            data += more
        return data

    def write(self, data):
        step = self.piece or len(data)
        for at in range(0, len(data), step):
            self.socket.sendall(data[at : at + step])

    def flag(self, value):
        return value | (MARK if self.order == "<" else 0)

    def send(self, bits, groups, data=b"", mess_type=0, sender=None):
        head = struct.pack(self.order + "I", self.flag(bits)) + slot(sender or self.own)
        head += struct.pack(
            self.order + "III", len(groups), self.flag(mess_type << 8), len(data)
        )
        self.write(head + b"".join(map(slot, groups)))
        if data:
            self.write(data)

    def receive(self):
        head = self.read(48)
        raw = struct.unpack("<I", head[:4])[0] & MARK
        assert raw in (0, MARK), head[:4]
        order = "<" if raw else ">"
        number = lambda at: struct.unpack(order + "I", head[at : at + 4])[0]
        message = Message()
        message.order, message.bits = order, number(0) & ~MARK
        if message.bits & REJECT:
            message.old = struct.unpack(order + "I", self.read(4))[0] & ~MARK
        message.sender = unslot(head[4:36])
        message.groups = [unslot(self.read(32)) for _ in range(number(36))]
        hint_order = "<" if struct.unpack("<I", head[40:44])[0] & MARK else ">"
        hint = struct.unpack(hint_order + "I", head[40:44])[0]
        message.mess_type = (hint & ~MARK) >> 8 & 0xFFFF
        message.mismatch = hint_order != self.order
        message.data = self.read(number(44))
        return message

    def expect(self, bits, sender, groups, data=None):
        message = self.receive()
        assert message.bits == bits, (hex(message.bits), hex(bits))
        assert message.sender == sender, message.sender
        assert message.groups == groups, message.groups
        assert data is None or message.data == data, (len(message.data), message.data[:40])
        return message

    def closed(self):
        try:
            self.read(1)
        except (Closed, ConnectionResetError):
            return True
        return False


class Message:
    """What a client received."""

    def view(self):
        """Group id, number of sets, and the receiver's own set."""
        number = lambda at: struct.unpack(self.order + "I", self.data[at : at + 4])[0]
        at = 20 + number(16)
        names = [
            unslot(self.data[at + 4 + 32 * index :][:32]) for index in range(number(at))
        ]
        return (number(0), number(4), number(8)), number(12), names


def story(address, other, first, second):
    """Two clients of these byte orders meet in a group, talk, and part. One daemon serves both, or each
    has its own."""
    alice = Client(address, b"alice", first)
    assert alice.own == b"#alice#n1", alice.own
    assert alice.methods == b"NULL " and alice.daemon == (5, 0, 1)
    bob = Client(other, b"bob", second, piece=5)
    alice.send(JOIN, [b"grp"])
    view = alice.expect(VIEW | BY_JOIN, b"grp", [alice.own])
    assert len(view.data) == 56 and view.view()[1:] == (1, [alice.own])
    bob.send(JOIN, [b"grp"])
    views = [
        member.expect(VIEW | BY_JOIN, b"grp", [alice.own, bob.own]).view()
        for member in (alice, bob)
    ]
    assert views[0] == views[1] and views[0][2] == [bob.own], views

    talk(alice, bob, first != second)
    limits(alice, bob)
    if address == other:
        network(alice, bob)

    bob.send(LEAVE, [b"grp"])
    bob.expect(BY_LEAVE, b"grp", [], b"")
    view = alice.expect(VIEW | BY_LEAVE, b"grp", [alice.own])
    assert view.view()[2] == [bob.own]
    bob.send(JOIN, [b"grp"])
    alice.expect(VIEW | BY_JOIN, b"grp", [alice.own, bob.own])
    bob.send(KILL, [bob.own])
    view = alice.expect(VIEW | BY_DISCONNECT, b"grp", [alice.own])
    assert view.view()[2] == [bob.own]
    alice.send(KILL, [alice.own])
    assert alice.closed()


def talk(alice, bob, mismatch):
    alice.send(AGREED, [b"grp", bob.own], b"hello", mess_type=0x1234)
    for member, other in ((alice, False), (bob, mismatch)):
        got = member.expect(AGREED, alice.own, [b"grp", bob.own], b"hello")
        assert got.mess_type == 0x1234 and got.mismatch == other
    bob.send(SAFE | SELF_DISCARD, [b"grp"], b"not to me")
    alice.expect(SAFE | SELF_DISCARD, bob.own, [b"grp"], b"not to me")
    bob.send(FIFO, [alice.own], b"", mess_type=0xFFFF)
    got = alice.expect(FIFO, bob.own, [alice.own], b"")
    assert got.mess_type == 0xFFFF
    bob.send(AGREED | 0x100000 | VIEW, [bob.own], b"not a view")
    bob.expect(AGREED, bob.own, [bob.own], b"not a view")


def limits(alice, bob):
    long = bytes(range(256)) * 562 + b"x" * 48
    assert len(long) == 143920
    alice.send(AGREED, [bob.own], long)
    bob.expect(AGREED, alice.own, [bob.own], long)
    many = [b"group-%d" % at for at in range(99)] + [alice.own]
    alice.send(AGREED, many, b"x" * (143952 - 3200))
    alice.expect(AGREED, alice.own, many)


def network(alice, bob):
    alice.send(AGREED, [b"part-and-meet"])
    for member in (alice, bob):
        end = member.expect(TRANSITION, b"grp", [])
        assert len(end.data) == 12
        view = member.expect(VIEW | BY_NETWORK, b"grp", [alice.own, bob.own])
        assert view.view()[1:] == (2, [member.own]), view.view()
    bob.send(AGREED | SELF_DISCARD, [b"reject-me"], b"why", mess_type=3)
    got = bob.expect(REJECT | SELF_DISCARD, bob.own, [b"reject-me", bob.own], b"why")
    assert got.old == AGREED and got.mess_type == 3


def refusals(address):
    keeper = Client(address, b"keeper", piece=1)
    for name, version, code in (
        (b"keeper", (5, 0, 1), -6),
        (b"a name", (5, 0, 1), -5),
        (b"elevenchars", (5, 0, 1), -5),
        (b"old", (3, 0, 9), -7),
    ):
        try:
            Client(address, name, version=version)
        except Refused as refused:
            assert refused.args == (code,), (name, refused.args)
        else:
            raise AssertionError(name)
    assert Client(address, b"").own.endswith(b"#n1")
    assert Client(address, b"v314", version=(3, 14, 0)).daemon == (5, 0)
    assert Client(address, b"v315", version=(3, 15, 0)).daemon == (5, 0, 1)
    for bits, groups, sender in (
        (0x80010, [b"grp"], None),
        (AGREED | SAFE, [b"grp"], None),
        (JOIN, [b"#keeper#n1"], None),
        (AGREED, [b"x"] * 101, None),
        (AGREED, [b"grp"], b"#keeper#n1"),
    ):
        bad = Client(address, b"bad")
        bad.send(bits, groups, sender=sender)
        assert bad.closed(), (hex(bits), groups)
    keeper.send(AGREED, [keeper.own], b"still here")
    keeper.expect(AGREED, keeper.own, [keeper.own], b"still here")


def quiet(address):
    """A client that did not ask for membership gets messages only."""
    client = Client(address, b"quiet", membership=False)
    client.send(JOIN, [b"quiet-group"])
    client.send(AGREED, [b"quiet-group"], b"only this")
    client.expect(AGREED, client.own, [b"quiet-group"], b"only this")


def crash(first, second, third, process):
    """A daemon dies; the clients of the others are told who stays, and lose nothing."""
    clients = [
        Client(address, name, order)
        for address, name, order in ((first, b"ann", "<"), (second, b"ben", ">"), (third, b"cleo", "<"))
    ]
    for at, client in enumerate(clients):
        client.send(JOIN, [b"crash"])
        for member in clients[: at + 1]:
            names = [other.own for other in clients[: at + 1]]
            member.expect(VIEW | BY_JOIN, b"crash", names)
    last = clients[2]
    last.send(SAFE, [b"crash"], b"before")
    for client in clients:
        client.expect(SAFE, last.own, [b"crash"], b"before")
    os.kill(process, signal.SIGKILL)
    stay = clients[:2]
    ids = set()
    for client in stay:
        end = client.expect(TRANSITION, b"crash", [])
        assert len(end.data) == 12
        view = client.expect(VIEW | BY_NETWORK, b"crash", [other.own for other in stay]).view()
        assert view[2] == [other.own for other in stay], view
        ids.add(view[0])
    assert len(ids) == 1, ids
    stay[1].send(AGREED, [b"crash", last.own], b"after")
    for client in stay:
        client.expect(AGREED, stay[1].own, [b"crash", last.own], b"after")


def meet(addresses):
    """Waits until these daemons are of one configuration."""
    clients = [Client(address, b"early") for address in addresses]
    for client in clients:
        client.send(JOIN, [b"meet"])
    for client in clients:
        while len(client.receive().groups) < len(clients):
            pass
    for client in clients:
        client.send(KILL, [client.own])
        while not client.closed():
            pass


def main(addresses):
    if len(addresses) == 1:
        first = second = addresses[0]
    else:
        first, second, third, process = addresses
        meet(addresses[:3])
    for one in "<>":
        for two in "<>":
            story(first, second, one, two)
    refusals(first)
    quiet(first)
    if len(addresses) > 1:
        crash(first, second, third, int(process))
    print("as it should be")


if __name__ == "__main__":
    main(sys.argv[1:])

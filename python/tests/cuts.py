"""A client that does what the cutting tests of the daemons say, and says what it saw.

An order is a line on standard input: ADDRESS NAME STYLE MESSAGES BYTES CLOSES CA CERTIFICATE KEY. What comes of it are
lines on standard output: `sent NUMBER`, `got SENDER NUMBER`, `refused WHY`, `lost WHY`, `closed`, `unclosed WHY`, `end`.
"""

import asyncio
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass

import rota

#: So many messages are fed before they are written.
GATHERED = 8
#: So many events are taken between two messages: there may always be more.
TAKEN = 100
PATIENCE = 60.0


def say(*words: object) -> None:
    # In one piece: threads say something at the same time.
    sys.stdout.write(" ".join(str(word) for word in words).replace("\n", " ") + "\n")


@dataclass
class Order:
    address: str
    name: str
    style: str
    messages: int
    size: int
    closes: bool
    tls: rota.Tls

    @classmethod
    def read(cls, line: str) -> "Order":
        address, name, style, messages, size, closes, ca, certificate, key = line.split()
        tls = rota.Tls(ca, certificate=certificate, key=key, server_name="daemon.example")
        return cls(address, name, style, int(messages), int(size), closes == "1", tls)

    def payload(self, number: int) -> bytes:
        return (b"%d|" % number).ljust(self.size, b".")


def hear(event: rota.Event) -> None:
    assert isinstance(event, rota.Message), event
    say("got", event.sender, int(event.payload.split(b"|", 1)[0]))


def listen(client: rota.Client) -> None:
    while True:
        try:
            hear(client.recv())
        except rota.ConnectionLostError as lost:
            say("lost", lost)
            break
    try:
        say("wrong", client.recv())
    except rota.ConnectionLostError:
        pass


def send(client: rota.Client, order: Order, number: int) -> bool:
    try:
        if order.style == "feed":
            client.feed("g", order.payload(number))
        else:
            client.send("g", order.payload(number))
        say("sent", number)
        if number % GATHERED == 0:
            client.flush()
    except rota.ConnectionLostError:
        return False
    return True


def send_all(client: rota.Client, order: Order) -> None:
    for number in range(1, order.messages + 1):
        if not send(client, order, number):
            return


def take(client: rota.Client) -> None:
    try:
        for _ in range(TAKEN):
            if (event := client.try_recv()) is None:
                break
            hear(event)
    except rota.ConnectionLostError:
        pass


def use(client: rota.Client, order: Order) -> None:
    """Until it is lost or closed."""
    try:
        client.join("g")
    except rota.ConnectionLostError:
        listen(client)
        return
    if order.style == "halves":
        sending = threading.Thread(target=send_all, args=[client, order])
        sending.start()
        listen(client)
        sending.join()
        return
    for number in range(1, order.messages + 1):
        if not send(client, order, number):
            listen(client)
            return
        take(client)
    if not order.closes:
        listen(client)
        return
    try:
        client.close()
        say("closed")
    except rota.ConnectionLostError as lost:
        say("unclosed", lost)


def play(order: Order) -> None:
    try:
        client = rota.Client(order.address, name=order.name, timeout=PATIENCE, tls=order.tls)
    except (rota.ConnectError, rota.ConnectionLostError, rota.TlsError) as refused:
        say("refused", refused)
        return
    use(client, order)
    # It is lost, or closed: this frees it.
    with suppress(rota.ConnectionLostError):
        client.close()


async def listen_async(client: rota.aio.Client) -> None:
    while True:
        try:
            hear(await client.recv())
        except rota.ConnectionLostError as lost:
            say("lost", lost)
            break
    try:
        say("wrong", await client.recv())
    except rota.ConnectionLostError:
        pass


async def send_async(client: rota.aio.Client, order: Order, number: int) -> bool:
    try:
        if order.style == "feed":
            await client.feed("g", order.payload(number))
        else:
            await client.send("g", order.payload(number))
        say("sent", number)
        if number % GATHERED == 0:
            await client.flush()
    except rota.ConnectionLostError:
        return False
    return True


async def send_all_async(client: rota.aio.Client, order: Order) -> None:
    for number in range(1, order.messages + 1):
        if not await send_async(client, order, number):
            return


def take_async(client: rota.aio.Client) -> None:
    try:
        for _ in range(TAKEN):
            if (event := client.try_recv()) is None:
                break
            hear(event)
    except rota.ConnectionLostError:
        pass


async def use_async(client: rota.aio.Client, order: Order) -> None:
    """Until it is lost or closed."""
    try:
        await client.join("g")
    except rota.ConnectionLostError:
        await listen_async(client)
        return
    if order.style == "halves":
        await asyncio.gather(send_all_async(client, order), listen_async(client))
        return
    for number in range(1, order.messages + 1):
        if not await send_async(client, order, number):
            await listen_async(client)
            return
        take_async(client)
    if not order.closes:
        await listen_async(client)
        return
    try:
        await client.close()
        say("closed")
    except rota.ConnectionLostError as lost:
        say("unclosed", lost)


async def play_async(order: Order) -> None:
    client = rota.aio.Client(order.address, name=order.name, timeout=PATIENCE, tls=order.tls)
    try:
        await client.connect()
    except (rota.ConnectError, rota.ConnectionLostError, rota.TlsError) as refused:
        say("refused", refused)
        return
    await use_async(client, order)
    with suppress(rota.ConnectionLostError):
        await client.close()


def main() -> None:
    for line in sys.stdin:
        order = Order.read(line)
        if sys.argv[1] == "asyncio":
            asyncio.run(play_async(order))
        else:
            play(order)
        say("end")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

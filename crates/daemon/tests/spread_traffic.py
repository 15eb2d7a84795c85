"""A client of Spread's protocol that joins, leaves and sends at random, and says in lines of JSON what it
sends and what it is told: `spread_traffic.py ADDRESS NAME ID FIRST SEED`. Payloads begin with the message's
name, `ID.NUMBER`, numbered from FIRST. A line on standard input ends the sending; the end of the connection
or of the input ends the client.
"""

import hashlib
import json
import random
import select
import sys

from spread_client import BY_LEAVE, JOIN, LEAVE, SELF_DISCARD, TRANSITION, VIEW, Client, Closed

SERVICES = {0x02: "reliable", 0x04: "fifo", 0x08: "causal", 0x10: "agreed", 0x20: "safe"}
GROUPS = [f"g{number}" for number in range(5)]


def say(**fields):
    print(json.dumps(fields), flush=True)


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def names(groups):
    texts = [group.decode() for group in groups]
    return texts[0] if len(texts) == 1 else texts


def told(message):
    if message.bits & VIEW:
        members = [member.decode() for member in message.groups]
        say(ev="view", group=message.sender.decode(), members=members)
    elif message.bits & TRANSITION:
        say(ev="trans", group=message.sender.decode())
    elif message.bits & BY_LEAVE:
        say(ev="self_leave", group=message.sender.decode())
    else:
        service = SERVICES[message.bits & 0x3F]
        say(
            ev="deliver",
            group=names(message.groups),
            service=service,
            hash=digest(message.data),
        )


class Traffic:
    def __init__(self, client, identity, first, seed):
        self.client, self.identity, self.number = client, identity, first
        self.chance = random.Random(seed)
        self.wants = set()

    def act(self):
        group = self.chance.choice(GROUPS)
        draw = self.chance.random()
        if draw < 0.10 and group not in self.wants:
            self.wants.add(group)
            self.client.send(JOIN, [group.encode()])
        elif draw < 0.14 and self.wants:
            group = self.chance.choice(sorted(self.wants))
            self.wants.remove(group)
            self.client.send(LEAVE, [group.encode()])
        else:
            self.post({group, self.chance.choice(GROUPS)} if draw > 0.8 else {group})

    def post(self, groups):
        bits = self.chance.choice(list(SERVICES))
        discard = self.chance.random() < 0.1
        message = f"{self.identity}.{self.number}"
        self.number += 1
        data = f"{message}|".encode() + b"." * self.chance.randrange(300)
        groups = [group.encode() for group in sorted(groups)]
        fields = {"group": names(groups), "service": SERVICES[bits], "hash": digest(data)}
        say(ev="send", msg=message, discard=discard, **fields)
        self.client.send(bits | (SELF_DISCARD if discard else 0), groups, data)


def main(address, name, identity, first, seed):
    client = Client(address, name.encode(), order="<>"[int(seed) % 2])
    client.socket.settimeout(60)
    say(ev="name", name=client.own.decode())
    traffic = Traffic(client, identity, int(first), int(seed))
    sending = True
    while True:
        wait = traffic.chance.uniform(0.005, 0.05) if sending else 1
        ready, _, _ = select.select([client.socket, sys.stdin], [], [], wait)
        if client.socket in ready:
            told(client.receive())
        elif sys.stdin in ready:
            if not sys.stdin.readline():
                return
            sending = False
        elif sending:
            traffic.act()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Closed, ConnectionError):
        pass

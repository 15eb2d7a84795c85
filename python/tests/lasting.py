"""A client that outlives its daemon: lasting.py ADDRESS NAME GROUP.

It says `ready` when it is in the group, then each event: `got SENDER TEXT`, `view MEMBERS`, `gap UNSETTLED NAME
NOT-JOINED`. Each line of its input is sent to the group, or, as `@TO TEXT`, to another client; `unsent TEXT` where there is
no connection. At the input's end it closes.
"""

import sys
import threading

import rota


def say(*words: object) -> None:
    # In one piece: threads say something at the same time.
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def listen(client: rota.Reconnecting) -> None:
    for event in client:
        match event:
            case rota.Message(sender, payload):
                say("got", sender, payload.decode())
            case rota.View(_, members):
                say("view", len(members))
            case rota.Reconnected():
                say("gap", event.unsettled_bytes, event.name, len(event.not_joined))


def main(address: str, name: str, group: str) -> None:
    client = rota.Reconnecting(
        address, name=name, membership=True, timeout=60, backoff=rota.Backoff(0.01, 0.2)
    )
    client.join(group)
    say("ready")
    listening = threading.Thread(target=listen, args=[client])
    listening.start()
    for line in sys.stdin:
        to, text = group, line.rstrip("\n")
        if text.startswith("@"):
            to, text = text[1:].split(" ", 1)
        try:
            client.send(to, text.encode())
        except rota.ConnectionLostError:
            say("unsent", text)
    client.close()
    listening.join()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Everything that is said in a group: listen.py SOCKET GROUP."""

import sys

import rota

with rota.Client(sys.argv[1]) as client:
    client.join(sys.argv[2])
    for event in client:
        if isinstance(event, rota.Message):
            print(event.sender, event.payload.decode(), flush=True)

"""Lines in, messages out: say.py SOCKET GROUP."""

import sys

import rota

with rota.Client(sys.argv[1]) as client:
    for line in sys.stdin:
        client.send(sys.argv[2], line.rstrip("\n").encode())

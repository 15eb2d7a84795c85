"""Names for types."""

import os
from typing import Literal, TypeAlias

from rota._gap import Reconnected
from rota._native import (
    Excluded,
    Included,
    Lagging,
    Message,
    NotSent,
    SelfLeave,
    Skipped,
    Transitional,
    View,
)

#: The path of a Unix socket, `tcp:HOST:PORT`, or `tls:HOST:PORT`.
Address: TypeAlias = str | os.PathLike[str]

#: What a client is told.
Event: TypeAlias = (
    Message
    | View
    | Transitional
    | SelfLeave
    | NotSent
    | Lagging
    | Skipped
    | Excluded
    | Included
    | Reconnected
)

#: Which guarantee a message asks for.
Service: TypeAlias = Literal["reliable", "fifo", "causal", "agreed", "safe"]

#: What becomes of a client that takes its events too slowly, as far as the daemon allows it.
WhenSlow: TypeAlias = Literal["disconnect", "skip", "throttle-then-disconnect", "throttle-then-skip"]

#: What a message carries: whatever has bytes, an array too. Those of `bytes`, and of views of them, are not copied before
#: the client takes them; others are, as they are when the call begins.
Payload: TypeAlias = bytes | bytearray | memoryview

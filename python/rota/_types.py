"""Names for types."""

import os
from typing import Literal, TypeAlias

from rota._native import Lagging, Message, NotSent, SelfLeave, Transitional, View

#: The path of a Unix socket, or `tcp:HOST:PORT`.
Address: TypeAlias = str | os.PathLike[str]

#: What a client is told.
Event: TypeAlias = Message | View | Transitional | SelfLeave | NotSent | Lagging

#: Which guarantee a message asks for.
Service: TypeAlias = Literal["reliable", "fifo", "causal", "agreed", "safe"]

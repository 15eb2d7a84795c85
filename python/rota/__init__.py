"""A client of a Rota daemon: groups by name, and messages to them that all members get in one order.

`Client` is for threads, `rota.aio.Client` for asyncio. Both give events: `Message`, and with
`membership=True` also `View`, `Transitional` and `SelfLeave`; `NotSent` for a message that went to
nobody, `Lagging` as a warning, `Skipped` when events are missing, `Excluded` and `Included` while nothing can
come. `Reconnecting` and `rota.aio.Reconnecting` connect again, and say so by `Reconnected`.
"""

from rota import aio
from rota._errors import (
    ConnectError,
    ConnectionLostError,
    Error,
    InvalidError,
    RefusedError,
    RequestError,
    TimedOutError,
    TlsError,
    UnreadError,
    WouldBlockError,
)
from rota._gap import Backoff, Reconnected
from rota._native import (
    Client,
    Excluded,
    Included,
    Lagging,
    Message,
    NotSent,
    SelfLeave,
    Skipped,
    Tls,
    Transitional,
    View,
    __version__,
)
from rota._reconnecting import Reconnecting
from rota._types import Address, Event, Payload, Service, WhenSlow

__all__ = [
    "Address",
    "Backoff",
    "Client",
    "ConnectError",
    "ConnectionLostError",
    "Error",
    "Event",
    "Excluded",
    "Included",
    "InvalidError",
    "Lagging",
    "Message",
    "NotSent",
    "Payload",
    "Reconnected",
    "Reconnecting",
    "RefusedError",
    "RequestError",
    "SelfLeave",
    "Service",
    "Skipped",
    "TimedOutError",
    "Tls",
    "TlsError",
    "Transitional",
    "UnreadError",
    "View",
    "WhenSlow",
    "WouldBlockError",
    "__version__",
    "aio",
]

"""What a client that connects again says, and how long it waits."""

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rota._errors import (
    ConnectError,
    ConnectionLostError,
    Error,
    RefusedError,
    RequestError,
    TimedOutError,
    TlsError,
)


#: The most bytes of events that may come while groups are joined again, unless `unread_bytes` is more.
EARLY_BYTES = 1 << 30


@dataclass(frozen=True)
class Reconnected:
    """The connection was lost, and there is a new one.

    All that was ordered between the last event and the joins of the new connection is missing: messages and
    views. With membership the first view of each group has its members now; the application has to ask them
    for all that they have agreed on meanwhile.
    """

    #: How the earlier connection ended.
    lost: ConnectionLostError
    #: Seconds from the discovery of the loss until all joins were done.
    duration: float
    #: Bytes of messages, with their frames, that this client had sent and that the daemon had not said to have
    #: taken. Each of these messages was ordered or not, and so was each that the daemon had taken and that had
    #: no place in the order when it died; none is sent again.
    unsettled_bytes: int
    #: What others call this client now: without a name of its own it got a new one.
    name: str
    #: Groups that the daemon does not let it join again, and why.
    not_joined: Mapping[str, RequestError]


@dataclass(frozen=True)
class Backoff:
    """The pauses between attempts, in seconds: each is twice the one before, with a part drawn at random."""

    #: Between the loss and the first attempt.
    first: float = 0.05
    #: The longest.
    longest: float = 5.0

    def pause(self, attempts: int, chance: float) -> float:
        """From half of the time to all of it, as a chance from 0 to 1 says."""
        # Whoever doubles more often than this is at the longest; no thread can wait for longer than that.
        whole = min(self.first * 2.0 ** min(attempts, 64), self.longest, threading.TIMEOUT_MAX)
        return whole / 2 + whole / 2 * chance


#: Codes of refusals that stay until somebody changes something.
LASTING_CODES = frozenset({1, 3, 5, 8, 9, 11})


def may_pass(error: Error) -> bool:
    """Whether another attempt may succeed without anybody having changed a setting."""
    if isinstance(error, RefusedError):
        return error.code not in LASTING_CODES
    if isinstance(error, TlsError):
        return False
    return isinstance(error, ConnectError | ConnectionLostError | TimedOutError)


@dataclass
class Loss:
    """A lost connection, and the attempts to have another."""

    lost: ConnectionLostError
    unsettled_bytes: int
    backoff: Backoff
    since: float = field(default_factory=time.monotonic)
    attempts: int = 0
    next_attempt: float = 0.0

    def __post_init__(self) -> None:
        # A pause comes before the first attempt too: a daemon may let a client in and lose it at once, over and
        # over.
        self._pause()

    def failed(self) -> None:
        """An attempt has failed, and the next may not."""
        self.attempts += 1
        self._pause()

    def _pause(self) -> None:
        pause = self.backoff.pause(self.attempts, random.random())
        self.next_attempt = time.monotonic() + pause

    def gap(self, name: str, not_joined: Mapping[str, RequestError]) -> Reconnected:
        """The gap before a new connection."""
        duration = time.monotonic() - self.since
        return Reconnected(self.lost, duration, self.unsettled_bytes, name, not_joined)

import os
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Literal, Self, final

from rota._types import Address, Event, Payload, Service, WhenSlow

__all__ = [
    "Client",
    "Excluded",
    "Included",
    "Lagging",
    "Message",
    "NotSent",
    "SelfLeave",
    "Skipped",
    "Tls",
    "Transitional",
    "View",
    "_Request",
    "_Steps",
    "__version__",
]

__version__: str

@final
class Message:
    """A message, once, however many of its destinations the client matches."""

    __match_args__: ClassVar[tuple[Literal["sender"], Literal["payload"]]]
    @property
    def sender(self) -> str:
        """The private name of who sent it; not necessarily a member of anything."""
    @property
    def to(self) -> tuple[str, ...]:
        """All the destinations that it was sent to."""
    @property
    def payload(self) -> bytes:
        """The application's bytes."""
    @property
    def service(self) -> Service:
        """The guarantee it was sent with."""
    @property
    def kind(self) -> int:
        """The application's number for this kind of message."""
    @property
    def self_discard(self) -> bool:
        """Its sender did not want it back."""

@final
class View:
    """Who is in a group from here on."""

    __match_args__: ClassVar[tuple[Literal["group"], Literal["members"]]]
    @property
    def group(self) -> str: ...
    @property
    def id(self) -> str:
        """Names the view: equal ids are equal views."""
    @property
    def members(self) -> tuple[str, ...]:
        """Private names, in an order that is the same for all members."""
    @property
    def me(self) -> str:
        """The receiver itself."""
    @property
    def cause(self) -> Literal["join", "leave", "disconnect", "network"]:
        """Why there is a new view."""
    @property
    def changed(self) -> str | None:
        """Who joined, left or disconnected; None if the cause is the network."""
    @property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """If the cause is the network: members by who came together; otherwise empty."""
    @property
    def came_with_me(self) -> tuple[str, ...]:
        """Who came here from the receiver's last view with the same messages in it."""

@final
class Transitional:
    """Until the next view, delivery is only with respect to those who stay with this daemon."""

    __match_args__: ClassVar[tuple[Literal["group"], Literal["view_id"]]]
    @property
    def group(self) -> str: ...
    @property
    def view_id(self) -> str:
        """The id of the view that ends."""

@final
class SelfLeave:
    """The client has left the group: it gets nothing more of it.

    Without membership this comes only if it has not asked to: the rules do not let it be there any more.
    """

    __match_args__: ClassVar[tuple[Literal["group"]]]
    @property
    def group(self) -> str: ...

@final
class Excluded:
    """The client's daemon is in no view of the daemons.

    Until `Included` there are no messages and no views, and what the client sends waits. Only where the daemons
    order in primary views alone.
    """

    __match_args__: ClassVar[tuple[()]]

@final
class Included:
    """The daemon is in a view again."""

    __match_args__: ClassVar[tuple[Literal["missed"]]]
    @property
    def missed(self) -> bool:
        """What was delivered meanwhile is missing; otherwise everything goes on where it stopped."""

@final
class Lagging:
    """A warning: the client takes its events more slowly than they come."""

    __match_args__: ClassVar[tuple[Literal["waiting"], Literal["limit"]]]
    @property
    def waiting(self) -> int:
        """Bytes that waited for it at the daemon."""
    @property
    def limit(self) -> int:
        """At so many the daemon does what `when_slow` says."""

@final
class Skipped:
    """The client has missed something, because it took its events too slowly.

    For everybody else it has disconnected and joined its groups again, here in the order; with membership
    the views of that follow.
    """

    __match_args__: ClassVar[tuple[Literal["messages"], Literal["groups"]]]
    @property
    def messages(self) -> int:
        """So many messages."""
    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
    @property
    def groups(self) -> tuple[str, ...]:
        """Those of the client's groups that they went to, ascending."""

@final
class NotSent:
    """A message of this client, sent before, went to nobody."""

    __match_args__: ClassVar[tuple[Literal["to"], Literal["reason"]]]
    @property
    def to(self) -> str:
        """The first of its destinations that it may not go to."""
    @property
    def reason(self) -> str:
        """Why, for people."""
    @property
    def kind(self) -> int:
        """The number that the application gave it."""

@final
class Tls:
    """How a client and a daemon of another host know each other: files with certificates, as PEM.

    `ca`: the roots that the daemon's certificate has to come from.
    `certificate`, `key`: what the client shows; only some daemons take clients without.
    `server_name`: the name that the daemon's certificate has to be for; the host of the address otherwise.

    The files are read here; `InvalidError` if one cannot be used.
    """

    def __new__(
        cls,
        ca: str | os.PathLike[str],
        *,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        server_name: str | None = None,
    ) -> Self: ...

@final
class _Request: ...

@final
class Client:
    """A connection to a daemon. Several threads may use it at once.

    `name`: 1 to 10 characters from `$` to `~`, unique at the daemon; without one the daemon invents one.
    `membership`: whether there are views, transitional signals and self-leaves.
    `service`: the guarantee of messages that do not say.
    `insecure`: whether TCP may leave this machine, where everybody on the way can read and change all.
    `timeout`: seconds that the daemon may take to let the client in, and to answer a request.
    `unread_bytes`: about how many bytes of events may lie unread while a call waits.
    `when_slow`: what becomes of the client if it takes its events too slowly; what the daemon does with all.
    `tls`: for `tls:HOST:PORT`, how the two sides know each other.
    """

    def __new__(
        cls,
        address: Address,
        *,
        name: str | None = None,
        membership: bool = False,
        service: Service = "agreed",
        insecure: bool = False,
        timeout: float = 30.0,
        unread_bytes: int = 16_777_216,
        when_slow: WhenSlow | None = None,
        tls: Tls | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str:
        """What others call this client: `#client#daemon`."""
    @property
    def largest_payload(self) -> int:
        """The most bytes of one payload."""
    def unsettled_bytes(self) -> int:
        """Bytes of messages, with their frames, of which the daemon has not said that it took them."""
    def fileno(self) -> int:
        """The descriptor of the connection, to wait for and for nothing else."""
    def join(self, group: str) -> None:
        """Join, and wait until that has taken effect in the order."""
    def leave(self, group: str) -> None:
        """Leave, and wait until that has taken effect in the order."""
    def groups(self) -> dict[str, int]:
        """All groups that the daemon knows of, and how many members each has."""
    def members(self, group: str) -> list[str]:
        """The members of a group as far as the daemon knows, in the order of views."""
    def send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """Send to a group or a client (`"orders"`, `"#alice#n1"`), or to several; wait for credit."""
    def feed(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `send`, but a later call writes the message, together with others."""
    def try_send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `send`, but raise `WouldBlockError` if there is no credit now."""
    def flush(self) -> None:
        """Write all that was fed."""
    def recv(self, timeout: float | None = None) -> Event:
        """The next event; `TimedOutError` if there is none within so many seconds."""
    def try_recv(self) -> Event | None:
        """The next event, if there is one now."""
    def close(self) -> None:
        """Say bye, and wait until the daemon has read all that was sent."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Event: ...

@final
class _Steps:
    """A client step by step, for `rota.aio`: none of these calls waits."""

    def __new__(cls, client: Client) -> Self: ...
    def begin(self, what: str, group: str) -> _Request: ...
    def answer(self, request: _Request) -> object: ...
    def forget(self, request: _Request) -> None: ...
    def put(
        self,
        to: str | Sequence[str],
        payload: Payload,
        service: Service | None,
        kind: int,
        self_discard: bool,
        gather: bool,
    ) -> bool: ...
    def take(self) -> Event | None: ...
    def read(self) -> bool: ...
    def flush(self) -> bool: ...
    def is_full(self) -> bool: ...
    def bound_unread(self, bytes: int) -> int: ...
    def drain(self) -> bool: ...
    def begin_close(self) -> None: ...
    def hang_up(self) -> None: ...

"""A client for threads that connects again."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rota import _gap
from rota._errors import ConnectionLostError, Error, RequestError, TimedOutError, UnreadError
from rota._gap import Backoff, Loss, Reconnected, may_pass
from rota._native import Client, Tls, _Steps
from rota._types import Address, Event, Payload, Service, WhenSlow


class Reconnecting:
    """A client that connects again when its connection is lost, joins its groups again, and says so.

    `Reconnected` stands where something may be missing. Arguments are those of `Client`, and `backoff`; a
    failure of the first attempt is final.

    It connects again while `recv` waits, and nowhere else, so that nothing is sent or received behind a gap
    that the application has not seen. When another call raises `ConnectionLostError`, take events until
    `Reconnected`. A daemon may take a while to notice that the old connection is gone; a client with a name of
    its own is refused as long. Several threads may use it at once.
    """

    def __init__(
        self,
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
        backoff: Backoff | None = None,
    ) -> None:
        self._connect: Callable[[], Client] = lambda: Client(
            address,
            name=name,
            membership=membership,
            service=service,
            insecure=insecure,
            timeout=timeout,
            unread_bytes=unread_bytes,
            when_slow=when_slow,
            tls=tls,
        )
        self._unread_bytes = unread_bytes
        self._backoff = backoff or Backoff()
        self._process = os.getpid()
        self._receiving = threading.Lock()
        self._closed = threading.Event()
        # Of what follows.
        self._lock = threading.Lock()
        self._groups: set[str] = set()
        #: In front of all that the connection gives.
        self._gap: Reconnected | None = None
        self._state: Client | Loss = self._connect()

    @property
    def client(self) -> Client | None:
        """The connection, while there is one. Joins and leaves made there are not made again."""
        state = self._seen()
        return state if isinstance(state, Client) else None

    def _connected(self) -> Client:
        state = self._seen()
        if isinstance(state, Client):
            return state
        raise ConnectionLostError(str(state.lost), state.lost.code)

    def _seen(self) -> Client | Loss | Reconnected:
        """The connection, or the gap before it while `recv` has not given that."""
        # In this order: a connection comes behind its gap.
        state = self._state
        return self._gap or state

    def join(self, group: str) -> None:
        """As `Client.join`; and again on each new connection.

        Also if this one is lost meanwhile, or the answer does not come in time. Only a group that the daemon
        refuses is not joined again.
        """
        client = self._connected()
        # A connection that is lost meanwhile is followed by one that joins.
        with self._lock:
            self._groups.add(group)
        try:
            client.join(group)
        except (RequestError, ValueError):
            with self._lock:
                self._groups.discard(group)
            raise

    def leave(self, group: str) -> None:
        """As `Client.leave`; no new connection joins the group again."""
        with self._lock:
            self._groups.discard(group)
            state = self._state
        # Also where the gap has not been seen: that connection may have joined the group.
        client = state if isinstance(state, Client) else self._connected()
        client.leave(group)

    def groups(self) -> dict[str, int]:
        """As `Client.groups`."""
        return self._connected().groups()

    def members(self, group: str) -> list[str]:
        """As `Client.members`."""
        return self._connected().members(group)

    def send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `Client.send`."""
        self._connected().send(to, payload, service=service, kind=kind, self_discard=self_discard)

    def feed(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `Client.feed`."""
        self._connected().feed(to, payload, service=service, kind=kind, self_discard=self_discard)

    def try_send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `Client.try_send`."""
        self._connected().try_send(
            to, payload, service=service, kind=kind, self_discard=self_discard
        )

    def flush(self) -> None:
        """As `Client.flush`."""
        self._connected().flush()

    def recv(self, timeout: float | None = None) -> Event:
        """The next event; `TimedOutError` if there is none within so many seconds.

        An attempt to connect that has begun may take longer. Another error means that somebody has to change
        something before an attempt can succeed, as a certificate that has expired. Each further call tries once
        more.
        """
        if timeout is not None:
            timeout = min(max(timeout, 0), threading.TIMEOUT_MAX)
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._receiving.acquire(timeout=-1 if timeout is None else timeout):
            raise TimedOutError("no event in time")
        try:
            while True:
                if self._gap is not None:
                    gap, self._gap = self._gap, None
                    return gap
                state = self._state
                if isinstance(state, Loss):
                    self._wait(state, deadline)
                    continue
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                try:
                    return state.recv(left)
                except ConnectionLostError as lost:
                    self._lose(state, lost)
        finally:
            self._receiving.release()

    def _lose(self, client: Client, lost: ConnectionLostError) -> None:
        if self._closed.is_set() or self._process != os.getpid():
            raise lost
        with self._lock:
            self._state = Loss(lost, client.unsettled_bytes(), self._backoff)

    def _wait(self, loss: Loss, deadline: float | None) -> None:
        """Waits until the next attempt, and makes it."""
        until = loss.next_attempt if deadline is None else min(loss.next_attempt, deadline)
        if self._closed.wait(max(until - time.monotonic(), 0)):
            raise ConnectionLostError("this client has been closed")
        if time.monotonic() < loss.next_attempt:
            raise TimedOutError("no event in time")
        try:
            client = self._connect()
            try:
                self._rejoin(client, loss)
            except BaseException as error:
                # Ctrl-C too, unless all was done: the next attempt begins anew. It hangs up, whatever still holds it.
                if self._state is not client:
                    self._gap = None
                    client.__exit__(type(error), error, None)
                raise
        except Error as error:
            if not may_pass(error):
                raise
            loss.failed()

    def _rejoin(self, client: Client, loss: Loss) -> None:
        """Joins the groups again, and goes on by this connection, behind the gap."""
        with self._lock:
            joined = set(self._groups)
        not_joined = {}
        # Events wait in the client until the gap is known: very many, but not without end.
        steps = _Steps(client)
        usual = steps.bound_unread(max(_gap.EARLY_BYTES, self._unread_bytes))
        for group in sorted(joined):
            try:
                self._ask(client.join, group)
            except RequestError as error:
                not_joined[group] = error
                joined.discard(group)
        while True:
            with self._lock:
                if self._closed.is_set():
                    raise ConnectionLostError("this client has been closed")
                # What the application has left while it was joined again.
                if not (left := sorted(joined - self._groups)):
                    self._groups -= not_joined.keys()
                    steps.bound_unread(usual)
                    self._gap = loss.gap(client.name, not_joined)
                    self._state = client
                    return
            for group in left:
                try:
                    self._ask(client.leave, group)
                except RequestError as error:
                    # Another connection will not join it.
                    raise ConnectionLostError(f"a group was not left: {error}") from error
                joined.discard(group)

    def _ask(self, request: Callable[[str], None], group: str) -> None:
        """Joins or leaves. Where too many events come first, this connection cannot be used."""
        try:
            request(group)
        except UnreadError as error:
            raise ConnectionLostError(f"before the groups were joined: {error}") from error

    def close(self) -> None:
        """As `Client.close`; while there is no connection it only ends the attempts."""
        client = self._close()
        if client is not None:
            client.close()

    def _close(self) -> Client | None:
        """Ends the attempts; the connection, if there is one."""
        with self._lock:
            self._closed.set()
            return self._state if isinstance(self._state, Client) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        client = self._close()
        if client is not None:
            client.__exit__(kind, value, traceback)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """Ends when this side has closed."""
        try:
            return self.recv()
        except ConnectionLostError:
            if self._closed.is_set():
                raise StopIteration from None
            raise

"""The client for asyncio: no threads, the loop waits for the client's socket.

A call that is cancelled loses nothing: events stay for the next `recv`, a message was taken or not, and a
request may still take effect. Any number of tasks may use one client.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, cast

from rota import _gap, _native
from rota._errors import ConnectionLostError, Error, RequestError, TimedOutError, UnreadError
from rota._gap import Backoff, Loss, Reconnected, may_pass
from rota._types import Address, Event, Payload, Service, WhenSlow

__all__ = ["Client", "Reconnecting"]


class Client:
    """What `rota.Client` is for threads, with the same arguments, events and errors.

        async with rota.aio.Client("/run/rota/rota.sock") as client:
            await client.join("orders")
            async for event in client:
                ...

    While a call waits for credit or an answer, events are read and kept, up to `unread_bytes`; then it
    waits until another task has taken some, and raises `UnreadError` if that takes longer than `timeout`.
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
        tls: _native.Tls | None = None,
    ) -> None:
        self._timeout = timeout
        self._native: _native.Client | None = None
        self._stepwise: _native._Steps | None = None
        # In another thread: it may take a while until the daemon lets a client in.
        self._connect = lambda: _native.Client(
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
        self._waiting: set[asyncio.Future[None]] = set()
        self._watched = self._writing = False
        # First come, first served.
        self._receiving = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._closing = False

    async def connect(self) -> Self:
        """Connects; `async with` does it too."""
        self._native = await asyncio.to_thread(self._connect)
        self._stepwise = _native._Steps(self._native)
        self._loop = asyncio.get_running_loop()
        self._fd = self._native.fileno()
        self._process = os.getpid()
        return self

    @property
    def name(self) -> str:
        """What others call this client: `#client#daemon`."""
        return self._connected().name

    @property
    def largest_payload(self) -> int:
        """The most bytes of one payload."""
        return self._connected().largest_payload

    def unsettled_bytes(self) -> int:
        """Bytes of messages, with their frames, that the daemon has not said to have taken."""
        return self._connected().unsettled_bytes()

    async def join(self, group: str) -> None:
        """Joins, and waits until that has taken effect in the order."""
        await self._ask("join", group)

    async def leave(self, group: str) -> None:
        """Leaves, and waits until that has taken effect in the order."""
        await self._ask("leave", group)

    async def groups(self) -> dict[str, int]:
        """All groups that the daemon knows of, and how many members each has."""
        return cast(dict[str, int], await self._ask("groups", ""))

    async def members(self, group: str) -> list[str]:
        """The members of a group as far as the daemon knows, in the order of views."""
        return cast(list[str], await self._ask("members", group))

    async def send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """Sends to a group or a client (`"orders"`, `"#alice#n1"`), or to several; waits for credit."""
        async with self._sending:
            while not self._steps().put(to, payload, service, kind, self_discard, False):
                await self._progress()
        await self.flush()

    async def feed(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `send`, but a later call writes the message, together with others."""
        async with self._sending:
            while not self._steps().put(to, payload, service, kind, self_discard, True):
                await self._progress()

    def try_send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `send`, but raises `WouldBlockError` if there is no credit now."""
        self._connected().try_send(
            to, payload, service=service, kind=kind, self_discard=self_discard
        )

    async def flush(self) -> None:
        """Writes all that was fed."""
        while self._steps().flush():
            await self._progress()

    async def recv(self) -> Event:
        """The next event. When the connection is lost, the events that arrived before come first."""
        async with self._receiving:
            steps = self._steps()
            while (event := steps.take()) is None:
                await self._readable()
            # Perhaps others wait for events to be taken.
            self._wake()
            return event

    def try_recv(self) -> Event | None:
        """The next event, if there is one now."""
        event = self._connected().try_recv()
        # Perhaps it has read what others wait for.
        self._wake()
        return event

    async def close(self) -> None:
        """Says bye, and waits until the daemon has read all that was sent. Closing again is fine."""
        if self._closing:
            return
        steps = self._steps()
        self._closing = True
        try:
            async with asyncio.timeout(self._timeout):
                steps.begin_close()
                while not steps.drain():
                    await self._readable()
        except TimeoutError:
            text = "the daemon did not read everything in time"
            raise TimedOutError(text) from None
        finally:
            self._hang_up()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.close()
        else:
            self._closing = True
            self._hang_up()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Ends when this side has closed; raises when the connection is lost otherwise."""
        try:
            return await self.recv()
        except ConnectionLostError:
            if self._closing:
                raise StopAsyncIteration from None
            raise

    def _connected(self) -> _native.Client:
        if self._native is None:
            raise ConnectionLostError("there is no connection yet")
        return self._native

    def _steps(self) -> _native._Steps:
        if self._stepwise is None:
            raise ConnectionLostError("there is no connection yet")
        return self._stepwise

    async def _ask(self, what: str, group: str) -> object:
        steps = self._steps()
        request = steps.begin(what, group)
        try:
            async with asyncio.timeout(self._timeout):
                while (answer := steps.answer(request)) is None:
                    await self._progress()
            return answer
        except TimeoutError:
            raise TimedOutError("no answer in time") from None
        finally:
            steps.forget(request)

    async def _progress(self) -> None:
        """Waits until something has been read or written, and not while too much lies unread."""
        steps = self._steps()
        if not steps.is_full():
            await self._readable()
            return
        try:
            async with asyncio.timeout(self._timeout):
                while steps.is_full():
                    await self._woken()
        except TimeoutError:
            raise UnreadError("too many events are unread: take some first") from None

    def _bound_unread(self, most: int) -> int:
        """Sets how many bytes of events may lie unread, and returns how many that were."""
        return self._steps().bound_unread(most)

    async def _readable(self) -> None:
        """Waits until something has been read or written."""
        if not self._watched:
            self._watched = True
            self._loop.add_reader(self._fd, self._on_readable)
        if not self._writing:
            try:
                left = self._steps().flush()
            except ConnectionLostError:
                # It has read what arrived before; who looks for that next is told of the loss behind it.
                return
            if left:
                self._writing = True
                self._loop.add_writer(self._fd, self._on_writable)
        await self._woken()

    async def _woken(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def _on_readable(self) -> None:
        steps = self._steps()
        # What nobody waits for stays with the daemon.
        if not self._waiting or steps.is_full():
            self._watched = False
            self._loop.remove_reader(self._fd)
            return
        steps.read()
        self._wake()

    def _on_writable(self) -> None:
        try:
            left = self._steps().flush()
        except ConnectionLostError:
            # Reading says why.
            left = False
        if not left:
            self._writing = False
            self._loop.remove_writer(self._fd)
            self._wake()

    def _hang_up(self) -> None:
        # In a child of the process that connected, the loop's queue in the kernel is the parent's too.
        if self._stepwise is None or self._process != os.getpid():
            return
        if self._watched:
            self._loop.remove_reader(self._fd)
        if self._writing:
            self._loop.remove_writer(self._fd)
        self._watched = self._writing = False
        self._stepwise.hang_up()
        self._wake()


class Reconnecting:
    """What `rota.Reconnecting` is for threads, with the same arguments, events and errors.

        async with rota.aio.Reconnecting("/run/rota/rota.sock") as client:
            await client.join("orders")
            async for event in client:
                ...

    A `recv` that is cancelled loses nothing: an attempt to connect that has begun goes on, and a later `recv` gives
    its `Reconnected`. Until then other calls raise `ConnectionLostError`.
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
        tls: _native.Tls | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._make: Callable[[], Client] = lambda: Client(
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
        self._groups: set[str] = set()
        #: In front of all that the connection gives.
        self._gap: Reconnected | None = None
        self._state: Client | Loss | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._receiving = asyncio.Lock()
        self._closed = False

    async def connect(self) -> Self:
        """Connects for the first time; `async with` does it too. A failure of this attempt is final."""
        self._process = os.getpid()
        self._state = await self._make().connect()
        return self

    @property
    def client(self) -> Client | None:
        """The connection, while there is one. Joins and leaves made there are not made again."""
        state = self._seen()
        return state if isinstance(state, Client) else None

    def _standing(self) -> Client | None:
        """The connection, also while the gap before it has not been seen."""
        return self._state if isinstance(self._state, Client) else None

    def _seen(self) -> Client | Loss | Reconnected | None:
        """The connection, or the gap before it while `recv` has not given that."""
        return self._gap or self._state

    def _connected(self) -> Client:
        state = self._seen()
        if isinstance(state, Client):
            return state
        if state is None:
            raise ConnectionLostError("there is no connection yet")
        raise ConnectionLostError(str(state.lost), state.lost.code)

    async def join(self, group: str) -> None:
        """As `rota.Reconnecting.join`."""
        client = self._connected()
        # A connection that is lost meanwhile is followed by one that joins.
        self._groups.add(group)
        try:
            await client.join(group)
        except (RequestError, ValueError):
            self._groups.discard(group)
            raise

    async def leave(self, group: str) -> None:
        """As `Client.leave`; no new connection joins the group again."""
        self._groups.discard(group)
        # Also where the gap has not been seen: that connection may have joined the group.
        await (self._standing() or self._connected()).leave(group)

    async def groups(self) -> dict[str, int]:
        """As `Client.groups`."""
        return await self._connected().groups()

    async def members(self, group: str) -> list[str]:
        """As `Client.members`."""
        return await self._connected().members(group)

    async def send(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `Client.send`."""
        await self._connected().send(
            to, payload, service=service, kind=kind, self_discard=self_discard
        )

    async def feed(
        self,
        to: str | Sequence[str],
        payload: Payload,
        *,
        service: Service | None = None,
        kind: int = 0,
        self_discard: bool = False,
    ) -> None:
        """As `Client.feed`."""
        await self._connected().feed(
            to, payload, service=service, kind=kind, self_discard=self_discard
        )

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

    async def flush(self) -> None:
        """As `Client.flush`."""
        await self._connected().flush()

    async def recv(self) -> Event:
        """The next event. Errors are as those of `rota.Reconnecting.recv`."""
        async with self._receiving:
            while True:
                if self._gap is not None:
                    gap, self._gap = self._gap, None
                    return gap
                if isinstance(self._state, Loss):
                    await self._next_connection(self._state)
                    continue
                client = self._connected()
                try:
                    return await client.recv()
                except ConnectionLostError as lost:
                    if self._closed or self._process != os.getpid():
                        raise
                    self._state = Loss(lost, client.unsettled_bytes(), self._backoff)
                    client._hang_up()

    async def _next_connection(self, loss: Loss) -> None:
        if self._closed:
            raise ConnectionLostError("this client has been closed")
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._connect_again(loss))
        attempt = self._attempt
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():
                # By `close`, and not this call.
                raise ConnectionLostError("this client has been closed") from None
            raise
        finally:
            if attempt.done():
                self._attempt = None

    async def _connect_again(self, loss: Loss) -> None:
        while True:
            await asyncio.sleep(max(loss.next_attempt - time.monotonic(), 0))
            client = self._make()
            try:
                await client.connect()
                not_joined = await self._rejoin(client)
            except BaseException as error:
                client._hang_up()
                if not isinstance(error, Error) or not may_pass(error):
                    raise
                loss.failed()
                continue
            # Nothing else runs from the last look at the groups to here. Perhaps nobody waits for the gap by now.
            self._groups -= not_joined.keys()
            self._gap = loss.gap(client.name, not_joined)
            self._state = client
            self._attempt = None
            return

    async def _rejoin(self, client: Client) -> dict[str, RequestError]:
        joined = set(self._groups)
        not_joined = {}
        # Events wait in the client until the gap is known: very many, but not without end.
        usual = client._bound_unread(max(_gap.EARLY_BYTES, self._unread_bytes))
        for group in sorted(joined):
            try:
                await self._ask(client.join(group))
            except RequestError as error:
                not_joined[group] = error
                joined.discard(group)
        while left := sorted(joined - self._groups):
            # While they were joined again the application has left them.
            for group in left:
                try:
                    await self._ask(client.leave(group))
                except RequestError as error:
                    # Another connection will not join it.
                    raise ConnectionLostError(f"a group was not left: {error}") from error
                joined.discard(group)
        client._bound_unread(usual)
        return not_joined

    async def _ask(self, request: Coroutine[Any, Any, None]) -> None:
        """Joins or leaves. Where too many events come first, this connection cannot be used."""
        try:
            await request
        except UnreadError as error:
            raise ConnectionLostError(f"before the groups were joined: {error}") from error

    async def close(self) -> None:
        """As `Client.close`; while there is no connection it only ends the attempts."""
        self._closed = True
        if self._attempt is not None:
            self._attempt.cancel()
        client = self._standing()
        if client is not None:
            await client.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        client = self._standing()
        if kind is None or client is None:
            await self.close()
        else:
            self._closed = True
            await client.__aexit__(kind, value, traceback)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Ends when this side has closed."""
        try:
            return await self.recv()
        except ConnectionLostError:
            if self._closed:
                raise StopAsyncIteration from None
            raise

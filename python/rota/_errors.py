"""What is raised."""


class Error(Exception):
    """What went wrong. `code` is the daemon's reason, a number of its protocol; 0 if it gave none."""

    code: int

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class InvalidError(Error, ValueError):
    """A name is none, a payload too large, or there are no or too many destinations: nothing was sent.

    Or a file of certificates cannot be used.
    """


class ConnectError(Error, ConnectionError):
    """There is no connection: nobody listens there, or may not be reached."""


class RefusedError(ConnectError):
    """The daemon does not take this client; `code` says why."""


class TlsError(ConnectError):
    """One side does not take the other's certificate, or there is no TLS; the text says which."""


class ConnectionLostError(Error, ConnectionError):
    """The connection has ended, and stays so; `code` says why if the daemon did."""


class RequestError(Error):
    """The daemon would not join or leave; nothing has changed; `code` says why."""


class TimedOutError(Error, TimeoutError):
    """There was no event, or no answer, in time. A join or leave may still take effect."""


class WouldBlockError(Error):
    """There is no credit now, and the call was not to wait: take some events first."""


class UnreadError(Error):
    """While the call waited, more events arrived than may lie unread: take some, then call again.

    A message was not sent; a join or leave may still take effect.
    """

"""Reads the gateway configuration, and notices that there is a new one."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from .state import BadFeed, State, apply

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The server sends a comment every 15 seconds, so a longer silence is a lost connection.
_SILENCE = 45.0
_LARGEST_WAIT = 30.0


class Unavailable(Exception):
    """The server cannot be reached, or does not answer as it should."""


@dataclass(frozen=True)
class Server:
    """Where the configuration comes from."""

    url: str
    token_file: Path
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise ValueError(f"{self.url}: expected https, or http to a loopback address")

    def open(self, path: str, headers: dict[str, str], timeout: float) -> Any:
        """Sends a GET. The token is read each time, so that a new one needs no restart."""
        sent = {"Authorization": f"Bearer {_token(self.token_file)}", "Service-Version": "2", **headers}
        request = urllib.request.Request(self.url.rstrip("/") + path, headers=sent)
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects(), urllib.request.ProxyHandler({})]
        if self.url.startswith("https:"):
            cafile = str(self.ca_file) if self.ca_file else None
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cafile)))
        return urllib.request.build_opener(*handlers).open(request, timeout=timeout)


def _token(file: Path) -> str:
    """Reads a token. What cannot be sent is refused here: the error of the HTTP client would show it."""
    token = file.read_text(encoding="utf-8").strip()
    if token.split() != [token]:
        raise ValueError(f"{file} must contain only a token: it {'has white space or several lines' if token else 'is empty'}")
    if not (token.isascii() and token.isprintable()):
        raise ValueError(f"{file} must contain only a token: it has other characters than printable ASCII")
    return token


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def read(server: Server, state: State | None, announced: int = 0, timeout: float = 30.0) -> State | None:
    """Returns the current state, or none if it is still the given one. It has the revision that a stream has announced: of
    several servers, the one that is asked may not have it yet, and waits for it."""
    if state is not None:
        try:
            return _read(server, state, announced, timeout)
        except BadFeed:
            # The server may have been restored from an older copy. The whole configuration tells.
            pass
    return _read(server, None, announced, timeout)


def _read(server: Server, state: State | None, announced: int, timeout: float) -> State | None:
    path, headers = "/gateway/configuration", {}
    if state is not None:
        path, headers = f"{path}?since={state.revision}", {"If-None-Match": state.etag}
    if announced:
        headers["If-Revision-At-Least"] = str(announced)
    try:
        with server.open(path, headers, timeout) as response:
            return apply(state, json.load(response), response.headers.get("ETag", ""))
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 304:
                return None
            raise Unavailable(f"{error.code} {_message(error)}") from error
    except BadFeed:
        raise
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unavailable(str(error)) from error


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["msg"])
    except (OSError, ValueError, KeyError, TypeError):
        return error.reason


class Watcher(threading.Thread):
    """Calls back with the revision when there is a new one, as long as the server can be watched, and with 0 when the stream
    is lost. It is only a hint: who is called reads the configuration, and does that from time to time anyway."""

    def __init__(self, server: Server, wake: Callable[[int], None]) -> None:
        super().__init__(name="watcher", daemon=True)
        self._server, self._wake = server, wake
        self._pause = threading.Event()

    def run(self) -> None:
        wait = 0.0
        while True:
            try:
                self._follow()
                wait = 0.0
            except urllib.error.HTTPError as error:
                # A server without this endpoint may be replaced by one that has it.
                wait = _LARGEST_WAIT if error.code in (403, 404) else backed_off(wait)
                error.close()
            except (OSError, ValueError, http.client.HTTPException):
                wait = backed_off(wait)
            # What was missed while the connection was lost.
            self._wake(0)
            self._pause.wait(jittered(max(wait, 0.5)))

    def _follow(self) -> None:
        with self._server.open("/watch", {"Accept": "text/event-stream"}, _SILENCE) as response:
            for line in response:
                # The start of the stream has the current revision, and the event `revision` the new one.
                field, _, value = line.rstrip(b"\r\n").partition(b": ")
                if field == b"id":
                    self._wake(int(value))


def backed_off(wait: float) -> float:
    """Returns the wait after another failure."""
    return min(max(1.0, 2 * wait), _LARGEST_WAIT)


def jittered(wait: float) -> float:
    """Returns about this wait, so that gateways do not all come back at the same moment."""
    return wait * random.uniform(0.5, 1.0)

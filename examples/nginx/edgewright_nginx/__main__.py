"""Follows the gateway configuration of an edgewright server and serves it with nginx."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path

from . import state as states
from .choice import Chooser
from .feed import Server, Unavailable, Watcher, backed_off, jittered, read
from .install import Failed, Nginx, find
from .mapping import BadMapping
from .mapping import read as read_mapping
from .render import Refused, Settings
from .state import BadFeed, State


class Consumer:
    """The configuration that was received last, and the one that is served."""

    def __init__(self, server: Server, nginx: Nginx, settings: Settings, mapping: Path) -> None:
        self._server, self._nginx, self._mapping = server, nginx, mapping
        self._chooser = Chooser(nginx, settings)
        self._received: State | None = None
        self._edges: dict[str, states.Edge] = {}
        self._said: dict[str, str] = {}

    def start(self) -> None:
        """Serves what was served last, whether or not the server can be reached."""
        self._nginx.prepare()
        self._received = states.load(self._file)
        received = self._received.edges if self._received else {}
        self._edges = states.load_edges(self._served_file) or received
        try:
            if self._nginx.readdressed():
                # nginx cannot change from one address to all of them while it runs.
                self._nginx.stop()
            elif self._nginx.run():
                self._say("disk", "serving the last good configuration, from the disk")
        except Failed as error:
            self._say("disk", f"cannot serve the configuration from the disk: {error}")

    def look(self, announced: int = 0) -> tuple[bool, bool]:
        """Serves the current configuration, which has the announced revision. Returns whether the server answered, and whether
        what it has is served."""
        reached = True
        try:
            self._received = read(self._server, self._received, announced) or self._received
            self._said.pop("feed", None)
        except (Unavailable, BadFeed, OSError) as error:
            reached = False
            self._say("feed", f"cannot read the configuration from {self._server.url}: {error}\n  {self._meanwhile()}")
        served = self._received is not None and self._serve(self._received)
        return reached, reached and served

    def _serve(self, received: State) -> bool:
        try:
            mapping = read_mapping(self._mapping)
            served = self._chooser.choose(received, self._edges, mapping, datetime.now(timezone.utc))
            if self._nginx.install(served.files, received.revision):
                part = " in part" if served.held else ""
                print(f"serving revision {received.revision}{part}", file=sys.stderr, flush=True)
                states.save(self._file, received)
            self._edges = served.edges
            states.save_edges(self._served_file, self._edges)
            self._said.pop("serve", None)
            if served.held:
                held = "\n".join(f"  {reason}" for reason in served.held)
                self._say("held", f"not served as asked, without effect on other edges:\n{held}")
            else:
                self._said.pop("held", None)
            return not served.held
        except Refused as refused:
            reason = "\n" + "\n".join(f"  {reason}" for reason in refused.reasons)
        except (Failed, BadMapping, OSError) as error:
            reason = f" {error}"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f" unexpected content: {error!r}"
        # What is held is told again when the refusal is over.
        self._said.pop("held", None)
        goes_on = f"refused revision {received.revision}, serving the last good one"
        self._say("serve", f"{goes_on if self._nginx.running() else 'nothing is served'}:{reason}")
        return False

    def _meanwhile(self) -> str:
        """What is served while the server cannot be read, and what to do."""
        if self._nginx.running():
            return "still serving the last good configuration; trying again"
        return (
            "nothing is served yet; trying again. Check that the server runs at this URL, and that "
            f"{self._server.token_file} has the token of a key with the role gateway"
        )

    def _say(self, about: str, text: str) -> None:
        """Says something once, until it is over or different."""
        if self._said.get(about) != text:
            self._said[about] = text
            print(text, file=sys.stderr, flush=True)

    @property
    def _file(self) -> Path:
        return self._nginx.folder / "state.json"

    @property
    def _served_file(self) -> Path:
        return self._nginx.folder / "served.json"


def main(arguments: list[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. nginx goes on serving, unless `--stop-nginx` is given."""
    parser = argparse.ArgumentParser(prog="edgewright_nginx", description=__doc__)
    parser.add_argument("--server", required=True, metavar="URL", help="https, or http to a loopback address")
    parser.add_argument("--token-file", required=True, type=Path, help="token of a key with the role gateway")
    parser.add_argument("--ca-file", type=Path, help="certificate authorities of the server")
    parser.add_argument("--mapping", required=True, type=Path, help="JSON with the backends and IP policies")
    parser.add_argument("--folder", required=True, type=Path, help="where configurations, keys and state are kept")
    parser.add_argument("--address", action="append", help="address to listen on (default: 127.0.0.1); repeatable")
    parser.add_argument("--nginx", default="nginx", help="the nginx program")
    parser.add_argument("--poll", type=float, default=15.0, help="seconds between looks without a hint (default: 15)")
    parser.add_argument("--once", action="store_true", help="look once; exit with 1 if anything is not served as it should be")
    parser.add_argument("--stop-nginx", action="store_true", help="stop nginx at the end")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    folder = options.folder.resolve()
    settings = Settings(folder, tuple(options.address or ["127.0.0.1"]), os.geteuid() == 0)
    program = find(options.nginx)
    nginx = Nginx(folder, program or options.nginx, settings.addresses)
    if program is None:
        goes_on = "nginx goes on unchanged" if nginx.running() else "nothing is served"
        return _failed(
            f"{goes_on}: the program {options.nginx} was not found in PATH or /usr/sbin. "
            "Install nginx 1.21 or newer, or name it with --nginx"
        )
    if len(os.fsencode(nginx.status)) > 100:
        parser.error("--folder: the path is too long for a socket in it")
    try:
        server = Server(options.server, options.token_file, options.ca_file)
    except ValueError as error:
        return _failed(str(error))
    consumer = Consumer(server, nginx, settings, options.mapping)
    consumer.start()
    try:
        if options.once:
            return 0 if all(consumer.look()) else 1
        _follow(consumer, server, options.poll)
        return 0
    finally:
        if options.stop_nginx:
            nginx.stop()


def _failed(reason: str) -> int:
    print(reason, file=sys.stderr, flush=True)
    return 1


def _follow(consumer: Consumer, server: Server, poll: float) -> None:
    """Looks again and again, until SIGTERM or SIGINT."""
    wake, stopped = threading.Event(), threading.Event()
    announced = 0

    def hint(revision: int) -> None:
        nonlocal announced
        announced = revision or announced
        wake.set()

    def stop(*_: object) -> None:
        stopped.set()
        wake.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    Watcher(server, hint).start()
    wait = 0.0
    while not stopped.is_set():
        # Cleared first: a hint during a look causes another one.
        wake.clear()
        needed, announced = announced, 0
        # Asked for once: a store that was restored has the revision no more, and another look takes what there is.
        reached, _ = consumer.look(needed)
        wait = 0.0 if reached else backed_off(wait)
        wake.wait(poll if reached else jittered(wait))


if __name__ == "__main__":
    sys.exit(main())

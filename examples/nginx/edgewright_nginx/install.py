"""Puts a rendered configuration in place: a folder of its own, a test, a switch, a reload."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from .quoting import plain
from .state import sync_folder, write_private

_KEPT = 3
# Distributions install nginx there, and a user's PATH may lack them.
_PROGRAMS = ("/usr/sbin", "/usr/local/sbin")
# How long nginx may take to run a configuration, and to start, and how long workers of the one before may answer beside it.
_PATIENCE = 60.0
_STARTED = 5.0
_SETTLED = 0.2
_ERROR = re.compile(r"\[emerg\] (?:[0-9#]+: )?(.*)")
# As `render.py` writes it. No text of others can begin a line.
_LISTEN = re.compile(r"^        listen (\S+):([0-9]+)", re.MULTILINE)


class Failed(Exception):
    """A configuration that nginx does not take."""


def find(program: str) -> str | None:
    """Returns the path of the nginx program: in PATH, or where distributions install it."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_PROGRAMS]))


@dataclass(frozen=True)
class Nginx:
    """The nginx that serves `current` of a folder."""

    folder: Path
    program: str = "nginx"
    addresses: tuple[str, ...] = ("127.0.0.1",)

    @property
    def current(self) -> Path:
        """The link to the configuration that is served."""
        return self.folder / "current"

    @property
    def status(self) -> Path:
        """The socket on which nginx says which configuration it runs."""
        return self.folder / "status"

    def prepare(self) -> None:
        """Creates the folders, and lets `current` be what nginx runs. They have private keys, so nobody else reads them."""
        for folder in (self.folder, self.folder / "releases", self.folder / "temporary"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        # After a crash between the switch and the reload, it is another one.
        running = self.running()
        if running and running != self.installed():
            for release in self.folder.glob(f"releases/*-{running}"):
                self._switch(release.name)

    def installed(self) -> str:
        """Returns the digest of what is served; empty if nothing is."""
        return self._release().rpartition("-")[2]

    def running(self) -> str:
        """Returns the digest of the configuration that nginx runs; empty if it does not answer."""
        received = b""
        try:
            with socket.socket(socket.AF_UNIX) as status:
                status.settimeout(5)
                status.connect(str(self.status))
                status.sendall(b"GET / HTTP/1.0\r\n\r\n")
                while part := status.recv(4096):
                    received += part
        except OSError:
            return ""
        return received.rpartition(b"\r\n\r\n")[2].decode("ascii", "replace")

    def check(self, files: dict[str, str]) -> str:
        """Returns why nginx does not accept files; empty if it does."""
        if digest_of(files) == self.installed():
            return ""
        candidate = self.folder / "candidate"
        shutil.rmtree(candidate, ignore_errors=True)
        try:
            self._write(candidate, files, _write_passing)
            # Not to error.log, because an edge that is not accepted is tested again and again.
            self._nginx(candidate, "-e", "stderr", "-t")
        except Failed as error:
            return (_errors(str(error)) or [str(error)])[0].replace(f"{candidate}/", "")
        finally:
            shutil.rmtree(candidate, ignore_errors=True)
        return ""

    def unusable(self, port: int) -> str:
        """Returns why nginx could not listen on a port; empty if it can. `nginx -t` does not say if another program has it."""
        if self.pid() is not None:
            if port in {port for _, port in self._listening()}:
                return ""
        elif self.running():
            raise Failed(f"an nginx that is not in {self.folder / 'nginx.pid'} uses this folder; stop it")
        for address in self.addresses:
            # If there is no such address, no port is the reason.
            if why := _bound(address, 0):
                raise Failed(why)
            if why := _bound(address, port):
                return why
        return ""

    def readdressed(self) -> bool:
        """Returns whether the current configuration listens on other addresses."""
        return bool(self._listening()) and {address for address, _ in self._listening()} != set(self.addresses)

    def install(self, files: dict[str, str], revision: int) -> bool:
        """Serves files that nginx accepts. Returns false if it serves them already. If nginx does not run them in the end, the
        configuration before goes on."""
        digest = digest_of(files)
        if digest == self.installed():
            self.run()
            return False
        release, former = self.folder / "releases" / f"{revision}-{digest}", self._release()
        shutil.rmtree(release, ignore_errors=True)
        try:
            self._write(release, files, write_private)
            sync_folder(release.parent)
            self._switch(release.name)
            self.run()
        except (Failed, OSError) as error:
            self._switch(former)
            shutil.rmtree(release, ignore_errors=True)
            if former and self.pid() is None:
                with contextlib.suppress(Failed):
                    self.run()
            raise Failed(str(error)) from error
        self._forget(release)
        return True

    def run(self) -> bool:
        """Lets nginx run the current configuration, unless it does. Returns whether it did not."""
        digest, pid = self.installed(), self.pid()
        if not self.current.exists() or (pid is not None and self.running() == digest):
            return False
        log = self.folder / "error.log"
        before = log.stat().st_size if log.exists() else 0
        if pid is None:
            # nginx leaves it behind when it is killed, and could not listen on it again.
            self.status.unlink(missing_ok=True)
            self._nginx(self.current, "-e", str(log))
        else:
            os.kill(pid, signal.SIGHUP)
        # A reload that fails changes nothing, and nobody is told but error.log.
        began = since = time.monotonic()
        while time.monotonic() - began < _PATIENCE:
            if self.running() != digest or self.pid() is None:
                since = time.monotonic()
                errors = _errors(_after(log, before))
                # nginx tries for a while to listen on a port that is in use.
                if any(not error.startswith("bind() to") for error in errors):
                    raise Failed(f"nginx does not run it: {errors[0]}")
                if self.pid() is None and since - began > _STARTED:
                    raise Failed("nginx ended right after its start; see error.log")
            elif time.monotonic() - since > _SETTLED:
                return True
            time.sleep(0.02)
        raise Failed("nginx does not run it; see error.log")

    def pid(self) -> int | None:
        """Returns the process of the running nginx."""
        try:
            pid = int((self.folder / "nginx.pid").read_text())
            # After a crash, another process may have the number.
            name = Path(f"/proc/{pid}/comm")
            if name.exists() and not name.read_text().startswith("nginx"):
                return None
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return None

    def stop(self) -> None:
        """Stops nginx after its current requests, or after ten seconds."""
        for order in (signal.SIGQUIT, signal.SIGTERM):
            pid = self.pid()
            if pid is None:
                return
            os.kill(pid, order)
            for _ in range(100):
                if self.pid() is None:
                    return
                time.sleep(0.1)

    def _release(self) -> str:
        try:
            return Path(os.readlink(self.current)).name
        except OSError:
            return ""

    def _switch(self, release: str) -> None:
        if not release:
            self.current.unlink(missing_ok=True)
            return
        link = self.folder / "next"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("releases") / release)
        os.replace(link, self.current)
        sync_folder(self.folder)

    def _write(self, folder: Path, files: dict[str, str], write: Callable[[Path, str], None]) -> None:
        folder.mkdir(mode=0o700)
        status = f"server {{ listen {plain(f'unix:{self.status}')}; return 200 {digest_of(files)}; }}\n"
        for name, text in {**files, "running.conf": status}.items():
            (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
            write(folder / name, text)

    def _listening(self) -> set[tuple[str, int]]:
        """Returns the addresses and ports of the current configuration."""
        try:
            text = (self.current / "nginx.conf").read_text(encoding="utf-8")
        except OSError:
            return set()
        return {(address, int(port)) for address, port in _LISTEN.findall(text)}

    def _nginx(self, configuration: Path, *arguments: str) -> None:
        command = [self.program, "-c", str(configuration / "nginx.conf"), *arguments]
        # Not captured through pipes: a daemon would keep them open.
        log = self.folder / "nginx.out"
        with open(log, "wb") as out:
            done = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Failed(log.read_text(encoding="utf-8", errors="replace").strip())

    def _forget(self, release: Path) -> None:
        """Removes old configurations, which have old keys."""
        releases = sorted((path for path in release.parent.iterdir()), key=lambda path: path.stat().st_mtime)
        for old in releases[:-_KEPT]:
            if old != release:
                shutil.rmtree(old, ignore_errors=True)


def _write_passing(path: Path, text: str) -> None:
    """Writes a file that only this user can read, and that need not survive a power loss."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _bound(address: str, port: int) -> str:
    """Returns why this program cannot listen on a port; empty if it can."""
    host = None if address == "*" else address.strip("[]")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, name in found:
            if host is None and family != socket.AF_INET:
                continue
            with socket.socket(family, kind, protocol) as bound:
                # As nginx does.
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                bound.bind(name)
                bound.listen(1)
    except OSError as error:
        return f"cannot listen on {address}:{port}: {error.strerror}"
    return ""


def _errors(text: str) -> list[str]:
    """Returns why nginx does not run a configuration, from what it writes."""
    return [found[1] for found in _ERROR.finditer(text)]


def _after(log: Path, size: int) -> str:
    """Returns a log after its first bytes."""
    try:
        with open(log, "rb") as file:
            file.seek(size)
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def digest_of(files: dict[str, str]) -> str:
    """Returns a digest of files and their names."""
    hasher = hashlib.sha256()
    for name in sorted(files):
        for part in (name, files[name]):
            hasher.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()[:32]

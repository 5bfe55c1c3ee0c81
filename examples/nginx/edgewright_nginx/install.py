"""Puts a rendered configuration in place: a folder of its own, a test, a switch, a reload."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .state import sync_folder, write_private

_KEPT = 3


class Failed(Exception):
    """A configuration that nginx does not take."""


@dataclass(frozen=True)
class Nginx:
    """The nginx that serves `current` of a folder."""

    folder: Path
    program: str = "nginx"

    @property
    def current(self) -> Path:
        """The link to the configuration that is served."""
        return self.folder / "current"

    def prepare(self) -> None:
        """Creates the folders. They have private keys, so nobody else reads them."""
        for folder in (self.folder, self.folder / "releases", self.folder / "temporary"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def installed(self) -> str:
        """Returns the digest of what is served; empty if nothing is."""
        try:
            return os.readlink(self.current).rpartition("-")[2]
        except OSError:
            return ""

    def install(self, files: dict[str, str], revision: int) -> bool:
        """Serves these files if nginx accepts them. Returns false if it serves them already."""
        digest = digest_of(files)
        if digest == self.installed():
            self.run()
            return False
        release = self.folder / "releases" / f"{revision}-{digest}"
        if release.exists():
            shutil.rmtree(release)
        release.mkdir(mode=0o700)
        try:
            for name, text in files.items():
                (release / name).parent.mkdir(mode=0o700, exist_ok=True)
                write_private(release / name, text)
            self._nginx(release, "-t")
        except (Failed, OSError) as error:
            shutil.rmtree(release)
            raise Failed(str(error)) from error
        sync_folder(release.parent)
        link = self.folder / "next"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("releases") / release.name)
        os.replace(link, self.current)
        sync_folder(self.folder)
        if not self.run():
            self._nginx(self.current, "-s", "reload")
        self._forget(release)
        return True

    def run(self) -> bool:
        """Starts nginx with the current configuration, unless it runs. Returns whether it started."""
        if not self.current.exists() or self.pid() is not None:
            return False
        self._nginx(self.current)
        # The parent of the daemon exits before the daemon has written its file.
        for _ in range(100):
            if self.pid() is not None:
                return True
            time.sleep(0.05)
        raise Failed("nginx ended right after its start; see error.log")

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
        """Stops nginx after its current requests."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)
            for _ in range(100):
                if self.pid() is None:
                    return
                time.sleep(0.1)

    def _nginx(self, configuration: Path, *arguments: str) -> None:
        command = [self.program, "-c", str(configuration / "nginx.conf"), "-e", str(self.folder / "error.log"), *arguments]
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


def digest_of(files: dict[str, str]) -> str:
    """Returns a digest of files and their names."""
    hasher = hashlib.sha256()
    for name in sorted(files):
        for part in (name, files[name]):
            hasher.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()[:32]

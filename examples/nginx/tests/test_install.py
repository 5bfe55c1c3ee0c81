"""Whether nginx really runs what is installed. Without nginx, there is nothing to test."""

import os
import shutil
import signal
import socket
import tempfile
import time
import unittest
from datetime import datetime, timezone
from pathlib import Path

from edgewright_nginx.install import Failed, Nginx
from edgewright_nginx.render import Settings, render

from .documents import MAPPING, edge, hostport, state


@unittest.skipIf(shutil.which("nginx") is None, "nginx is not installed")
class Install(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.nginx = Nginx(Path(made.name))
        self.nginx.prepare()
        self.addCleanup(self.nginx.stop)

    def files(self, *ports: int) -> dict[str, str]:
        edges = [edge(f"edghts_{port}", [hostport("a.test", port)]) for port in ports]
        return render(state(*edges), MAPPING, Settings(self.nginx.folder, privileged=os.geteuid() == 0), datetime.now(timezone.utc))

    def free(self) -> int:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            return int(bound.getsockname()[1])

    def used(self) -> int:
        taken = socket.create_server(("0.0.0.0", 0))
        self.addCleanup(taken.close)
        return int(taken.getsockname()[1])

    def test_a_reload_that_fails_is_told_and_the_former_configuration_goes_on(self) -> None:
        port, used = self.free(), self.used()
        self.assertTrue(self.nginx.install(self.files(port), 1))
        served = self.nginx.running()
        self.assertEqual(served, self.nginx.installed())
        # `nginx -t` accepts it.
        self.assertEqual(self.nginx.check(self.files(port, used)), "")
        with self.assertRaisesRegex(Failed, f"bind.. to 127.0.0.1:{used} failed"):
            self.nginx.install(self.files(port, used), 2)
        self.assertEqual((self.nginx.running(), self.nginx.installed()), (served, served))
        self.assertEqual(len(list(self.nginx.folder.glob("releases/*"))), 1)
        other = self.free()
        self.assertTrue(self.nginx.install(self.files(other), 3))
        self.assertEqual(self.nginx.running(), self.nginx.installed())
        with socket.create_connection(("127.0.0.1", other)):
            pass
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port))

    def test_ports_of_others_are_unusable(self) -> None:
        port, used = self.free(), self.used()
        self.assertIn("cannot listen on 127.0.0.1", self.nginx.unusable(used))
        self.assertEqual(self.nginx.unusable(port), "")
        self.nginx.install(self.files(port), 1)
        self.assertEqual(self.nginx.unusable(port), "", "its own port")
        with self.assertRaisesRegex(Failed, "cannot listen on 192.0.2.1:0"):
            Nginx(self.nginx.folder, addresses=("192.0.2.1",)).unusable(self.free())

    def test_it_finds_its_way_after_crashes(self) -> None:
        port = self.free()
        self.nginx.install(self.files(port), 1)
        served = self.nginx.installed()
        # Switched, but not reloaded.
        release = self.nginx.folder / "releases" / "2-other"
        shutil.copytree(self.nginx.folder / "releases" / f"1-{served}", release)
        self.nginx._switch(release.name)
        self.nginx.prepare()
        self.assertEqual(self.nginx.installed(), served)
        # Killed, with its socket left behind.
        pid = self.nginx.pid()
        assert pid is not None and os.getpgid(pid) == pid
        os.killpg(pid, signal.SIGKILL)
        while self.nginx.pid() is not None:
            time.sleep(0.02)
        self.assertTrue(self.nginx.status.exists())
        self.assertTrue(self.nginx.run())
        self.assertEqual(self.nginx.running(), served)

    def test_other_addresses_are_noticed(self) -> None:
        self.nginx.install(self.files(self.free()), 1)
        self.assertFalse(self.nginx.readdressed())
        self.assertTrue(Nginx(self.nginx.folder, addresses=("0.0.0.0",)).readdressed())


if __name__ == "__main__":
    unittest.main()

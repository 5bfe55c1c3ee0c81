"""Edges that cannot be served, beside one that can: edgewright, this program and nginx. Run with the path of edgewright."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

from edgewright_nginx.install import Nginx

from .end_to_end import World, ask, check, free_port, serve_backend, until

CERTIFICATE = """apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: team-b}
spec:
  certificate_pem: {from_file: b.pem}
  private_key_pem: {from_file: b.key}
---
"""


class Teams:
    """One file for each edge. The edge `a` is that of another team, and shows whether changes are served."""

    def __init__(self, world: World) -> None:
        self.world, self.turn = world, 0
        self.port, self.tls_port = free_port(), free_port()
        self.nginx = Nginx(world.gateway)
        self.backends = {f"bkd_{name}": f"127.0.0.1:{serve_backend(name)}" for name in ("one", "two", "b")}

    def mapping(self, *missing: str) -> None:
        given = {id: address for id, address in self.backends.items() if id not in missing}
        self.replace(self.world.folder / "mapping.json", json.dumps({"backends": given}))

    def save(self, name: str, hostports: list[str], backend: str = "bkd_b", tls: bool = False, more: str = "",
             before: str = "") -> None:
        termination = "" if tls else "\n  tls_termination: {enabled: false}"
        self.replace(self.world.manifests / f"{name}.yaml", f"""{before}apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {{name: {name}}}
spec:
  hostports: {json.dumps(hostports)}{termination}
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {{backend_id: {backend}}}{more}
""")

    def remove(self, name: str) -> None:
        (self.world.manifests / f"{name}.yaml").unlink()

    def replace(self, path: Path, text: str) -> None:
        partial = self.world.folder / "partial"
        partial.write_text(text)
        partial.rename(path)

    def said(self) -> str:
        return self.world.log("gateway.log")

    def told(self, text: str, since: int) -> None:
        until(f"the program says: {text}", lambda: text in self.said()[since:])

    def status(self, host: str, port: int | None = None) -> int:
        return ask(port or self.port, host=host).status

    def shaken(self, host: str) -> bool:
        """Whether a TLS handshake for a host is accepted."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            return ask(self.tls_port, context=context, host=host).body.startswith("b\n")
        except OSError:
            return False

    def others_go_on(self, what: str) -> None:
        """Checks that a change of the edge `a` is served, and that the program says so only when nginx runs it."""
        self.turn += 1
        backend = ("two", "one")[self.turn % 2]
        self.save("a", [f"a.test:{self.port}"], f"bkd_{backend}")
        until(f"the change of another edge beside {what}", lambda: ask(self.port, host="a.test").body.startswith(backend))
        check(f"{what} holds up no other edge", True)
        until("the program says so", lambda: self.last_said() == os.readlink(self.nginx.current).split("/")[1].split("-")[0])
        check("the program says which revision nginx runs", self.nginx.running() == self.nginx.installed() != "")

    def last_said(self) -> str:
        return self.said().rpartition("serving revision ")[2].split()[0]


def run(world: World) -> None:
    teams = Teams(world)
    teams.mapping()
    world.manifests.mkdir()
    teams.save("a", [f"a.test:{teams.port}"], "bkd_two")
    token = subprocess.run([world.binary, "keys", "create", "--store", str(world.folder / "store"), "--role", "gateway"],
                           check=True, capture_output=True, text=True).stdout
    (world.folder / "gateway.token").write_text(token)
    world.serve()
    world.consume()
    until("the first configuration is served", lambda: teams.status("a.test") == 200)

    # A port of another program.
    with socket.create_server(("0.0.0.0", 0)) as taken:
        used = int(taken.getsockname()[1])
        since = len(teams.said())
        teams.save("y", [f"y.test:{used}"])
        teams.told(f"cannot listen on 127.0.0.1:{used}: Address already in use", since)
        teams.told(f"closed: y.test:{used}", since)
        teams.others_go_on("a port of another program")
        teams.save("gone", [f"gone.test:{teams.port}"])
        until("a new edge is served", lambda: teams.status("gone.test") == 200)
        teams.remove("gone")
        until("it is deleted", lambda: teams.status("gone.test") == 404)
        check("an edge that is deleted is no longer served", True)
    until("the port is free", lambda: teams.status("y.test", used) == 200)
    check("the edge is served when the port is free", True)
    teams.remove("y")

    # TLS on the port of others with plain HTTP.
    world.openssl("req -x509 -newkey rsa:2048 -nodes -days 30 -keyout b.key -out b.pem -subj /CN=b.test "
                  "-addext subjectAltName=DNS:b.test,DNS:*.b.test")
    since = len(teams.said())
    teams.save("b", [f"b.test:{teams.port}", f"b.test:{teams.tls_port}"], tls=True, before=CERTIFICATE)
    teams.told("nginx cannot serve both on one port", since)
    until("its other port is served", lambda: teams.shaken("b.test"))
    teams.others_go_on("TLS on a port of others with plain HTTP")
    teams.save("b", [f"b.test:{teams.tls_port}"], tls=True, before=CERTIFICATE)

    until("it is served whole", lambda: '"lost": true' not in (world.gateway / "served.json").read_text())

    # A certificate that nginx does not accept.
    since = len(teams.said())
    world.openssl("req -x509 -newkey rsa:1024 -nodes -days 30 -keyout weak.key -out weak.pem -subj /CN=b.test "
                  "-addext subjectAltName=DNS:b.test,DNS:*.b.test")
    weak = CERTIFICATE.replace("b.pem", "weak.pem").replace("b.key", "weak.key").replace("team-b", "weak")
    teams.save("b", [f"b.test:{teams.tls_port}"], tls=True, before=weak)
    teams.told("key too small", since)
    teams.told("keeps its former form", since)
    check("an edge with a weak certificate keeps the former one", teams.shaken("b.test"))
    teams.others_go_on("a weak certificate")
    since = len(teams.said())
    teams.save("c", [f"c.b.test:{teams.tls_port}"], tls=True)
    teams.told(f"closed: c.b.test:{teams.tls_port}", since)
    check("a new edge with a weak certificate is closed", teams.shaken("b.test") and not teams.shaken("c.b.test"))
    teams.others_go_on("a new edge with a weak certificate")
    teams.remove("c")
    teams.save("b", [f"b.test:{teams.tls_port}"], tls=True, before=CERTIFICATE)
    until("the better certificate is served", lambda: "c.b.test" not in (world.gateway / "served.json").read_text())

    # A host that moves away from an edge that cannot be served.
    teams.save("b1", [f"b1.test:{teams.port}", f"stays.test:{teams.port}"])
    until("it is served", lambda: teams.status("b1.test") == 200)
    since = len(teams.said())
    text = f"""---
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {{name: b2}}
spec:
  hostports: ["b1.test:{teams.port}"]
  tls_termination: {{enabled: false}}
  routes: [{{match_type: path_prefix, match: /, backend: {{backend_id: bkd_two}}}}]
"""
    teams.save("b1", [f"new.test:{teams.port}"], "bkd_unknown", more=f"\n{text}")
    teams.told(f"keeps its former form, without b1.test:{teams.port}", since)
    check("its host is served by the other edge", ask(teams.port, host="b1.test").body.startswith("two"))
    check("its other host goes on", ask(teams.port, host="stays.test").body.startswith("b\n"))
    teams.others_go_on("an edge that has lost a host")
    check("what is held is told once", teams.said()[since:].count("not served as asked") == 1, teams.said()[since:])
    teams.save("b1", [f"stays.test:{teams.port}"])

    # A backend that is no longer in the mapping.
    teams.save("d", [f"d.test:{teams.port}"])
    until("it is served", lambda: teams.status("d.test") == 200)
    teams.mapping("bkd_b")
    until("it is closed", lambda: teams.status("d.test") == 503)
    teams.others_go_on("a backend that is no longer in the mapping")
    check("the edge of this backend is closed", teams.status("d.test") == 503)
    since = len(teams.said())
    teams.replace(world.folder / "mapping.json", "{")
    teams.told("mapping.json", since)
    check("without a mapping, the last good configuration goes on", teams.status("a.test") == 200)
    teams.mapping("bkd_b")
    teams.told("no backend 'bkd_b'", since)
    check("what is held is told again after a refusal", True)
    teams.mapping()
    until("it is served again", lambda: teams.status("d.test") == 200)

    world.stop(1)
    check("nginx is stopped with the program", teams.nginx.pid() is None)
    command = [*world.consumer(), "--once"]
    once = subprocess.run([it for it in command if it != "--stop-nginx"], capture_output=True, text=True, check=False)
    check("--once says whether everything is served as asked", once.returncode == 0, once.stderr)
    check("--once leaves nginx running", teams.status("a.test") == 200 and teams.nginx.pid() is not None)
    once = subprocess.run([*command, "--address", "0.0.0.0"], capture_output=True, text=True, check=False)
    check("other addresses are served", once.returncode == 0 and "serving revision" in once.stderr, once.stderr)
    check("--once --stop-nginx stops nginx", teams.nginx.pid() is None)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        world = World(str(Path(sys.argv[1]).resolve()), Path(folder))
        try:
            run(world)
        except BaseException:
            for name in ("edgewright.log", "gateway.log", "gateway/error.log"):
                print(f"--- {name}\n{world.log(name)[-4000:]}", file=sys.stderr)
            raise
        finally:
            world.end()
            Nginx(world.gateway).stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

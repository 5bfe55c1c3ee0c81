"""The whole way of a change: a YAML file, edgewright, this program, nginx, and a request. Run with the path of edgewright."""

from __future__ import annotations

import http.server
import os
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

HOST = "shop.test"
# How long a saved change may take until a request takes the new way.
WITHIN = 2.0
PATIENCE = 30.0


class Backend(http.server.BaseHTTPRequestHandler):
    """Says which backend it is and what it got."""

    name = ""

    def do_GET(self) -> None:
        seen = [f"{name}: {value}" for name, value in self.headers.items()]
        body = "\n".join([self.name, self.path, *seen, "." * 2000]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("X-Powered-By", "backend")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def serve_backend(name: str) -> int:
    handler = type(name, (Backend,), {"name": name})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@dataclass
class Answer:
    status: int
    headers: str
    body: str


def ask(port: int, path: str = "/", headers: str = "", context: ssl.SSLContext | None = None, host: str = HOST) -> Answer:
    """Sends a request with the path as it is. Raises OSError if there is no answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        connection = context.wrap_socket(plain, server_hostname=host) if context else plain
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n{headers}\r\n".encode())
        received = b""
        while part := connection.recv(65536):
            received += part
        if context:
            connection.close()
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 "):
        raise OSError("no answer")
    return Answer(int(head[9:12]), head.decode("latin-1"), body.decode("latin-1"))


def until(what: str, look: Callable[[], bool], patience: float = PATIENCE) -> float:
    """Waits until something is so, and returns how long it took."""
    began = time.monotonic()
    while True:
        try:
            if look():
                return time.monotonic() - began
        except OSError:
            pass
        if time.monotonic() - began > patience:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.02)


def check(what: str, holds: bool, seen: object = "") -> None:
    if not holds:
        raise AssertionError(f"{what}: {seen}")
    print(f"ok: {what}", flush=True)


class World:
    """The processes and files of one run."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary, self.folder = binary, folder
        self.manifests = folder / "manifests"
        self.gateway = folder / "gateway"
        self.tls_port, self.plain_port = free_port(), free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.api = ""

    def openssl(self, line: str) -> None:
        subprocess.run(["openssl", *line.split()], cwd=self.manifests, check=True, capture_output=True)

    def certificates(self) -> None:
        """Makes an authority, with certificates for the host and for a client, and another authority."""
        self.manifests.mkdir()
        for authority in ("authority", "stranger"):
            self.openssl(f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -keyout {authority}.key "
                         f"-out {authority}.pem -subj /CN={authority} -addext keyUsage=critical,keyCertSign")
        names = {"server": f"subjectAltName=DNS:{HOST}", "client": "extendedKeyUsage=clientAuth"}
        for name, signer in (("server", "authority"), ("client", "authority"), ("intruder", "stranger")):
            (self.manifests / "extensions").write_text(names.get(name, names["client"]) + "\n")
            self.openssl(f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
            self.openssl(f"x509 -req -in {name}.csr -CA {signer}.pem -CAkey {signer}.key -CAcreateserial -days 30 "
                         f"-extfile extensions -out {name}.pem")

    def context(self, client: str | None, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.manifests / "authority.pem"))
        context.maximum_version = newest
        if client:
            context.load_cert_chain(self.manifests / f"{client}.pem", self.manifests / f"{client}.key")
        return context

    def save(self, backend: str, modules: str = "", more: str = "") -> None:
        """Saves the manifest, as an editor does: whole, by renaming."""
        text = f"""apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {{name: shop}}
spec:
  certificate_pem: {{from_file: server.pem}}
  private_key_pem: {{from_file: server.key}}
---
apiVersion: edgewright/v1
kind: CertificateAuthority
metadata: {{name: staff}}
spec:
  ca_pem: {{from_file: authority.pem}}
---
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {{name: shop}}
spec:
  hostports: ["{HOST}:{self.tls_port}"]
  tls_termination: {{min_version: "1.3"}}
  mutual_tls: {{certificate_authority_ids: [staff]}}
  routes:
    - name: everything
      match_type: path_prefix
      match: /
      backend: {{backend_id: {backend}}}
      request_headers: {{add: {{X-Edge: "costs $5 \\"really\\""}}, remove: [X-Debug]}}
      response_headers: {{add: {{X-Frame-Options: DENY}}, remove: [X-Powered-By]}}
      compression: {{}}
      user_agent_filter: {{deny: ["(?i)badbot", "^(?:a+)+!$"]}}{modules}
    - name: exact
      match_type: exact_path
      match: /exact
      backend: {{backend_id: bkd_exact}}
    - name: inner
      match_type: path_prefix
      match: /exact/inner
      backend: {{backend_id: bkd_inner}}{more}
"""
        partial = self.folder / "partial"
        partial.write_text(text)
        partial.rename(self.manifests / "shop.yaml")

    def start(self, *command: str, log: str) -> None:
        with open(self.folder / log, "ab") as out:
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            self.processes.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment))

    def log(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def serve(self) -> None:
        listen = self.api or "127.0.0.1:0"
        seen = len(self.log("edgewright.log"))
        self.start(self.binary, "serve", "--store", str(self.folder / "store"), "--listen", listen,
                   "--admin-token-file", str(self.folder / "admin.token"), "--manifests", str(self.manifests),
                   log="edgewright.log")
        until("edgewright listens", lambda: "(listening on " in self.log("edgewright.log")[seen:])
        self.api = self.log("edgewright.log")[seen:].split("(listening on ")[1].split(")")[0]

    def consumer(self) -> list[str]:
        return [sys.executable, "-m", "edgewright_nginx", "--server", f"http://{self.api}",
                "--token-file", str(self.folder / "gateway.token"), "--mapping", str(self.folder / "mapping.json"),
                "--folder", str(self.gateway), "--address", "127.0.0.1", "--poll", "0.5", "--stop-nginx"]

    def consume(self) -> None:
        self.start(*self.consumer(), log="gateway.log")

    def stop(self, which: int) -> None:
        self.processes[which].terminate()
        self.processes[which].wait(30)

    def end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def run(world: World) -> None:
    world.certificates()
    (world.folder / "mapping.json").write_text(
        '{"backends": {%s}}' % ", ".join(f'"bkd_{name}": "127.0.0.1:{serve_backend(name)}"'
                                         for name in ("one", "two", "exact", "inner")))
    token = subprocess.run([world.binary, "keys", "create", "--store", str(world.folder / "store"), "--role", "gateway"],
                           check=True, capture_output=True, text=True).stdout
    (world.folder / "gateway.token").write_text(token)
    world.save("bkd_one")
    world.serve()
    world.consume()
    port, client = world.tls_port, world.context("client")

    def backend(path: str = "/") -> str:
        return ask(port, path, context=client).body.split("\n")[0]

    until("the first configuration is served", lambda: backend() == "one")
    check("the first configuration is served", True)

    seen = ask(port, "/a%2Fb/../c?q=%20", "X-Debug: 1\r\nX-Edge: forged\r\nAccept-Encoding: identity\r\n", client)
    check("the backend gets the path as it was sent", seen.body.split("\n")[1] == "/a%2Fb/../c?q=%20", seen.body[:200])
    check("request headers are added and removed", 'X-Edge: costs $5 "really"\n' in seen.body and "forged" not in seen.body
          and "X-Debug" not in seen.body, seen.body[:500])
    check("response headers are added and removed", "\r\nX-Frame-Options: DENY" in seen.headers
          and "X-Powered-By" not in seen.headers, seen.headers)
    packed = ask(port, "/", "Accept-Encoding: gzip\r\n", client)
    check("responses are compressed", "Content-Encoding: gzip" in packed.headers, packed.headers)
    agent = ask(port, "/", "User-Agent: some BadBot/1\r\n", client)
    check("a denied user agent is refused", agent.status == 403, agent.status)
    began = time.monotonic()
    agents = {name: ask(port, "/", f"User-Agent: {text}\r\n", client).status for name, text in (
        ("slow", "a" * 40 + "!b"), ("slow and denied", "a" * 40 + " badbot"), ("long", "x" * 513 + " badbot"), ("honest", "x" * 500),
    )}
    took = time.monotonic() - began
    expected = {"slow": 403, "slow and denied": 403, "long": 403, "honest": 200}
    check("a user agent that makes a pattern give up is refused, at once", agents == expected and took < 1, (agents, took))
    ways = [backend(path) for path in ("/exact", "/exactly", "/exact?q", "/exact/inner/x", "/EXACT", "/%65xact")]
    check("exact paths, prefixes and the rest", ways == ["exact", "one", "exact", "inner", "one", "one"], ways)

    def refused(context: ssl.SSLContext) -> bool:
        try:
            return ask(port, context=context).status == 400
        except OSError:
            return True

    check("no client certificate, no access", refused(world.context(None)))
    check("a certificate of another authority, no access", refused(world.context("intruder")))
    check("an older TLS version, no access", refused(world.context("client", ssl.TLSVersion.TLSv1_2)))
    keys = list(world.gateway.glob("releases/*/certificates/*.key"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in keys}
    check("private keys are readable by their owner alone", bool(keys) and modes == {0o600}, modes)

    world.save("bkd_two")
    took = until("a saved file takes the new way", lambda: backend() == "two")
    check(f"a saved file takes the new way within {WITHIN:g} s", took <= WITHIN, f"{took:.2f} s")
    print(f"    it took {took:.2f} s", flush=True)

    world.save("bkd_one", more="\n      bakcend: {}")
    until("edgewright reports the broken manifest", lambda: "bakcend" in world.log("edgewright.log"))
    time.sleep(WITHIN)
    check("a broken manifest changes nothing", backend() == "two", backend())

    login = "\n      oidc: {issuer: https://login.test, client_id: edge, client_secret: {from_file: secret.txt}}"
    (world.manifests / "secret.txt").write_text("hunter2-secret")
    world.save("bkd_one", modules=login)
    until("the program refuses", lambda: "module oidc" in world.log("gateway.log"))
    place = [line for line in world.log("gateway.log").splitlines() if "module oidc" in line][0]
    check("the refusal names edge, route and module", "edge shop (edghts_" in place and "everything" in place, place)
    time.sleep(WITHIN)
    check("what nginx cannot do is refused, and the last good configuration goes on", backend() == "two", backend())
    plain = f"""apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {{name: docs}}
spec:
  hostports: ["docs.test:{world.plain_port}"]
  tls_termination: {{enabled: false}}
  routes: [{{match_type: path_prefix, match: /, backend: {{backend_id: bkd_inner}}}}]
"""
    (world.manifests / "docs.yaml").write_text(plain)
    until("another edge is served meanwhile", lambda: ask(world.plain_port, host="docs.test").body.startswith("inner"))
    check("an edge that cannot be rendered keeps its form, and holds up no other one", backend() == "two", backend())
    said = world.log("edgewright.log") + world.log("gateway.log")
    check("no secret is in a log", "hunter2-secret" not in said and "PRIVATE KEY" not in said and token.strip() not in said)
    check("each read is in the audit log", " audit: " in said)

    world.stop(0)
    world.stop(1)
    check("nginx is stopped with the program", refused(client))
    world.processes.clear()
    world.consume()
    until("the last good configuration is served from the disk", lambda: backend() == "two")
    check("without the server, the last good configuration is served from the disk", True)
    world.save("bkd_one")
    world.serve()
    until("the program catches up", lambda: backend() == "one")
    check("the program catches up when the server is back", True)


def storefront(binary: str, folder: Path) -> None:
    """Serves what this program can of the example estate. Its hostports need a privileged port."""
    if os.geteuid() != 0:
        print("skipped: the example estate needs port 443", flush=True)
        return
    nginx = Path(__file__).parents[1]
    mapping = folder / "storefront.json"
    port = serve_backend("storefront")
    mapping.write_text((nginx / "storefront.json").read_text().replace("127.0.0.1:9000", f"127.0.0.1:{port}"))
    world = World(binary, folder)
    world.manifests = nginx.parent / "storefront"
    token = subprocess.run([binary, "keys", "create", "--store", str(folder / "store"), "--role", "gateway"],
                           check=True, capture_output=True, text=True).stdout
    (folder / "gateway.token").write_text(token)
    try:
        world.serve()
        mapping.rename(folder / "mapping.json")
        world.consume()
        context = ssl.create_default_context(cafile=str(world.manifests / "certs" / "web-ca.pem"))
        until("the example estate is served",
              lambda: ask(443, context=context, host="www.shop.example.com").body.startswith("storefront"))
        check("the home page of the example estate is served", True)
        closed = ask(443, "/account/orders", context=context, host="www.shop.example.com").status
        check("its login is closed", closed == 503, closed)
    finally:
        world.end()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        storefront(str(Path(sys.argv[1]).resolve()), Path(folder))
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
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs edgewright as several replicas on PostgreSQL behind nginx, on this machine, and upgrades them one after another while clients
read and write. Fails if a request fails. Ctrl-C stops it all."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# How long anything may take to start or stop.
PATIENCE = 60.0
# How long a client repeats a change that no replica could make at the moment.
REPEATS = 30.0


class Failed(Exception):
    """Something that makes it pointless to go on, in a sentence."""


def postgres_programs() -> Path:
    """Returns the folder with the programs of PostgreSQL: in PATH, or where distributions install them."""
    in_path = shutil.which("initdb")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    for folder in [*([Path(in_path).resolve().parent] if in_path else []), *reversed(installed)]:
        if all((folder / program).exists() for program in ("initdb", "postgres", "psql")):
            return folder
    raise Failed("PostgreSQL is not installed: initdb, postgres and psql are neither in PATH nor in /usr/lib/postgresql")


def existing(program: str, option: str) -> str:
    """Returns the absolute path of a program: the servers run in another folder."""
    path = shutil.which(program)
    if path is None:
        raise Failed(f"{program} does not exist: build it, or name another with {option}")
    return str(Path(path).absolute())


def free_ports(count: int) -> list[int]:
    """Returns ports on which nothing listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def variables(**more: str) -> dict[str, str]:
    """Returns the environment for edgewright: what the user has set for it is not for these servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")} | more


def wait_for(what: str, look) -> None:
    """Looks again and again until something is there."""
    ends = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > ends:
            raise Failed(f"waited in vain for {what}")
        time.sleep(0.05)


def request(
    port: int, method: str, path: str, token: str = "", body: object = None, revision: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """Sends a request on a connection of its own, which waits for a revision if there is one. Returns the status, the headers and the
    body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"Service-Version": "2", "Connection": "close"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    if revision:
        headers["If-Revision-At-Least"] = revision
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


class Postgres:
    """PostgreSQL with a cluster of its own, on a socket in the folder. It does not run as root."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.folder = postgres_programs(), folder
        self.user: dict[str, object] = {}
        if os.geteuid() == 0:
            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                raise Failed("PostgreSQL does not run as root, and there is no user `postgres`") from None
            self.user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        folder.mkdir(mode=0o755)
        if self.user:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = str(folder / "data")
        self.run("initdb", "-U", "edgewright", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", data)
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", data, "-k", str(folder), "-c", "listen_addresses="],
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, **self.user,
        )
        wait_for("PostgreSQL", lambda: self.sql("SELECT 1") == 0)
        self.run("psql", "-X", "-q", "-h", str(folder), "-U", "edgewright", "-d", "postgres", "-c", "CREATE DATABASE edgewright")

    @property
    def url(self) -> str:
        """The address of the store."""
        return f"postgres://edgewright@/edgewright?host={self.folder}"

    def run(self, program: str, *arguments: str) -> None:
        ran = subprocess.run([self.programs / program, *arguments], cwd="/", capture_output=True, text=True, **self.user)
        if ran.returncode != 0:
            raise Failed(f"{program} failed: {ran.stderr.strip()}")

    def sql(self, statement: str) -> int:
        arguments = ["-X", "-q", "-h", str(self.folder), "-U", "edgewright", "-d", "postgres", "-c", statement]
        return subprocess.run([self.programs / "psql", *arguments], cwd="/", capture_output=True, **self.user).returncode

    def stop(self) -> None:
        # A fast shutdown: it waits for no client.
        end(self.process, signal.SIGINT)


class Replica:
    """One server."""

    def __init__(self, number: int, port: int, options: list[str], folder: Path) -> None:
        self.number, self.port, self.options, self.folder = number, port, options, folder
        self.process: subprocess.Popen | None = None

    def start(self, program: str) -> None:
        """Starts it with a program, and waits until it is ready."""
        address = f"127.0.0.1:{self.port}"
        with open(self.folder / f"replica-{self.number}.log", "ab") as log:
            self.process = subprocess.Popen(
                [program, "serve", "--listen", address, "--advertise-url", f"http://{address}",
                 "--security-log", f"security-{self.number}.log", *self.options],
                cwd=self.folder, env=variables(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        wait_for(f"replica {self.number}", self.is_ready)

    def readiness(self) -> tuple[int, str]:
        """The status and the text of /readyz."""
        try:
            status, _, body = request(self.port, "GET", "/readyz")
            return status, body.decode()
        except OSError:
            return 0, ""

    def is_ready(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            log = (self.folder / f"replica-{self.number}.log").read_text()
            raise Failed(f"replica {self.number} has ended:\n{log}")
        return self.readiness()[0] == 200

    def is_writer(self) -> bool:
        status, text = self.readiness()
        return status == 200 and "following" not in text

    def stop(self) -> None:
        """Asks it to finish what it has begun, and waits for that."""
        if self.process is not None:
            end(self.process, signal.SIGTERM)


class Balancer:
    """nginx, which passes requests on to the replicas that it is told of."""

    def __init__(self, port: int, folder: Path) -> None:
        program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if program is None:
            raise Failed("nginx is not installed")
        self.port, self.folder = port, folder
        self.process: subprocess.Popen | None = None
        self.command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
        (folder / "replicas").mkdir(parents=True)
        shutil.copy(HERE / "nginx.conf", folder)
        (folder / "listen.conf").write_text(f"listen 127.0.0.1:{port};\n")

    def pass_on_to(self, replicas: list[Replica]) -> None:
        """Passes requests on to these replicas from now on."""
        files = {f"{it.number}.conf": f"server 127.0.0.1:{it.port} max_fails=3 fail_timeout=2s;\n" for it in replicas}
        for name, text in files.items():
            (self.folder / "replicas" / name).write_text(text)
        for file in (self.folder / "replicas").iterdir():
            if file.name not in files:
                file.unlink()
        if self.process is None:
            # What it says before it has read where its log is.
            with open(self.folder / "start.log", "wb") as log:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )
            wait_for("nginx", self.is_ready)
        else:
            self.process.send_signal(signal.SIGHUP)
            # Its former workers finish what they have begun, and the new ones begin.
            time.sleep(0.5)

    def is_ready(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise Failed(f"nginx has ended: {(self.folder / 'start.log').read_text()}")
        try:
            return request(self.port, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            end(self.process, signal.SIGTERM)


def end(process: subprocess.Popen, how: signal.Signals) -> None:
    """Ends a process, and waits until it is gone."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Load:
    """Clients that read and write through the balancer, from `start` to `stop`."""

    def __init__(self, port: int, token: str, clients: int) -> None:
        self.port, self.token = port, token
        self.ends, self.lock = threading.Event(), threading.Lock()
        self.reads = self.writes = 0
        self.slowest = {"read": 0.0, "write": 0.0}
        self.repeated: dict[str, int] = {}
        self.failures: list[str] = []
        # What each edge must have in the end.
        self.acknowledged: dict[str, str] = {}
        edges = [self.create(number) for number in range(max(1, clients // 4))]
        jobs = [(self.write, edge) for edge in edges]
        jobs += [(self.read, edges[number % len(edges)]) for number in range(clients - len(edges))]
        self.threads = [threading.Thread(target=job, args=(edge,), daemon=True) for job, edge in jobs]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def create(self, number: int) -> str:
        body = {"hostports": [f"load-{number}.example.com:443"], "description": "change 0"}
        status, _, answer = request(self.port, "POST", "/edges/https", self.token, body)
        if status != 201:
            raise Failed(f"cannot create an edge: {status} {answer.decode()}")
        identity = json.loads(answer)["id"]
        self.acknowledged[identity] = body["description"]
        return identity

    def note(self, kind: str, began: float) -> None:
        with self.lock:
            self.slowest[kind] = max(self.slowest[kind], time.monotonic() - began)
            if kind == "read":
                self.reads += 1
            else:
                self.writes += 1

    def fail(self, what: str) -> None:
        with self.lock:
            self.failures.append(what)

    def read(self, edge: str) -> None:
        """Reads an edge, and lists of edges, in turns. Each must be answered at once."""
        paths = [f"/edges/https/{edge}", "/edges/https?limit=20"]
        while not self.ends.wait(0.02):
            paths.reverse()
            began = time.monotonic()
            try:
                status, _, body = request(self.port, "GET", paths[0], self.token)
            except (OSError, http.client.HTTPException) as error:
                self.fail(f"GET {paths[0]}: {error!r}")
                continue
            self.note("read", began)
            if status != 200:
                self.fail(f"GET {paths[0]}: {status} {body[:300].decode(errors='replace')}")

    def write(self, edge: str) -> None:
        """Changes an edge again and again. The same change can be sent twice, so one is repeated while nobody could make it."""
        number = 0
        while not self.ends.wait(0.05):
            number += 1
            self.change(edge, f"change {number}")

    def change(self, edge: str, description: str) -> None:
        began = time.monotonic()
        while True:
            wait = 0.2
            try:
                status, headers, body = request(
                    self.port, "PATCH", f"/edges/https/{edge}", self.token, {"description": description}
                )
                if status == 200:
                    self.acknowledged[edge] = description
                    self.note("write", began)
                    return self.read_own(edge, description, headers["edgewright-revision"])
                what, said = str(status), body[:300].decode(errors="replace")
                if status == 503:
                    wait = min(float(headers.get("retry-after", "1")), 1.0)
            except (OSError, http.client.HTTPException) as error:
                status, what, said = 0, type(error).__name__, repr(error)
            # What a balancer or a server says that cannot make the change now.
            if status not in (0, 502, 503, 504) or time.monotonic() - began > REPEATS:
                return self.fail(f"PATCH /edges/https/{edge}: {what} {said}")
            with self.lock:
                self.repeated[what] = self.repeated.get(what, 0) + 1
            time.sleep(wait)

    def read_own(self, edge: str, description: str, revision: str) -> None:
        """Reads what was just changed, through whatever replica is next."""
        began = time.monotonic()
        try:
            status, _, body = request(self.port, "GET", f"/edges/https/{edge}", self.token, revision=revision)
        except (OSError, http.client.HTTPException) as error:
            return self.fail(f"GET {edge} at revision {revision}: {error!r}")
        self.note("read", began)
        if status != 200 or json.loads(body)["description"] != description:
            self.fail(f"GET {edge} at revision {revision}: {status} {body[:300].decode(errors='replace')}")

    def stop(self) -> None:
        self.ends.set()
        for thread in self.threads:
            thread.join()

    def check(self, replicas: list[Replica]) -> None:
        """Looks for every acknowledged change at every replica. Those that follow may need a moment."""
        for replica in replicas:
            for edge, expected in self.acknowledged.items():
                def is_there(port: int = replica.port, edge: str = edge, expected: str = expected) -> bool:
                    status, _, body = request(port, "GET", f"/edges/https/{edge}", self.token)
                    return status == 200 and json.loads(body)["description"] == expected
                wait_for(f"`{expected}` of {edge} at replica {replica.number}", is_there)

    def summary(self) -> str:
        repeated = ", ".join(f"{count} after {what}" for what, count in sorted(self.repeated.items())) or "none"
        failed = len(self.failures)
        return (
            f"{self.reads} reads, the slowest took {self.slowest['read']:.2f} s\n"
            f"{self.writes} changes, the slowest took {self.slowest['write']:.2f} s; repeated by their clients: {repeated}\n"
            f"{failed} requests failed"
        )


def upgrade(replicas: list[Replica], balancer: Balancer, program: str) -> None:
    """Replaces one replica after another, the one that writes last."""
    for replica in sorted(replicas, key=Replica.is_writer):
        role = "writes" if replica.is_writer() else "follows"
        began = time.monotonic()
        balancer.pass_on_to([it for it in replicas if it is not replica])
        replica.stop()
        replica.start(program)
        balancer.pass_on_to(replicas)
        print(f"replica {replica.number} ({role}) was replaced in {time.monotonic() - began:.1f} s", flush=True)


def run(options: argparse.Namespace, folder: Path, started: list) -> int:
    """Starts everything, upgrades it under load, and says what has happened. What it starts is added to `started`."""
    program = existing(options.program, "--program")
    new = existing(options.new, "--new") if options.new else program
    # PostgreSQL and the workers of nginx may run as other users.
    folder.chmod(0o711)
    key = folder / "master.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32))
    postgres = Postgres(folder / "pg")
    started.append(postgres)
    *ports, port = free_ports(options.replicas + 1)
    port = options.port or port
    shared = [
        "--store", postgres.url, "--master-key-file", str(key), "--base-url", f"http://127.0.0.1:{port}",
        "--admin-token-file", str(folder / "admin.token"), "--trusted-proxy", "127.0.0.1",
    ]
    replicas = [Replica(number, at, shared, folder) for number, at in enumerate(ports, 1)]
    for replica in replicas:
        started.append(replica)
        replica.start(program)
    balancer = Balancer(port, folder / "nginx")
    started.append(balancer)
    balancer.pass_on_to(replicas)
    url, token = f"http://127.0.0.1:{port}", (folder / "admin.token").read_text().strip()
    print(f"{len(replicas)} replicas at {url}; the token of the admin is in {folder}/admin.token", flush=True)

    apply = [program, "reconcile", str(options.manifests), "--server", url]
    applied = subprocess.run(apply, env=variables(EDGEWRIGHT_TOKEN=token), capture_output=True, text=True)
    if applied.returncode != 0:
        raise Failed(f"the manifests were not applied:\n{applied.stdout}{applied.stderr}")
    print(applied.stdout.strip().splitlines()[-1], flush=True)

    load = Load(port, token, options.clients)
    # What was committed takes a moment to the replicas that follow.
    load.check(replicas)
    load.start()
    time.sleep(options.seconds)
    upgrade(replicas, balancer, new)
    time.sleep(options.seconds)
    load.stop()
    load.check(replicas)
    print(load.summary(), flush=True)
    for failure in load.failures[:10]:
        print(failure, file=sys.stderr)
    if options.keep:
        print("Stop with Ctrl-C.", flush=True)
        signal.pause()
    return 1 if load.failures else 0


def main() -> int:
    """Runs it in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=shutil.which("edgewright") or "edgewright", help="edgewright, as it runs at first")
    parser.add_argument("--new", metavar="PROGRAM", help="what it is upgraded to (default: the same)")
    parser.add_argument("--manifests", default=HERE.parent / "storefront", type=Path, metavar="PATH")
    parser.add_argument("--replicas", default=3, type=int, metavar="N")
    parser.add_argument("--clients", default=16, type=int, metavar="N", help="a quarter of them writes")
    parser.add_argument("--seconds", default=5.0, type=float, metavar="N", help="of load before and after the upgrade")
    parser.add_argument("--port", type=int, help="of the load balancer (default: a free one)")
    parser.add_argument("--keep", action="store_true", help="let it run afterwards, until Ctrl-C")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started: list = []
    # The path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="edgewright-replicas-", dir="/tmp"))
    try:
        return run(options, folder, started)
    except Failed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        for it in reversed(started):
            it.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

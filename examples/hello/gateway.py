"""Serves edgewright's configuration with nginx on this machine, in front of backends that say hello. Ctrl-C stops it all."""

from __future__ import annotations

import argparse
import http.server
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nginx"))

from edgewright_nginx.__main__ import main as follow  # noqa: E402


class Hello(http.server.BaseHTTPRequestHandler):
    """A backend that says which one it is."""

    backend = ""

    def do_GET(self) -> None:
        body = f"Hello from {self.backend}: you asked for {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing: the terminal shows what nginx serves."""


def start(backend: str) -> str:
    """Starts a backend on a free port, and returns its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Backend", (Hello,), {"backend": backend}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def main() -> int:
    """Starts the backends, and follows the server until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="*", default=["bkd_hello"], metavar="BACKEND", help="IDs of the backends to start")
    parser.add_argument("--server", default=os.environ.get("EDGEWRIGHT_SERVER", "http://127.0.0.1:8484"), metavar="URL")
    parser.add_argument("--token-file", default="gateway.token", help="token of a key with the role gateway")
    parser.add_argument("--nginx", default="nginx", metavar="PROGRAM", help="the nginx program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgewright-hello-") as scratch:
        mapping = Path(scratch) / "mapping.json"
        mapping.write_text(json.dumps({"backends": {backend: start(backend) for backend in options.backends}}))
        return follow([
            f"--server={options.server}", f"--token-file={options.token_file}",
            f"--mapping={mapping}", f"--folder={scratch}/nginx", f"--nginx={options.nginx}", "--stop-nginx",
        ])


if __name__ == "__main__":
    sys.exit(main())

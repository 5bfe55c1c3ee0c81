"""Parts of a gateway configuration for tests."""

from __future__ import annotations

from typing import Any

from edgewright_nginx.mapping import Mapping, parse
from edgewright_nginx.state import State, digest_of

# What somebody who may write manifests could try, wherever a text is allowed.
HOSTILE = [
    '"; return 200 "owned',
    "'; return 200 'owned",
    "}\n location = /owned { return 200; }",
    "x; } server { listen 1; ",
    "$host$request_uri",
    "${edgewright_dollar}",
    "\\",
    '\\"; return 200;',
    "x\\",
    "# comment",
    "{}",
    "a\tb",
    "a\x00b",
    "line\r\nX-Injected: 1",
    "\\n\\t\\$1",
    "é—字",
    "\ud800",
    "~^(?<edgewright_dollar>.*)$",
    "include /etc/passwd;",
]

MAPPING: Mapping = parse({
    "backends": {"bkd_1": "127.0.0.1:9001", "bkd_2": ["127.0.0.1:9002", "unix:/run/b.sock"]},
    "ip_policies": {
        "ipp_local": {"allow": ["127.0.0.0/8", "::1/128"], "deny": ["127.0.0.9/32"]},
        "ipp_office": {"allow": ["192.0.2.0/24"]},
    },
})


def module(name: str, **config: Any) -> dict[str, Any]:
    return {"module": name, "stages": [], "config": {"enabled": True, **config}}


def backend(id: str = "bkd_1") -> dict[str, Any]:
    return module("backend", backend={"id": id, "uri": ""})


def route(id: str = "edghtsrt_1", match_type: str = "path_prefix", path: str = "/", host: str = "",
          port: int | None = None, modules: list[dict[str, Any]] | None = None, name: str = "") -> dict[str, Any]:
    modules = [backend()] if modules is None else modules
    return {"id": id, "name": name, "host": host, "port": port, "match_type": match_type, "path": path, "modules": modules}


def hostport(host: str = "a.test", port: int = 8080, certificates: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    tls = certificates is not None
    return {"hostport": f"{host}:{port}", "host": host, "port": port, "tls": tls, "certificates": certificates or []}


def edge(id: str = "edghts_1", hostports: list[dict[str, Any]] | None = None, routes: list[dict[str, Any]] | None = None,
         **more: Any) -> dict[str, Any]:
    return {
        "id": id, "version": "1", "name": "", "terminate_at": "edge", "min_version": "1.2", "mutual_tls": None,
        "hostports": [hostport()] if hostports is None else hostports,
        "routes": [route()] if routes is None else routes, **more,
    }


def state(*edges: dict[str, Any], **more: Any) -> State:
    by_id = {edge["id"]: edge for edge in edges}
    return State(revision=7, etag='"7-0"', digest=digest_of(by_id), edges=by_id, **more)

"""Renders a state as the files of an nginx configuration, or says which edges and routes it cannot render."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
import ipaddress
from pathlib import Path
import re
from typing import Any

from .mapping import Mapping
from .quoting import DOLLAR, Unquotable, plain
from .routes import Shared, Unsupported, locations, selection
from .state import State

# Other names, such as `~x`, `$x` and `.x`, mean more to nginx than themselves.
_HOST = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
# By age.
_VERSIONS = ["1.0", "1.1", "1.2", "1.3"]
_PROTOCOLS = {"1.0": "TLSv1", "1.1": "TLSv1.1", "1.2": "TLSv1.2", "1.3": "TLSv1.3"}
# Long host names and keys of maps.
_HASHES = [
    "server_names_hash_max_size 65536", "server_names_hash_bucket_size 512",
    "map_hash_max_size 65536", "map_hash_bucket_size 512", "variables_hash_max_size 65536",
    "proxy_headers_hash_max_size 4096", "proxy_headers_hash_bucket_size 512",
]


# A host and its port.
Hostport = tuple[str, int]


@dataclass
class Reasons:
    """Why an edge cannot be served."""

    texts: list[str] = field(default_factory=list)
    # The IDs of the routes that cannot be, and the hostports.
    routes: set[str] = field(default_factory=set)
    hostports: set[Hostport] = field(default_factory=set)
    # Whether it is the edge itself.
    whole: bool = False

    def __bool__(self) -> bool:
        return bool(self.texts)

    def add(self, text: str, route: str | None = None, hostport: Hostport | None = None) -> None:
        if route is not None:
            self.routes.add(route)
        elif hostport is not None:
            self.hostports.add(hostport)
        else:
            self.whole = True
        if text not in self.texts:
            self.texts.append(text)

    def merge(self, other: Reasons) -> bool:
        """Adds other reasons. Returns whether they concern anything else."""
        more = not (other.routes <= self.routes and other.hostports <= self.hostports and other.whole <= self.whole)
        self.texts += [text for text in other.texts if text not in self.texts]
        self.routes |= other.routes
        self.hostports |= other.hostports
        self.whole |= other.whole
        return more


class Refused(Exception):
    """A state that nginx cannot serve as it is. If `edges` is empty, no edge alone is the reason."""

    def __init__(self, reasons: list[str], edges: dict[str, Reasons] | None = None) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons
        self.edges = edges or {}


@dataclass(frozen=True)
class Settings:
    """What depends on the machine."""

    folder: Path
    addresses: tuple[str, ...] = ("127.0.0.1",)
    privileged: bool = False


@dataclass
class _Names:
    """A hostport with the edge that serves it."""

    edge: int
    server_name: str
    tls: bool
    certificate: dict[str, Any] | None
    closed: bool


@dataclass
class _Renderer:
    state: State
    now: datetime
    settings: Settings
    shared: Shared
    edges: list[dict[str, Any]]
    files: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Reasons] = field(default_factory=dict)
    certificates: dict[str, str] = field(default_factory=dict)

    def refuse(self, edge: dict[str, Any], reason: str, route: str | None = None, hostport: Hostport | None = None) -> None:
        self.refused.setdefault(edge["id"], Reasons()).add(f"edge {called(edge)}: {reason}", route, hostport)


def render(state: State, mapping: Mapping, settings: Settings, now: datetime) -> dict[str, str]:
    """Returns the files by name. `now` selects among the certificates of a host."""
    edges = [state.edges[id] for id in sorted(state.edges, key=lambda id: id.encode())]
    it = _Renderer(state, now, settings, Shared(mapping), edges)
    restrictions = _restrictions(it)
    ports = _ports(it)
    routing, servers = [], []
    for number, edge in enumerate(edges):
        try:
            routing += selection(number, edge["routes"])
        except (Unsupported, Unquotable) as error:
            it.refuse(edge, str(error))
        rendered = _routes(it, edge, restrictions)
        servers += _servers(it, ports, number, rendered)
    if it.refused:
        raise Refused([text for reasons in it.refused.values() for text in reasons.texts], it.refused)
    lines = [*_head(settings), *routing, *it.shared.lines(), *_defaults(it, ports), *servers, "}"]
    return {"nginx.conf": "\n".join(lines) + "\n", **it.files}


def _head(settings: Settings) -> list[str]:
    folder = settings.folder
    lines = [
        f"pid {plain(str(folder / 'nginx.pid'))};",
        f"error_log {plain(str(folder / 'error.log'))};",
        "worker_processes auto;",
        "events { worker_connections 1024; }",
        "http {",
        "    include running.conf;",
        "    server_tokens off;",
        "    access_log off;",
        *(f"    {line};" for line in _HASHES),
    ]
    if not settings.privileged:
        paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        lines += [f"    {name}_temp_path {plain(str(folder / 'temporary' / name))};" for name in paths]
    return [
        *lines,
        # A session of one host must not open another one that asks for a client certificate.
        "    ssl_session_tickets off;",
        "    ssl_session_cache off;",
        # A directive that expands variables has no other way to write a dollar sign.
        f'    geo ${DOLLAR} {{ default "$"; }}',
        # A target such as `http://a.test?q` has no path, which means `/`.
        '    map $request_uri $edgewright_path { default "/"; "~^(?<edgewright_raw>[^?#]+)" $edgewright_raw; }',
        # nginx selects a server by the host of such a target, so the backend must not get another one from the Host header.
        '    map $request $edgewright_host { default $http_host; "~^[^ ]+ [A-Za-z]+://(?<edgewright_named>[^/?# ]+)" $edgewright_named; }',
        # With this header, a backend would send its request through the edge again.
        "    proxy_ignore_headers X-Accel-Redirect;",
        '    map $ssl_protocol $edgewright_tls_age { default 0; "TLSv1.1" 1; "TLSv1.2" 2; "TLSv1.3" 3; }',
        *(f'    map $edgewright_tls_age $edgewright_below_{age} {{ default 0; "~^[0-{age - 1}]" 1; }}' for age in (1, 2, 3)),
    ]


def _restrictions(it: _Renderer) -> list[list[str]]:
    """Returns the IP policies of the restrictions of all endpoints. Without one of them, no edge can be served."""
    restrictions = [one["ip_policy_ids"] for one in it.state.ip_restrictions if one["enforced"]]
    reasons = []
    for policies in restrictions if it.edges else []:
        try:
            it.shared.refused_by(policies)
        except Unsupported as error:
            reasons.append(f"ip_restrictions of all endpoints: {error}")
    if reasons:
        raise Refused(list(dict.fromkeys(reasons)))
    return restrictions


def _ports(it: _Renderer) -> dict[int, list[_Names]]:
    """Returns the hosts of each port. The edge with the lower ID serves a hostport that two edges have. A closed hostport is
    nobody's, so it comes last."""
    ports: dict[int, list[_Names]] = defaultdict(list)
    taken: set[Hostport] = set()
    for edge in it.edges:
        if edge["terminate_at"] == "upstream":
            it.refuse(edge, "tls_termination: this program does not pass TLS through")
        elif edge["terminate_at"] not in ("edge", "none"):
            it.refuse(edge, f"tls_termination: unknown value {edge['terminate_at']!r}")
    every = [(number, hostport) for number, edge in enumerate(it.edges) for hostport in edge["hostports"]]
    for number, hostport in sorted(every, key=lambda one: bool(one[1].get("closed"))):
        key, port = key_of(hostport), int(hostport["port"])
        if key in taken:
            continue
        taken.add(key)
        try:
            name = _name(number, it.edges[number], hostport, it.now)
        except (Unsupported, Unquotable) as error:
            if not hostport.get("closed"):
                it.refuse(it.edges[number], str(error), hostport=key)
            continue
        if not name.closed or all(other.tls == name.tls for other in ports[port]):
            ports[port].append(name)
    return ports


def key_of(hostport: dict[str, Any]) -> Hostport:
    return str(hostport["host"]), int(hostport["port"])


def _name(number: int, edge: dict[str, Any], hostport: dict[str, Any], now: datetime) -> _Names:
    tls, closed = bool(hostport["tls"]), bool(hostport.get("closed"))
    if edge["mutual_tls"] is not None and not tls and not closed:
        raise Unsupported(f"mutual_tls: port {hostport['port']} serves plain HTTP, where clients have no certificate")
    try:
        certificate = _certificate(hostport, now) if tls and not closed else None
        return _Names(number, _server_name(str(hostport["host"])), tls, certificate, closed)
    except (Unsupported, Unquotable) as error:
        raise Unsupported(f"hostport {hostport['hostport']!r}: {error}") from error


def _certificate(hostport: dict[str, Any], now: datetime) -> dict[str, Any]:
    if _is_address(str(hostport["host"])):
        raise Unsupported("clients do not name an IP address in TLS, so nginx cannot select its certificate")
    candidates: list[dict[str, Any]] = hostport["certificates"]
    if not candidates:
        raise Unsupported("no certificate covers the host")
    valid = [one for one in candidates if _time(one["not_before"]) <= now < _time(one["not_after"])]
    return (valid or candidates)[0]


def _server_name(host: str) -> str:
    if not _HOST.fullmatch(host) and not _is_address(host):
        raise Unsupported("neither a host name nor an address")
    return plain(f"[{host}]" if ":" in host else host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _routes(it: _Renderer, edge: dict[str, Any], restrictions: list[list[str]]) -> list[str]:
    lines = []
    for number, route in enumerate(edge["routes"]):
        def report(module: str, reason: str, route: dict[str, Any] = route) -> None:
            it.refuse(edge, f"route {called(route)}: module {module}: {reason}", route["id"])

        lines += locations(number, route["modules"], restrictions, it.shared, report)
    return lines


def _defaults(it: _Renderer, ports: dict[int, list[_Names]]) -> list[str]:
    """Renders what answers for hosts that no edge serves. It also has the TLS settings of the port: nginx reads the
    versions from the first server, before it knows the host."""
    lines = []
    for port, names in sorted(ports.items()):
        tls = names[0].tls
        lines += ["    server {", *_listen(it, port, tls, " default_server")]
        if tls:
            lines += [f"        ssl_protocols {_protocols(_lowest(it, names))};", "        ssl_reject_handshake on;"]
        lines += ["        return 404;", "    }"]
    return lines


def _servers(it: _Renderer, ports: dict[int, list[_Names]], number: int, routes: list[str]) -> list[str]:
    edge, lines = it.edges[number], []
    for port, names in sorted(ports.items()):
        for name in (name for name in names if name.edge == number):
            lines += ["    server {", *_listen(it, port, name.tls, ""), f"        server_name {name.server_name};"]
            if name.closed:
                lines += [*(["        ssl_reject_handshake on;"] if name.tls else []), "        return 503;", "    }"]
                continue
            if name.certificate is not None:
                lines += _tls(it, edge, name.certificate, _lowest(it, names))
            # Every request goes through here, so no path of a client leads to a location by itself.
            lines += [f"        rewrite ^ $edgewright_route_{number} last;", *routes]
            lines += ["        location = /none { internal; return 404; }", "        location / { return 404; }", "    }"]
    return lines


def _listen(it: _Renderer, port: int, tls: bool, more: str) -> list[str]:
    return [f"        listen {address}:{port}{' ssl' if tls else ''}{more};" for address in it.settings.addresses]


def _tls(it: _Renderer, edge: dict[str, Any], certificate: dict[str, Any], lowest: int) -> list[str]:
    own = _age(it, edge)
    name = it.certificates.get(certificate["id"])
    if name is None:
        name = f"certificates/{len(it.certificates)}"
        it.certificates[certificate["id"]] = name
        it.files[f"{name}.pem"] = certificate["certificate_pem"]
        it.files[f"{name}.key"] = certificate["private_key_pem"]
    lines = [
        f"        ssl_certificate {name}.pem;",
        f"        ssl_certificate_key {name}.key;",
        f"        ssl_protocols {_protocols(own)};",
    ]
    if edge["mutual_tls"] is not None:
        authorities = edge["mutual_tls"]["certificate_authorities"]
        if not authorities:
            it.refuse(edge, "mutual_tls: it has no certificate authorities: nobody could have access")
        file = f"authorities/{it.edges.index(edge)}.pem"
        it.files[file] = "".join(authority["ca_pem"].rstrip() + "\n" for authority in authorities)
        lines += [f"        ssl_client_certificate {file};", "        ssl_verify_client on;", "        ssl_verify_depth 4;"]
    if own > lowest:
        # Another host of the port accepts older versions, and nginx has one choice of versions for a port.
        lines.append(f"        if ($edgewright_below_{own}) {{ return 421; }}")
    return lines


def _lowest(it: _Renderer, names: list[_Names]) -> int:
    return min((_age(it, it.edges[name.edge]) for name in names if not name.closed), default=_VERSIONS.index("1.2"))


def _age(it: _Renderer, edge: dict[str, Any]) -> int:
    try:
        return _VERSIONS.index(edge["min_version"] or "1.2")
    except ValueError:
        it.refuse(edge, f"unknown TLS version {edge['min_version']!r}")
        return 0


def _protocols(lowest: int) -> str:
    return " ".join(_PROTOCOLS[version] for version in _VERSIONS[lowest:])


def called(resource: dict[str, Any]) -> str:
    return f"{resource['name']} ({resource['id']})" if resource["name"] else str(resource["id"])

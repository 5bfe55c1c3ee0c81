"""The routes of an edge: how nginx selects one, and what it does with the request."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable

from .mapping import Mapping
from .patterns import NotPortable, portable
from .quoting import Unquotable, literal, plain, regex

# The modules of a route that this program cannot render, on an edge that it has never served: nobody has access.
CLOSED: list[dict[str, Any]] = [{"module": "closed", "config": {}}]

# nginx sets or needs these itself, so they cannot be added or removed as asked.
_OWN_REQUEST_HEADERS = {"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "expect"}
_OWN_RESPONSE_HEADERS = {
    "date", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding",
    "keep-alive", "last-modified", "etag", "accept-ranges", "trailer", "upgrade",
}


class Unsupported(Exception):
    """A part of the configuration that nginx cannot do, or not in the same way."""


@dataclass
class Shared:
    """What all routes share: backends and IP policies appear once."""

    mapping: Mapping
    upstreams: dict[str, int] = field(default_factory=dict)
    policies: dict[tuple[str, ...], int] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)

    def upstream(self, backend: str) -> str:
        """Returns the URL prefix of a backend."""
        if backend not in self.mapping.backends:
            raise Unsupported(f"the mapping file has no backend {backend!r}")
        return f"http://edgewright_backend_{self.upstreams.setdefault(backend, len(self.upstreams))}"

    def refused_by(self, policies: list[str]) -> str:
        """Returns the variable that is 1 for the clients without access."""
        if not policies:
            raise Unsupported("it has no IP policies: nobody or everybody would have access")
        unknown = [id for id in policies if id not in self.mapping.ip_policies]
        if unknown:
            raise Unsupported(f"the mapping file has no IP policy {unknown[0]!r}")
        key = tuple(sorted(set(policies)))
        return f"$edgewright_ip_{self.policies.setdefault(key, len(self.policies))}"

    def lines(self) -> list[str]:
        """Returns the part of the configuration that defines them."""
        lines: list[str] = []
        for backend, number in self.upstreams.items():
            addresses = [f"        server {address};" for address in self.mapping.backends[backend]]
            lines += [f"    upstream edgewright_backend_{number} {{", *addresses, "        keepalive 16;", "    }"]
        for ids, number in self.policies.items():
            policies = [self.mapping.ip_policies[id] for id in ids]
            for name in ("allow", "deny"):
                networks = sorted({network for policy in policies for network in getattr(policy, name)})
                lines += [f"    geo $edgewright_{name}_{number} {{", "        default 0;"]
                lines += [*(f"        {network} 1;" for network in networks), "    }"]
            lines += [
                f'    map "$edgewright_allow_{number}$edgewright_deny_{number}" $edgewright_ip_{number} {{',
                '        default 1;', '        "10" 0;', "    }",
            ]
        return lines + self.agents


@dataclass
class _Location:
    """What nginx does with the requests of a route."""

    checks: list[str] = field(default_factory=list)
    backend: str = ""
    request: dict[str, tuple[str, str]] = field(default_factory=dict)
    response: list[str] = field(default_factory=list)
    compresses: bool = False


def selection(edge: int, routes: list[dict[str, Any]]) -> list[str]:
    """Renders the choice of a route: the first one that matches. Routes are compared with the URL as it was sent, which
    a `location` does not do, and regular expressions of a map are tried in order."""
    lines = [f'    map "$host:$server_port|$edgewright_path" $edgewright_route_{edge} {{', "        default /none;"]
    for number, route in enumerate(routes):
        host, port, path, kind = route["host"], route["port"], route["path"], route["match_type"]
        if host and not host.startswith("*"):
            matched = regex(f"[{host}]" if ":" in host else host)
        else:
            # A wildcard covers IPv6 addresses, too, and those are in brackets here.
            ending = regex(host[1:])
            matched = f"[^|:]+{ending}|\\[[^|]+{ending}\\]"
        ports = "[0-9]+" if port is None else str(int(port))
        if kind not in ("exact_path", "path_prefix"):
            raise Unsupported(f"unknown match type {kind!r}")
        end = "\\z" if kind == "exact_path" else ""
        pattern = f"~^(?:{matched}):{ports}\\|{regex(path)}{end}"
        lines.append(f"        {plain(pattern)} /r{number};")
    return [*lines, "    }"]


def locations(route: int, modules: list[dict[str, Any]], restrictions: list[list[str]], shared: Shared,
              report: Callable[[str, str], None]) -> list[str]:
    """Renders a route. What cannot be rendered is reported with its module."""
    location = _Location()
    for policies in restrictions:
        location.checks.append(f"if ({shared.refused_by(policies)}) {{ return 403; }}")
    for module in modules:
        name = str(module["module"])
        try:
            apply = _MODULES.get(name)
            if apply is None:
                raise Unsupported("nginx cannot do this")
            apply(location, dict(module["config"]), shared)
        except (Unsupported, Unquotable, NotPortable) as error:
            report(name, str(error))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            report(name, f"unexpected content: {error!r}")
    return _lines(route, location)


def _lines(route: int, location: _Location) -> list[str]:
    lines = []
    if location.checks:
        lines = [f"        location = /r{route} {{", "            internal;"]
        lines += [*(f"            {check}" for check in location.checks), f"            rewrite ^ /p{route} last;", "        }"]
    name = "p" if location.checks else "r"
    lines += [f"        location = /{name}{route} {{", "            internal;"]
    if not location.backend:
        return [*lines, "            return 502;", "        }"]
    sent = {
        "host": ("Host", "$edgewright_host"),
        "connection": ("Connection", '""'),
        "x-forwarded-for": ("X-Forwarded-For", "$proxy_add_x_forwarded_for"),
        "x-forwarded-proto": ("X-Forwarded-Proto", "$scheme"),
    }
    for name, value in {**sent, **location.request}.values():
        lines.append(f"            proxy_set_header {name} {value};")
    lines += [f"            {line}" for line in location.response]
    if location.compresses:
        lines += [f"            {line}" for line in ("gzip on;", "gzip_types *;", "gzip_proxied any;", "gzip_vary on;")]
    # With $request_uri, the backend gets the path and query as they were sent.
    lines += ["            proxy_http_version 1.1;", f"            proxy_pass {location.backend}$request_uri;", "        }"]
    return lines


def _only(config: dict[str, Any], *known: str) -> None:
    unknown = sorted(set(config) - {"enabled", *known})
    if unknown:
        # A field of a newer version may restrict access.
        raise Unsupported(f"unknown field {unknown[0]!r}")


def _backend(location: _Location, config: dict[str, Any], shared: Shared) -> None:
    _only(config, "backend")
    location.backend = shared.upstream(config["backend"]["id"])


def _ip_restriction(location: _Location, config: dict[str, Any], shared: Shared) -> None:
    _only(config, "ip_policies")
    refused = shared.refused_by([policy["id"] for policy in config["ip_policies"]])
    location.checks.append(f"if ({refused}) {{ return 403; }}")


# The most steps of a pattern from one place, and of all patterns of a filter; the most patterns; and the longest user agent that
# patterns are tried on. PCRE goes back and tries again, from each place, so without limits a long agent would hold a worker, and
# pass a pattern that denies it.
_STEPS = 5_000
_STEPS_OF_ALL = 20_000
_MOST_PATTERNS = 100
_LONGEST_AGENT = 512


def _user_agent_filter(location: _Location, config: dict[str, Any], shared: Shared) -> None:
    _only(config, "allow", "deny")
    allow, deny = config["allow"], config["deny"]
    if not allow and not deny:
        return
    number = sum(line.startswith("    map") for line in shared.agents)
    # An allowed agent has access even if a pattern denies it, so these come first.
    patterns = [(pattern, 0) for pattern in allow] + [(pattern, 1) for pattern in deny]
    if len(patterns) > _MOST_PATTERNS:
        raise Unsupported(f"a user agent is compared with {len(patterns)} patterns, more than {_MOST_PATTERNS}")
    limit = f"(*LIMIT_MATCH={min(_STEPS, _STEPS_OF_ALL // len(patterns))})"
    rules = [f"        {plain(f'~{limit}(?:{portable(pattern)})')} {refused};" for pattern, refused in patterns]
    if deny:
        # Who is not denied has access. nginx takes the default when a pattern exceeds its limit, so the default refuses.
        rules.append(f"        {plain('~^')} 0;")
    # nginx tries no pattern on an empty or missing user agent.
    matching = (refused for pattern, refused in patterns if re.search(portable(pattern), ""))
    rules.insert(0, f'        "" {next(matching, 0 if deny else 1)};')
    # What is not ASCII is one character to the gateway's patterns, and several bytes to those of nginx.
    others = [f"        {plain(f'~{pattern}')} 1;" for pattern in (f"^.{{{_LONGEST_AGENT + 1}}}", r"[^\x20-\x7E]")]
    shared.agents += [f"    map $http_user_agent $edgewright_agent_{number} {{", "        default 1;", *others, *rules, "    }"]
    location.checks.append(f"if ($edgewright_agent_{number}) {{ return 403; }}")


def _request_headers(location: _Location, config: dict[str, Any], _: Shared) -> None:
    _only(config, "add", "remove")
    for name in config["remove"]:
        location.request[_changeable(name, _OWN_REQUEST_HEADERS)] = (plain(name), '""')
    for name, value in config["add"].items():
        location.request[_changeable(name, _OWN_REQUEST_HEADERS)] = (plain(name), literal(_value(name, value)))


def _response_headers(location: _Location, config: dict[str, Any], _: Shared) -> None:
    _only(config, "add", "remove")
    removed = {_changeable(name, _OWN_RESPONSE_HEADERS): name for name in config["remove"]}
    for name, value in config["add"].items():
        # A cookie is one of several; another header would be there twice.
        if _changeable(name, _OWN_RESPONSE_HEADERS | {"server"}) != "set-cookie":
            removed.setdefault(name.lower(), name)
        location.response.append(f"add_header {plain(name)} {literal(_value(name, value))} always;")
    # nginx names itself instead of the backend's server, whatever the configuration says.
    location.response += [f"proxy_hide_header {plain(name)};" for name in removed.values() if name.lower() != "server"]


def _closed(location: _Location, config: dict[str, Any], _: Shared) -> None:
    location.checks.append("return 503;")


def _compression(location: _Location, config: dict[str, Any], _: Shared) -> None:
    _only(config)
    location.compresses = True


def _changeable(name: str, own: set[str]) -> str:
    if name.lower() in own:
        raise Unsupported(f"nginx sets the header {name!r} itself")
    return name.lower()


def _value(name: str, value: str) -> str:
    if not value:
        raise Unsupported(f"nginx does not send the header {name!r} with an empty value")
    return value


_MODULES: dict[str, Callable[[_Location, dict[str, Any], Shared], None]] = {
    "backend": _backend,
    "ip_restriction": _ip_restriction,
    "user_agent_filter": _user_agent_filter,
    "request_headers": _request_headers,
    "response_headers": _response_headers,
    "compression": _compression,
    "closed": _closed,
}

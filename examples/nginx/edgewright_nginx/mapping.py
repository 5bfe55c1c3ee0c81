"""What the gateway knows by itself: the addresses of backends and the networks of IP policies."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}|unix:/[A-Za-z0-9_./-]+")


class BadMapping(ValueError):
    """A mapping file that cannot be used."""


@dataclass(frozen=True)
class IpPolicy:
    """A client has access if it is in an allowed network and in no denied one."""

    allow: tuple[str, ...]
    deny: tuple[str, ...]


@dataclass(frozen=True)
class Mapping:
    """The contents of the mapping file."""

    backends: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ip_policies: dict[str, IpPolicy] = field(default_factory=dict)


def read(path: Path) -> Mapping:
    """Reads a mapping file."""
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadMapping(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BadMapping(f"{path}: {error}") from error


def parse(document: Any) -> Mapping:
    """Checks the contents of a mapping file."""
    if not isinstance(document, dict) or set(document) - {"backends", "ip_policies"}:
        raise BadMapping("expected an object with `backends` and `ip_policies`")
    backends = {id: _addresses(id, given) for id, given in document.get("backends", {}).items()}
    policies = {id: _policy(id, given) for id, given in document.get("ip_policies", {}).items()}
    return Mapping(backends, policies)


def _addresses(id: str, given: Any) -> tuple[str, ...]:
    addresses = [given] if isinstance(given, str) else given
    if not isinstance(addresses, list) or not addresses:
        raise BadMapping(f"backend `{id}`: expected an address or a list of addresses")
    for address in addresses:
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            raise BadMapping(f"backend `{id}`: expected `host:port` or `unix:/path`, found {address!r}")
    return tuple(addresses)


def _policy(id: str, given: Any) -> IpPolicy:
    if not isinstance(given, dict) or set(given) - {"allow", "deny"}:
        raise BadMapping(f"IP policy `{id}`: expected an object with `allow` and `deny`")

    def networks(name: str) -> tuple[str, ...]:
        # In their normal form there is nothing in them that nginx could misread.
        return tuple(str(ipaddress.ip_network(text)) for text in given.get(name, []))

    return IpPolicy(networks("allow"), networks("deny"))

"""The configuration that this gateway has: taken from responses, checked, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Edge = dict[str, Any]


class BadFeed(ValueError):
    """A response that is not what it should be, such as changes of edges that this gateway does not have."""


@dataclass(frozen=True)
class State:
    """One revision."""

    revision: int
    etag: str
    digest: str
    edges: dict[str, Edge] = field(default_factory=dict)
    tls_edges: list[Edge] = field(default_factory=list)
    ip_restrictions: list[dict[str, Any]] = field(default_factory=list)


def digest_of(edges: dict[str, Edge]) -> str:
    """Returns the digest that the server computes from its edges."""
    lines = "".join(f"{id} {edges[id]['version']}\n" for id in sorted(edges, key=lambda id: id.encode()))
    return hashlib.sha256(lines.encode()).hexdigest()


def apply(state: State | None, document: Any, etag: str) -> State:
    """Returns the state after a response. Applying a response twice has no further effect."""
    try:
        if document["full"]:
            edges = {edge["id"]: edge for edge in document["edges"]}
        elif state is None:
            raise BadFeed("changes without a state to apply them to")
        else:
            edges = {id: edge for id, edge in state.edges.items() if id not in document["removed"]}
            edges.update(document["changed"])
        if digest_of(edges) != document["digest"]:
            raise BadFeed("the digest does not match: this gateway has other edges than the server")
        return State(
            revision=int(document["revision"]),
            etag=etag,
            digest=document["digest"],
            edges=edges,
            tls_edges=document["tls_edges"],
            ip_restrictions=document["ip_restrictions"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BadFeed(f"unexpected response: {error!r}") from error


def write_private(path: Path, text: str) -> None:
    """Writes a file that only this user can read, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Makes new names in a folder survive a power loss."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save(path: Path, state: State) -> None:
    """Keeps a state for the next start."""
    write_private(path, json.dumps(state.__dict__))


def save_edges(path: Path, edges: dict[str, Edge]) -> None:
    """Keeps the forms of edges that are served for the next start."""
    write_private(path, json.dumps(edges))


def load_edges(path: Path) -> dict[str, Edge] | None:
    """Returns the forms of edges that were kept, or none if there are none that can be used."""
    try:
        edges = json.loads(path.read_text(encoding="utf-8"))
        return edges if isinstance(edges, dict) else None
    except (OSError, ValueError):
        return None


def load(path: Path) -> State | None:
    """Returns the state that was kept, or none if there is none that can be used."""
    try:
        state = State(**json.loads(path.read_text(encoding="utf-8")))
        return state if digest_of(state.edges) == state.digest else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None

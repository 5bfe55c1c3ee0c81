"""Chooses the form in which each edge is served. An edge that this program cannot render holds up no other one: it keeps the
form that is served now, and if it is new, its routes that cannot be rendered are closed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from .mapping import Mapping
from .render import Refused, Settings, called, render
from .routes import CLOSED
from .state import Edge, State


@dataclass
class Served:
    """What is served of a revision."""

    files: dict[str, str]
    # The forms of the edges, by ID.
    edges: dict[str, Edge]
    # What is not served as it should be, and why.
    held: list[str] = field(default_factory=list)


def choose(state: State, served: dict[str, Edge], mapping: Mapping, settings: Settings, now: datetime) -> Served:
    """Returns what to serve of a revision. Raises `Refused` if that would change an edge that should stay as it is."""
    edges, held = dict(state.edges), [
        f"edge {called(edge)}: the configuration does not have the hostports of a TLS edge" for edge in state.tls_edges
    ]
    while True:
        try:
            files = render(replace(state, edges=edges, tls_edges=[]), mapping, settings, now)
        except Refused as refused:
            if not refused.edges:
                raise
            for id, reasons in refused.edges.items():
                _give_way(edges, id, reasons.routes, served.get(id), refused)
                held += reasons.texts
            continue
        _check_hosts(state, edges, served)
        return Served(files, edges, held)


def _give_way(edges: dict[str, Edge], id: str, routes: set[str] | None, old: Edge | None, refused: Refused) -> None:
    """Replaces the form of an edge that cannot be rendered. `routes` are those that cannot, or none if it is the edge."""
    if edges[id].get("given_way"):
        # Not even that can be served now, for example because the mapping has changed.
        raise refused
    if old is not None and not old.get("closed"):
        edges[id] = {**old, "given_way": True}
    elif routes is not None:
        closed = [{**route, "modules": CLOSED} if route["id"] in routes else route for route in edges[id]["routes"]]
        edges[id] = {**edges[id], "routes": closed, "closed": True, "given_way": True}
    else:
        del edges[id]


def _check_hosts(state: State, edges: dict[str, Edge], served: dict[str, Edge]) -> None:
    """Refuses a revision in which an edge that keeps its former form has a host that another one has now."""
    hosts = {(str(it["host"]), int(it["port"])): id for id, edge in state.edges.items() for it in edge["hostports"]}
    reasons = []
    for id, edge in edges.items():
        if edge.get("given_way") and id in served and not edge.get("closed"):
            for it in edge["hostports"]:
                owner = hosts.get((str(it["host"]), int(it["port"])), id)
                if owner != id:
                    other = called(state.edges[owner])
                    reasons.append(f"edge {called(edge)} cannot stay as it is: {other} has {it['hostport']} now")
    if reasons:
        raise Refused(reasons)

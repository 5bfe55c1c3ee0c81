"""Chooses the form in which each edge is served. An edge that cannot be served as asked holds up no other one: it keeps the form
that is served now, or if that is not possible, its routes and hostports that cannot be served are closed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Callable, Protocol

from .mapping import Mapping
from .render import Hostport, Reasons, Refused, Settings, called, key_of, render
from .routes import CLOSED
from .state import Edge, State
from .verdict import culprits


# Renders some edges of a revision.
Files = Callable[[dict[str, Edge]], dict[str, str]]


class Gateway(Protocol):
    """What only the machine knows."""

    def check(self, files: dict[str, str]) -> str:
        """Returns why nginx does not accept files; empty if it does."""

    def unusable(self, port: int) -> str:
        """Returns why nginx could not listen on a port; empty if it can."""


@dataclass
class Served:
    """What is served of a revision."""

    files: dict[str, str]
    # The forms of the edges, by ID.
    edges: dict[str, Edge]
    # What is not served as it should be, and why.
    held: list[str] = field(default_factory=list)


@dataclass
class Chooser:
    """Chooses for one revision after the other."""

    gateway: Gateway
    settings: Settings
    # The forms that nginx itself does not accept, with its reason, by their digests.
    rejected: dict[str, tuple[Edge, str]] = field(default_factory=dict)

    def choose(self, state: State, served: dict[str, Edge], mapping: Mapping, now: datetime) -> Served:
        """Returns what to serve of a revision. Raises `Refused` if no edge alone is the reason that it cannot be."""

        def files(edges: dict[str, Edge]) -> dict[str, str]:
            return render(replace(state, edges=edges, tls_edges=[]), mapping, self.settings, now)

        self._test_again(files)
        held = [f"edge {called(edge)}: the configuration does not have the hostports of a TLS edge" for edge in state.tls_edges]
        while True:
            attempt = _Attempt(self, state, served, files)
            attempt.run()
            edges = attempt.edges
            # Forms that are served already come first, so that a new one gives way if nginx does not accept both.
            order = sorted(edges, key=lambda id: (edges[id] != served.get(id), id.encode()))
            found = culprits(order, lambda ids: self.gateway.check(files({id: edges[id] for id in ids})))
            if not found:
                self.rejected = {key: self.rejected[key] for key in attempt.seen}
                return Served(files(edges), edges, held + attempt.held)
            # From the start: other edges may have given way to these. The reason is that against the edge alone, if there is one.
            for id, words in found.items():
                alone = self.gateway.check(files({id: edges[id]}))
                self.rejected[_digest(edges[id])] = (edges[id], alone or words)

    def _test_again(self, files: Files) -> None:
        """Forgets the forms that nginx accepts by now, for example because the name of a backend is known again."""
        for key, (form, _) in list(self.rejected.items()):
            try:
                words = self.gateway.check(files({form["id"]: form}))
            except Refused:
                words = ""
            if words:
                self.rejected[key] = (form, words)
            else:
                del self.rejected[key]


class _Attempt:
    """Admits the edges that can be served as asked, and then a form of each other one beside them."""

    def __init__(self, chooser: Chooser, state: State, served: dict[str, Edge], files: Files) -> None:
        self.state, self.served, self.files = state, served, files
        self.gateway, self.rejected = chooser.gateway, chooser.rejected
        self.edges: dict[str, Edge] = {}
        self.held: list[str] = []
        self.seen: set[str] = set()
        self._unusable: dict[int, str] = {}
        self._owners: dict[Hostport, str] = {}
        # Whether a port has TLS, and the edge that decided it. An edge that is there already goes before a new one.
        self._tls: dict[int, tuple[bool, str]] = {}
        for id, asked in self._asked():
            before = {(int(it["port"]), bool(it["tls"])) for it in _open(served.get(id))}
            for port, tls in before & {(int(it["port"]), bool(it["tls"])) for it in asked["hostports"]}:
                self._tls.setdefault(port, (tls, called(asked)))

    def run(self) -> None:
        pending = {}
        for id, asked in self._asked():
            reasons = self._problems(asked)
            if reasons:
                pending[id] = reasons
            else:
                self._admit(asked)
        for id, reasons in pending.items():
            form, outcome = self._kept(id, reasons) or self._reduced(id, reasons)
            self.held += [*reasons.texts, f"edge {called(self.state.edges[id])}: {outcome}"]
            if form is not None:
                self._admit(form)

    def _asked(self) -> list[tuple[str, Edge]]:
        return sorted(self.state.edges.items(), key=lambda it: it[0].encode())

    def _admit(self, form: Edge) -> None:
        self.edges[form["id"]] = form
        for it in _open(form):
            self._tls.setdefault(int(it["port"]), (bool(it["tls"]), called(form)))
            self._owners.setdefault(key_of(it), called(form))

    def _problems(self, form: Edge) -> Reasons:
        """Returns why a form cannot be served beside those that are admitted."""
        try:
            self.files({form["id"]: form})
            reasons = Reasons()
        except Refused as refused:
            if not refused.edges:
                raise
            reasons = refused.edges[form["id"]]
        name = f"edge {called(form)}"
        if words := self._words(form):
            reasons.add(f"{name}: nginx does not accept it: {words}")
        asked = {key_of(it) for it in self.state.edges[form["id"]]["hostports"]}
        ports = dict(self._tls)
        for it in form["hostports"]:
            port, tls, place = int(it["port"]), bool(it["tls"]), f"{name}: hostport {it['hostport']!r}"
            if not it.get("closed"):
                ports.setdefault(port, (tls, called(form)))
            if why := self._why_not(port):
                reasons.add(f"{place}: {why}", hostport=key_of(it))
            elif port in ports and ports[port][0] != tls:
                other = f"port {port} serves {'plain HTTP' if tls else 'TLS'} for edge {ports[port][1]}"
                reasons.add(f"{place}: {other}, and nginx cannot serve both on one port", hostport=key_of(it))
            elif key_of(it) in self._owners and key_of(it) not in asked:
                reasons.add(f"{place}: edge {self._owners[key_of(it)]} has it now", hostport=key_of(it))
        return reasons

    def _kept(self, id: str, reasons: Reasons) -> tuple[Edge, str] | None:
        """Returns the form that is served now, without the hostports that it has lost, if that can be served."""
        former = self.served.get(id)
        if former is None or former.get("closed"):
            return None
        if former.get("lost") and not (reasons.routes or reasons.whole):
            # It is no better than the new form without the same hostports, and older.
            return None
        problems = self._problems(former)
        form = self._without(former, problems)
        if problems.routes or problems.whole or not _open(form):
            return None
        reasons.texts += [text for text in problems.texts if text not in reasons.texts]
        problems.hostports |= {key_of(it) for it in former["hostports"] if it.get("closed")}
        lost = _names(former, problems)
        return form, "keeps its former form" + (f", without {lost}" if lost else "")

    def _reduced(self, id: str, reasons: Reasons) -> tuple[Edge | None, str]:
        """Returns the new form without what cannot be served."""
        asked = self.state.edges[id]
        while not reasons.whole:
            form = {**self._without(asked, reasons), "closed": bool(reasons.routes), "lost": True}
            form["routes"] = [{**it, "modules": CLOSED} if it["id"] in reasons.routes else it for it in asked["routes"]]
            if not _open(form):
                break
            if not reasons.merge(self._problems(form)):
                return form, f"served, except {_names(asked, reasons)}"
        reasons.hostports |= {key_of(it) for it in asked["hostports"]}
        reasons.routes.clear()
        form = {
            **self._without(asked, reasons), "closed": True,
            # Nothing of this matters to a closed host, and it may be what cannot be served.
            "routes": [], "terminate_at": "none", "min_version": None, "mutual_tls": None,
        }
        return (None if self._words(form) else form), f"closed: {_names(asked, reasons)}"

    def _without(self, form: Edge, reasons: Reasons) -> Edge:
        """Closes hostports. Another edge with a wildcard must not get their requests, so nginx listens if it can."""
        hostports = [{**it, "closed": True} if key_of(it) in reasons.hostports else it for it in form["hostports"]]
        return {**form, "hostports": [it for it in hostports if not self._why_not(int(it["port"]))]}

    def _why_not(self, port: int) -> str:
        if port not in self._unusable:
            self._unusable[port] = self.gateway.unusable(port)
        return self._unusable[port]

    def _words(self, form: Edge) -> str:
        """Returns what nginx said against a form."""
        key = _digest(form)
        if key not in self.rejected:
            return ""
        self.seen.add(key)
        return self.rejected[key][1]


def _open(form: Edge | None) -> list[dict[str, Any]]:
    return [it for it in form["hostports"] if not it.get("closed")] if form else []


def _names(form: Edge, reasons: Reasons) -> str:
    routes = [f"route {called(it)}" for it in form["routes"] if it["id"] in reasons.routes]
    return ", ".join(routes + [it["hostport"] for it in form["hostports"] if key_of(it) in reasons.hostports])


def _digest(form: Edge) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()

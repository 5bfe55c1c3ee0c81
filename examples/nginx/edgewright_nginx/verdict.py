"""Finds the edges that nginx itself does not accept, for example because of a certificate that is too weak."""

from __future__ import annotations

from typing import Callable

from .install import Failed


def culprits(ids: list[str], check: Callable[[list[str]], str]) -> dict[str, str]:
    """Returns edges without which nginx accepts the others, and its reasons. `check` returns the reason why it does not accept
    some edges together; empty if it does. Earlier edges stay if it does not accept two of them together."""
    if not check(ids):
        return {}
    if words := check([]):
        raise Failed(words)
    accepted: list[str] = []
    found: dict[str, str] = {}

    def search(some: list[str]) -> None:
        words = check(accepted + some)
        if not words:
            accepted.extend(some)
        elif len(some) == 1:
            found[some[0]] = words
        else:
            search(some[: len(some) // 2])
            search(some[len(some) // 2 :])

    search(ids)
    return found

"""What a response does to the state, and what is kept of it."""

import stat
import tempfile
import unittest
from pathlib import Path
from typing import Any

from edgewright_nginx.feed import Server
from edgewright_nginx.install import Failed, Nginx
from edgewright_nginx.mapping import BadMapping, parse
from edgewright_nginx.state import BadFeed, State, apply, digest_of, load, save

from .documents import edge, state


def document(after: list[dict[str, Any]], full: bool, **changes: Any) -> dict[str, Any]:
    return {
        "revision": 8, "full": full, "digest": digest_of({it["id"]: it for it in after}), "ip_restrictions": [],
        "tls_edges": [], "edges": after if full else [], "changed": {}, "removed": [], **changes,
    }


class States(unittest.TestCase):
    def test_changes_give_the_same_as_the_whole(self) -> None:
        one, two, three = edge("edghts_1"), edge("edghts_2"), edge("edghts_3")
        newer = edge("edghts_2", version="2")
        whole = apply(None, document([newer, three], True), "e")
        changed = {"edghts_2": newer, "edghts_3": three}
        changes = document([newer, three], False, changed=changed, removed=["edghts_1"])
        self.assertEqual(apply(state(one, two), changes, "e"), whole)
        self.assertEqual(apply(whole, changes, "e"), whole, "twice is once")

    def test_what_does_not_add_up_is_refused(self) -> None:
        one, two = edge("edghts_1"), edge("edghts_2")
        with self.assertRaises(BadFeed):
            apply(state(one), document([one, two], False), "e")
        with self.assertRaises(BadFeed):
            apply(None, document([], False), "e")
        for broken in ({}, [], None, {"full": True}, {**document([one], True), "edges": None}):
            with self.assertRaises(BadFeed):
                apply(None, broken, "e")

    def test_a_state_is_kept_whole_and_private(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.json"
            self.assertIsNone(load(path))
            kept: State = state(edge())
            save(path, kept)
            self.assertEqual(load(path), kept)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            path.write_text(path.read_text()[:-20])
            self.assertIsNone(load(path))
            path.write_text('{"revision": 1, "etag": "", "digest": "x", "edges": {}}')
            self.assertIsNone(load(path))


class Installing(unittest.TestCase):
    def test_a_configuration_that_nginx_refuses_is_not_switched_to(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            nginx = Nginx(Path(folder), "/bin/false")
            nginx.prepare()
            with self.assertRaises(Failed):
                nginx.install({"nginx.conf": "", "certificates/0.key": "k"}, 1)
            self.assertEqual((nginx.installed(), list((Path(folder) / "releases").iterdir())), ("", []))


class Given(unittest.TestCase):
    def test_a_token_is_not_sent_in_the_clear(self) -> None:
        for url in ("http://192.0.2.1:8080", "http://localhost.example.com", "ftp://127.0.0.1"):
            with self.assertRaises(ValueError):
                Server(url, Path("token"))
        for url in ("http://127.0.0.1:8080", "http://[::1]:8080", "https://edge.example.com"):
            Server(url, Path("token"))

    def test_a_mapping_has_addresses_and_networks(self) -> None:
        for wrong in ([], {"backend": {}}, {"backends": {"b": "x; }"}}, {"backends": {"b": []}}, {"backends": {"b": "host"}},
                      {"ip_policies": {"p": {"allow": ["x"]}}}, {"ip_policies": {"p": {"alow": []}}}):
            with self.assertRaises((BadMapping, ValueError)):
                parse(wrong)

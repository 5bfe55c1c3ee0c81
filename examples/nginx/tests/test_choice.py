"""Which form of each edge is served if one of them cannot be rendered."""

import unittest
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edgewright_nginx.choice import Served, choose
from edgewright_nginx.render import Refused, Settings

from .documents import MAPPING, backend, edge, hostport, module, route, state

NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)


def chosen(served: dict[str, dict[str, Any]], *edges: dict[str, Any], **more: Any) -> Served:
    return choose(state(*edges, **more), served, MAPPING, Settings(Path("/var/lib/gateway")), NOW)


def login(id: str = "edghtsrt_2") -> dict[str, Any]:
    return route(id, path="/account", modules=[module("saml"), backend()])


class Choice(unittest.TestCase):
    def test_an_edge_keeps_its_form_and_others_change(self) -> None:
        old, new = edge("edghts_1", [hostport("a.test")]), edge("edghts_1", [hostport("a.test"), hostport("c.test")], [login()])
        other = edge("edghts_2", [hostport("b.test")])
        result = chosen({"edghts_1": old, "edghts_2": other}, new, {**other, "hostports": [hostport("d.test")]})
        text = result.files["nginx.conf"]
        self.assertIn('server_name "a.test";', text)
        self.assertIn('server_name "d.test";', text)
        for gone in ("b.test", "c.test"):
            self.assertNotIn(gone, text)
        self.assertIn("module saml", "\n".join(result.held))
        # It stays until the edge can be rendered again.
        again = chosen(result.edges, new, other)
        self.assertEqual(again.edges["edghts_1"]["hostports"], old["hostports"])
        fixed = chosen(again.edges, {**new, "routes": [route()]}, other)
        self.assertEqual((fixed.held, fixed.edges["edghts_1"]["hostports"]), ([], new["hostports"]))

    def test_a_new_edge_is_served_without_what_cannot_be_rendered(self) -> None:
        new = edge(routes=[route(path="/public"), login()])
        result = chosen({}, new)
        text = result.files["nginx.conf"]
        self.assertEqual((text.count("return 503;"), text.count("proxy_pass")), (1, 1))
        # What was closed is no form to keep: other changes of the edge are served.
        moved = chosen(result.edges, {**new, "hostports": [hostport("moved.test")]})
        self.assertIn("moved.test", moved.files["nginx.conf"])
        self.assertEqual(moved.files["nginx.conf"].count("return 503;"), 1)
        dropped = chosen({}, edge(terminate_at="upstream"), edge("edghts_2", [hostport("b.test")]))
        self.assertNotIn("a.test", dropped.files["nginx.conf"])
        self.assertIn("b.test", dropped.files["nginx.conf"])

    def test_a_revision_is_refused_if_the_former_form_cannot_stay(self) -> None:
        old = edge("edghts_1", [hostport("a.test")])
        new = edge("edghts_1", [hostport("c.test")], [login()])
        with self.assertRaisesRegex(Refused, "cannot stay as it is: edghts_2 has a.test:8080 now"):
            chosen({"edghts_1": old}, new, edge("edghts_2", [hostport("a.test")]))
        unknown = edge("edghts_1", routes=[route(modules=[backend("bkd_gone")])])
        with self.assertRaisesRegex(Refused, "no backend 'bkd_gone'"):
            chosen({"edghts_1": unknown}, unknown)

    def test_a_tls_edge_is_told_and_holds_up_nothing(self) -> None:
        result = chosen({}, edge(), tls_edges=[{"id": "edgtls_1", "name": "", "modules": []}])
        self.assertIn("TLS edge", "\n".join(result.held))
        self.assertIn("a.test", result.files["nginx.conf"])


if __name__ == "__main__":
    unittest.main()

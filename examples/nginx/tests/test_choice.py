"""Which form of each edge is served if one of them cannot be rendered."""

import re
import unittest
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edgewright_nginx.choice import Chooser, Served
from edgewright_nginx.install import Failed
from edgewright_nginx.render import Refused, Settings

from .documents import MAPPING, backend, edge, hostport, module, route, state

NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)
CERTIFICATE = {"id": "cert_1", "not_before": "2026-01-01T00:00:00Z", "not_after": "2035-01-01T00:00:00Z",
               "certificate_pem": "c", "private_key_pem": "k"}


class Machine:
    """Does not accept what has a text of `bad`, and cannot listen on the ports of `used`."""

    def __init__(self, bad: tuple[str, ...] = (), used: tuple[int, ...] = ()) -> None:
        self.bad, self.used, self.checks = bad, used, 0

    def check(self, files: dict[str, str]) -> str:
        self.checks += 1
        return next((f"{text} is bad" for text in self.bad if text in files["nginx.conf"]), "")

    def unusable(self, port: int) -> str:
        return "cannot listen: in use" if port in self.used else ""


def chooser(machine: Machine) -> Chooser:
    return Chooser(machine, Settings(Path("/var/lib/gateway")))


def chosen(served: dict[str, dict[str, Any]], *edges: dict[str, Any], machine: Machine | None = None, **more: Any) -> Served:
    return chooser(machine or Machine()).choose(state(*edges, **more), served, MAPPING, NOW)


def hosts(result: Served) -> dict[str, str]:
    """The edges by the hosts that they have in the configuration."""
    ids = sorted(result.edges, key=lambda id: id.encode())
    found = {}
    for host, rest in re.findall(r'server_name "([^"]*)";\n(.*)', result.files["nginx.conf"]):
        number = re.search(r"edgewright_route_([0-9]+)", rest)
        if number or "ssl_" in rest:
            found[host] = ids[int(number[1])] if number else next(id for id in ids if host in str(result.edges[id]["hostports"]))
    return found


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
        self.assertEqual(hosts(dropped), {"b.test": "edghts_2"})
        self.assertIn("edge edghts_1: closed: a.test:8080", dropped.held)

    def test_a_kept_form_loses_the_hosts_that_another_edge_has_now(self) -> None:
        old = edge("edghts_1", [hostport("a.test"), hostport("b.test")], [route(path="/old")])
        new = edge("edghts_1", [hostport("c.test")], [login()])
        result = chosen({"edghts_1": old}, new, edge("edghts_2", [hostport("a.test")]))
        self.assertEqual(result.held, [
            "edge edghts_1: route edghtsrt_2: module saml: nginx cannot do this",
            "edge edghts_1: hostport 'a.test:8080': edge edghts_2 has it now",
            "edge edghts_1: keeps its former form, without a.test:8080",
        ])
        self.assertEqual(hosts(result), {"a.test": "edghts_2", "b.test": "edghts_1"})
        # Without a host left, it is closed where it should be.
        old["hostports"].pop()
        result = chosen({"edghts_1": old}, new, edge("edghts_2", [hostport("a.test")]))
        self.assertEqual(hosts(result), {"a.test": "edghts_2", "c.test": "edghts_1"})
        self.assertIn("return 503;", result.files["nginx.conf"])

    def test_a_host_of_two_edges_stays_with_the_one_that_keeps_its_form(self) -> None:
        old = edge("edghts_1", routes=[route(path="/old")])
        result = chosen({"edghts_1": old}, edge("edghts_1", routes=[login()]), edge("edghts_2"))
        self.assertEqual(hosts(result), {"a.test": "edghts_1"})

    def test_a_route_whose_backend_is_unknown_now_is_closed(self) -> None:
        lost = edge("edghts_1", routes=[route("r1", modules=[backend("bkd_gone")]), route("r2")])
        other = edge("edghts_2", [hostport("b.test")], [route(path="/new")])
        result = chosen({"edghts_1": lost, "edghts_2": edge("edghts_2", [hostport("b.test")])}, lost, other)
        text = result.files["nginx.conf"]
        self.assertEqual((text.count("return 503;"), text.count("proxy_pass")), (1, 2))
        self.assertIn("new", text)
        self.assertIn("no backend 'bkd_gone'", result.held[0])
        self.assertEqual(result.held[1:], ["edge edghts_1: served, except route r1"])

    def test_a_new_edge_gives_way_on_a_port_of_others(self) -> None:
        plain = edge("edghts_5", [hostport("a.test", 443)])
        tls = edge("edghts_1", [hostport("b.test", 443, [CERTIFICATE]), hostport("b.test", 8443, [CERTIFICATE])])
        result = chosen({"edghts_5": plain}, tls, {**plain, "routes": [route(path="/new")]})
        self.assertEqual(hosts(result), {"a.test": "edghts_5", "b.test": "edghts_1"})
        self.assertNotIn("127.0.0.1:443 ssl", result.files["nginx.conf"])
        self.assertIn("serves plain HTTP for edge edghts_5", result.held[0])
        self.assertEqual(result.held[1:], ["edge edghts_1: served, except b.test:443"])
        # It stays so, and an edge that changes itself gives way, too.
        self.assertEqual(chosen(result.edges, tls, plain).held, result.held)
        moved = edge("edghts_2", [hostport("c.test", 443, [CERTIFICATE])])
        served = {"edghts_5": plain, "edghts_2": edge("edghts_2", [hostport("c.test", 443)])}
        self.assertIn("edge edghts_2: keeps its former form", chosen(served, plain, moved).held)
        # All together can change.
        self.assertEqual(chosen(served, edge("edghts_5", [hostport("a.test", 443, [CERTIFICATE])]), moved).held, [])

    def test_a_port_that_is_used_is_told_and_left_out(self) -> None:
        used = Machine(used=(2024,))
        new, other = edge("edghts_1", [hostport("a.test", 2024)]), edge("edghts_2", [hostport("b.test")])
        result = chosen({}, new, other, machine=used)
        self.assertNotIn(":2024", result.files["nginx.conf"])
        self.assertEqual(hosts(result), {"b.test": "edghts_2"})
        self.assertEqual(result.held, ["edge edghts_1: hostport 'a.test:2024': cannot listen: in use",
                                       "edge edghts_1: closed: a.test:2024"])
        moved = chosen({"edghts_1": edge("edghts_1", [hostport("a.test")])}, new, other, machine=used)
        self.assertEqual(hosts(moved), {"a.test": "edghts_1", "b.test": "edghts_2"})
        more = edge("edghts_1", [hostport("a.test", 2024), hostport("a.test")])
        both = chosen({}, more, other, machine=used)
        self.assertEqual(hosts(both), {"a.test": "edghts_1", "b.test": "edghts_2"})
        # Its other changes are served meanwhile.
        changed = chosen(both.edges, {**more, "routes": [route(path="/newer")]}, other, machine=used)
        self.assertIn("newer", changed.files["nginx.conf"])

    def test_an_edge_that_nginx_does_not_accept_is_found(self) -> None:
        machine = Machine(bad=("e3.test", "e6.test"))
        it = chooser(machine)
        edges = [edge(f"edghts_{n}", [hostport(f"e{n}.test")]) for n in range(8)]
        former = {"edghts_6": edge("edghts_6", [hostport("old.test")])}
        result = it.choose(state(*edges), former, MAPPING, NOW)
        self.assertEqual(set(hosts(result)), {"old.test", *(f"e{n}.test" for n in range(8) if n not in (3, 6))})
        self.assertIn("edge edghts_3: nginx does not accept it: e3.test is bad", result.held)
        self.assertIn("edge edghts_3: closed: e3.test:8080", result.held)
        self.assertIn("edge edghts_6: keeps its former form", result.held)
        # Only these are tested again.
        machine.checks = 0
        self.assertEqual(it.choose(state(*edges), result.edges, MAPPING, NOW).held, result.held)
        self.assertLess(machine.checks, 6)
        machine.bad = ()
        self.assertEqual(it.choose(state(*edges), result.edges, MAPPING, NOW).held, [])
        # Without any edge, it is not about them.
        with self.assertRaisesRegex(Failed, "server_tokens is bad"):
            chosen({}, *edges, machine=Machine(bad=("server_tokens",)))

    def test_the_host_of_a_closed_edge_is_not_that_of_a_wildcard(self) -> None:
        bad = edge("edghts_1", [hostport("a.test"), hostport("a.test", 443, [CERTIFICATE])], min_version="9")
        wide = edge("edghts_2", [hostport("*.test"), hostport("*.test", 443, [CERTIFICATE])])
        text = chosen({}, bad, wide).files["nginx.conf"]
        own = [block for block in text.split("server {") if 'server_name "a.test";' in block]
        self.assertEqual([("return 503;" in block, "proxy_pass" in block) for block in own], [(True, False)] * 2)
        self.assertIn("ssl_reject_handshake on;", own[0])

    def test_a_restriction_of_all_endpoints_is_told_once(self) -> None:
        restriction = {"id": "ipx_1", "enforced": True, "ip_policy_ids": ["ipp_gone"]}
        with self.assertRaises(Refused) as caught:
            chosen({}, edge(), edge("edghts_2", [hostport("b.test")]), ip_restrictions=[restriction])
        self.assertEqual(len(caught.exception.reasons), 1)

    def test_a_tls_edge_is_told_and_holds_up_nothing(self) -> None:
        result = chosen({}, edge(), tls_edges=[{"id": "edgtls_1", "name": "", "modules": []}])
        self.assertIn("TLS edge", "\n".join(result.held))
        self.assertIn("a.test", result.files["nginx.conf"])


if __name__ == "__main__":
    unittest.main()

"""What is rendered, and what is refused. If nginx is installed, it checks what is rendered."""

import os
import re
import shutil
import tempfile
import unittest
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edgewright_nginx.install import Failed, Nginx, digest_of
from edgewright_nginx.render import Refused, Settings, render
from edgewright_nginx.state import State

from .documents import HOSTILE, MAPPING, backend, edge, hostport, module, route, state
from .pem import CERTIFICATE, KEY

NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)
CERTIFICATES = [
    {"id": "cert_future", "not_before": "2040-01-01T00:00:00Z", "not_after": "2050-01-01T00:00:00Z",
     "certificate_pem": CERTIFICATE, "private_key_pem": "future"},
    {"id": "cert_now", "not_before": "2026-01-01T00:00:00Z", "not_after": "2035-01-01T00:00:00Z",
     "certificate_pem": CERTIFICATE, "private_key_pem": KEY},
]


def rendered(given: State, folder: Path = Path("/var/lib/gateway")) -> dict[str, str]:
    return render(given, MAPPING, Settings(folder, ("127.0.0.1",), os.geteuid() == 0), NOW)


class Rendering(unittest.TestCase):
    def reasons(self, given: State) -> str:
        with self.assertRaises(Refused) as caught:
            rendered(given)
        return "\n".join(caught.exception.reasons)

    def configuration(self, *edges: dict[str, Any], **more: Any) -> str:
        files = rendered(state(*edges, **more))
        self.accepted(files)
        return files["nginx.conf"]

    def accepted(self, files: dict[str, str]) -> None:
        """Lets nginx check files, where it is installed."""
        if shutil.which("nginx") is None:
            return
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            files = {name: text.replace("/var/lib/gateway", made) for name, text in files.items()}
            nginx = Nginx(folder)
            nginx.prepare()
            if words := nginx.check(files):
                raise Failed(words)

    def test_the_whole_of_an_edge(self) -> None:
        text = self.configuration(edge(
            hostports=[hostport("shop.test", 8443, CERTIFICATES), hostport("*.shop.test", 8443, CERTIFICATES)],
            min_version="1.3",
            mutual_tls={"certificate_authorities": [{"id": "ca_1", "ca_pem": CERTIFICATE}]},
            routes=[route(modules=[
                module("ip_restriction", ip_policies=[{"id": "ipp_local"}]),
                module("user_agent_filter", allow=["^shop-app/"], deny=["(?i)bot"]),
                module("request_headers", add={"X-Edge": "shop $5"}, remove=["X-Debug"]),
                backend("bkd_2"),
                module("response_headers", add={"X-Frame-Options": "DENY"}, remove=["X-Powered-By"]),
                module("compression"),
            ])],
        ))
        for line in (
            'server_name "shop.test";', 'server_name "*.shop.test";', "ssl_protocols TLSv1.3;", "ssl_reject_handshake on;",
            "ssl_verify_client on;", "ssl_client_certificate authorities/0.pem;", "listen 127.0.0.1:8443 ssl;",
            'proxy_set_header "X-Edge" "shop ${edgewright_dollar}5";', 'proxy_set_header "X-Debug" "";',
            'add_header "X-Frame-Options" "DENY" always;', 'proxy_hide_header "X-Powered-By";', "gzip on;",
            "127.0.0.0/8 1;", '"~^.{513}" 1;', r'"~[^\\x20-\\x7E]" 1;', '"~(*LIMIT_MATCH=5000)(?:^shop-app/)" 0;',
            '"~(*LIMIT_MATCH=5000)(?:(?i)bot)" 1;', '"~^" 0;', "server unix:/run/b.sock;",
        ):
            self.assertIn(line, text)
        files = rendered(state(edge(hostports=[hostport("shop.test", 8443, CERTIFICATES)])))
        self.assertEqual(files["certificates/0.key"], KEY, "the first certificate that is valid now")

    def test_the_patterns_of_a_user_agent_filter_share_their_steps(self) -> None:
        def filtered(allow: int, deny: int) -> dict[str, Any]:
            patterns = [f"(?i)bot-{number}" for number in range(allow + deny)]
            return edge(routes=[route(modules=[
                module("user_agent_filter", allow=patterns[:allow], deny=patterns[allow:]), backend(),
            ])])

        for allow, deny, steps in ((0, 1, 5000), (2, 2, 5000), (4, 6, 2000), (0, 100, 200)):
            text = self.configuration(filtered(allow, deny))
            self.assertEqual(text.count(f'"~(*LIMIT_MATCH={steps})(?:'), allow + deny)
        self.assertIn("101 patterns, more than 100", self.reasons(state(filtered(50, 51))))

    def test_routes_are_tried_in_their_order_and_compared_with_the_url(self) -> None:
        text = self.configuration(edge(routes=[
            route("r1", "exact_path", "/a.b", host="*.a.test"),
            route("r2", "path_prefix", "/a", host="a.test", port=8080),
            route("r3", "path_prefix", "/six", host="*"),
            route("r4", "path_prefix", "/"),
        ]))
        patterns = [re.sub(r"\\\\", r"\\", found) for found in re.findall(r'"~(\^.*)" /r[0-9]+;', text)]

        def taken(key: str) -> int | None:
            found = (at for at, it in enumerate(patterns) if re.match(it.replace("\\z", "\\Z"), key))
            return next(found, None)

        self.assertEqual(taken("x.a.test:8080|/a.b"), 0)
        self.assertEqual(taken("x.a.test:8080|/a.bc"), 3)
        self.assertEqual(taken("x.a.test:8080|/axb"), 3)
        self.assertEqual(taken("a.test:8080|/abc"), 1)
        self.assertEqual(taken("a.test:8081|/abc"), 3)
        self.assertEqual(taken("a.test:8080|/A"), 3)
        self.assertEqual(taken("[2001:db8::1]:8080|/six"), 2)
        self.assertIsNone(taken("a.test:8080|x"))
        self.assertIsNone(taken("evil|/a.b:8080|x"))

    def test_the_lower_id_serves_a_hostport_that_two_edges_have(self) -> None:
        text = self.configuration(edge("edghts_2", routes=[route(path="/two")]), edge("edghts_1", routes=[route(path="/one")]))
        self.assertEqual(text.count('server_name "'), 1)
        number = re.search(r"rewrite \^ \$edgewright_route_(\d+)", text)
        assert number
        chosen = text.split(f"$edgewright_route_{number[1]} {{")[1].split("}")[0]
        self.assertIn("one", chosen)

    def test_a_newer_version_holds_beside_an_older_one(self) -> None:
        text = self.configuration(
            edge("edghts_1", [hostport("old.test", 8443, CERTIFICATES)], min_version="1.2"),
            edge("edghts_2", [hostport("new.test", 8443, CERTIFICATES)], min_version="1.3"),
        )
        first = text.index("listen 127.0.0.1:8443 ssl default_server;")
        self.assertIn("ssl_protocols TLSv1.2 TLSv1.3;", text[first : first + 200])
        self.assertEqual(text.count("if ($edgewright_below_3) { return 421; }"), 1)

    def test_what_nginx_cannot_do_is_refused_with_its_place(self) -> None:
        named = edge(name="shop", routes=[route(name="account", modules=[module("oidc", issuer="x"), backend()])])
        self.assertEqual(self.reasons(state(named)),
                         "edge shop (edghts_1): route account (edghtsrt_1): module oidc: nginx cannot do this")
        for name in ("saml", "oauth", "webhook_verification", "jwt_validation", "policies", "circuit_breaker",
                     "websocket_tcp_converter", "module_of_tomorrow"):
            self.assertIn(f"module {name}", self.reasons(state(edge(routes=[route(modules=[module(name)])]))))
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("unknown field 'level'", edge(routes=[route(modules=[module("compression", level=9)])])),
            ("no backend 'bkd_9'", edge(routes=[route(modules=[backend("bkd_9")])])),
            ("no IP policy 'ipp_9'", edge(routes=[route(modules=[module("ip_restriction", ip_policies=[{"id": "ipp_9"}])])])),
            ("no IP policies", edge(routes=[route(modules=[module("ip_restriction", ip_policies=[])])])),
            ("header 'Date'", edge(routes=[route(modules=[module("response_headers", add={}, remove=["Date"])])])),
            ("header 'Server'", edge(routes=[route(modules=[module("response_headers", add={"Server": "x"}, remove=[])])])),
            ("header 'HOST'", edge(routes=[route(modules=[module("request_headers", add={"HOST": "x"}, remove=[])])])),
            ("empty value", edge(routes=[route(modules=[module("response_headers", add={"X-A": ""}, remove=[])])])),
            ("unknown match type", edge(routes=[route(match_type="regex")])),
            ("tls_termination", edge(terminate_at="upstream", min_version=None)),
            ("no certificate covers", edge(hostports=[hostport("a.test", 443, [])])),
            ("an IP address", edge(hostports=[hostport("192.0.2.1", 443, CERTIFICATES)])),
            ("mutual_tls: port 80", edge(hostports=[hostport("a.test", 80)], mutual_tls={"certificate_authorities": []})),
            ("no certificate authorities", edge(hostports=[hostport("a.test", 443, CERTIFICATES)],
                                                mutual_tls={"certificate_authorities": []})),
            ("unknown TLS version", edge(hostports=[hostport("a.test", 443, CERTIFICATES)], min_version="1.4")),
        ]
        for reason, given in wrong:
            self.assertIn(reason, self.reasons(state(given)))

    def test_restrictions_of_all_endpoints_hold_for_each_route(self) -> None:
        restriction = {"id": "ipx_1", "enforced": True, "ip_policy_ids": ["ipp_office"]}
        own = module("ip_restriction", ip_policies=[{"id": "ipp_local"}])
        text = self.configuration(edge(routes=[route(modules=[own, backend()])]), ip_restrictions=[restriction])
        self.assertEqual(len(re.findall(r"if \(\$edgewright_ip_\d\)", text)), 2)
        warned = self.configuration(edge(), ip_restrictions=[{**restriction, "enforced": False}])
        self.assertNotIn("edgewright_ip_", warned)
        unknown = {**restriction, "ip_policy_ids": ["ipp_9"]}
        self.assertIn("ip_restrictions", self.reasons(state(edge(), ip_restrictions=[unknown])))

    def test_hostile_texts_change_nothing_but_their_own_value(self) -> None:
        def shape(text: str) -> str:
            """The configuration without the contents of its quoted texts."""
            return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)

        def variants(text: str) -> list[dict[str, Any]]:
            headers = [module(name, add={"X-A": text}, remove=[]) for name in ("request_headers", "response_headers")]
            removed = [module(name, add={}, remove=[text]) for name in ("request_headers", "response_headers")]
            named = [module(name, add={text: "x"}, remove=[]) for name in ("request_headers", "response_headers")]
            return [
                edge(routes=[route(path="/" + text)]), edge(routes=[route(host=text)]),
                edge(name=text), edge(routes=[route(name=text, id=text)]),
                *(edge(routes=[route(modules=[one, backend()])]) for one in headers + removed + named),
                edge(hostports=[hostport("a.test", 8443, [{**CERTIFICATES[1], "id": text}])]),
                edge(routes=[route(modules=[module("user_agent_filter", allow=[], deny=[text]), backend()])]),
            ]

        for hostile in HOSTILE:
            self.assertIn("neither a host name nor an address", self.reasons(state(edge(hostports=[hostport(hostile)]))))
        checked = 0
        harmless = [shape(rendered(state(given))["nginx.conf"]) for given in variants("harmless")]
        for hostile in HOSTILE:
            for at, given in enumerate(variants(hostile)):
                try:
                    files = rendered(state(given))
                except Refused:
                    continue
                self.assertEqual(shape(files["nginx.conf"]), harmless[at], repr(hostile))
                checked += 1
                try:
                    self.accepted(files)
                except Failed as failed:
                    # nginx may refuse a name or a pattern, and then nothing changes; it must not see another directive.
                    self.assertNotRegex(str(failed), "unknown directive|unexpected|unknown .* variable", repr(hostile))
        self.assertGreater(checked, 60)

    def test_the_same_state_gives_the_same_files(self) -> None:
        one, other = edge("edghts_1"), edge("edghts_2", [hostport("b.test")])
        self.assertEqual(digest_of(rendered(state(one, other))), digest_of(rendered(state(other, one))))


if __name__ == "__main__":
    unittest.main()

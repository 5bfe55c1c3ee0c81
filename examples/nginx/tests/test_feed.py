"""The requests, against a server that answers as edgewright does."""

import http.server
import json
import tempfile
import threading
import unittest
from pathlib import Path

from edgewright_nginx.feed import Server, Unavailable, Watcher, backed_off, read

from .documents import edge, state
from .test_state import document


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers each path with what the test has set."""

    asked: list[tuple[str, str | None, str | None]] = []
    needed: list[str | None] = []
    answers: list[tuple[int, str, bytes]] = []

    def do_GET(self) -> None:
        type(self).asked.append((self.path, self.headers["If-None-Match"], self.headers["Authorization"]))
        type(self).needed.append(self.headers["If-Revision-At-Least"])
        if self.path == "/watch":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b": changes after revision 7\nid: 7\n\nevent: updated\ndata: {}\n\n")
            self.wfile.write(b"id: 8\nevent: revision\ndata: {}\n\n: heartbeat\n\n")
            return
        status, header, body = type(self).answers.pop(0)
        self.send_response(status)
        self.send_header("ETag" if status < 300 else "Location", header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Feed(unittest.TestCase):
    def setUp(self) -> None:
        self.answers = type("These", (Answers,), {"asked": [], "needed": [], "answers": []})
        httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.answers)
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        self.addCleanup(httpd.server_close)
        self.addCleanup(httpd.shutdown)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.token = Path(folder.name) / "token"
        self.token.write_text("ew_ak_1_secret\n")
        self.server = Server(f"http://127.0.0.1:{httpd.server_address[1]}", self.token)

    def test_changes_are_asked_for_and_the_whole_if_they_do_not_add_up(self) -> None:
        one, two = edge("edghts_1"), edge("edghts_2")
        wrong, right = document([one, two], False), document([one, two], True)
        self.answers.answers = [(200, '"8"', json.dumps(it).encode()) for it in (wrong, right)]
        found = read(self.server, state(one))
        assert found is not None
        self.assertEqual((sorted(found.edges), found.etag), (["edghts_1", "edghts_2"], '"8"'))
        bearer = "Bearer ew_ak_1_secret"
        self.assertEqual(self.answers.asked, [
            ("/gateway/configuration?since=7", '"7-0"', bearer), ("/gateway/configuration", None, bearer)])

    def test_nothing_new(self) -> None:
        self.answers.answers = [(304, "", b"")]
        self.assertIsNone(read(self.server, state(edge())))
        self.assertEqual(self.answers.needed, [None])

    def test_a_revision_that_was_announced_is_asked_for(self) -> None:
        changed, right = document([], False), document([edge("edghts_2")], True)
        self.answers.answers = [(200, '"8"', json.dumps(it).encode()) for it in (changed, right)]
        read(self.server, state(edge("edghts_1")), 8)
        self.assertEqual(set(self.answers.needed), {"8"})

    def test_what_is_no_configuration_is_an_error(self) -> None:
        answers = [(503, "", b"{}"), (403, "", b'{"msg": "another role"}'), (200, "", b"<html>"), (302, "/elsewhere", b"")]
        for answer in answers:
            self.answers.answers = [answer]
            with self.assertRaises(Unavailable):
                read(self.server, None)
        self.assertEqual(len(self.answers.asked), len(answers), "no redirect is followed")

    def test_what_is_no_token_is_not_sent_nor_shown(self) -> None:
        for text, why in (("ew_ak_1_secret\nsecond", "it has white space or several lines"), ("\n", "it is empty"),
                          ("ew_ak_1_secret\u00e9", "it has other characters than printable ASCII")):
            self.token.write_text(text, encoding="utf-8")
            with self.assertRaises(Unavailable) as caught:
                read(self.server, None)
            self.assertEqual(str(caught.exception), f"{self.token} must contain only a token: {why}")
        self.assertEqual(self.answers.asked, [])

    def test_a_stream_wakes_for_its_revisions(self) -> None:
        woken: list[int] = []
        Watcher(self.server, woken.append)._follow()
        self.assertEqual(woken, [7, 8], "one for the connection, and one for the revision")

    def test_waits_grow_to_a_limit(self) -> None:
        waits = [0.0]
        for _ in range(8):
            waits.append(backed_off(waits[-1]))
        self.assertEqual(waits, [0.0, 1, 2, 4, 8, 16, 30, 30, 30])

"""Quoting, and what a text of others can do."""

import unittest

from edgewright_nginx.patterns import NotPortable, portable
from edgewright_nginx.quoting import DOLLAR, Unquotable, literal, plain, regex

from .documents import HOSTILE


def read_token(text: str) -> tuple[str, str]:
    """Reads a quoted token as nginx does. Returns it and what follows."""
    assert text[0] == '"'
    at, token = 1, ""
    while text[at] != '"':
        if text[at] == "\\" and text[at + 1] in '"\'\\':
            token, at = token + text[at + 1], at + 2
        elif text[at] == "\\" and text[at + 1] in "trn":
            token, at = token + {"t": "\t", "r": "\r", "n": "\n"}[text[at + 1]], at + 2
        elif text[at] == "\\":
            # nginx takes the next letter, whatever it is.
            token, at = token + text[at : at + 2], at + 2
        else:
            token, at = token + text[at], at + 1
    return token, text[at + 1 :]


class Quoting(unittest.TestCase):
    def test_a_quoted_text_is_one_token_that_stands_for_itself(self) -> None:
        quoted = 0
        for text in HOSTILE:
            try:
                token, rest = read_token(plain(text) + ";")
            except Unquotable:
                continue
            quoted += 1
            self.assertEqual((token, rest), (text, ";"))
            expanded = read_token(literal(text))[0].replace("${" + DOLLAR + "}", "\0")
            self.assertNotIn("$", expanded)
            self.assertEqual(expanded.replace("\0", "$"), text)
        self.assertGreater(quoted, 10)

    def test_control_characters_and_half_characters_are_refused(self) -> None:
        for text in ("a\nb", "a\rb", "a\tb", "a\x00b", "\x7f", "\ud800"):
            with self.assertRaises(Unquotable):
                plain(text)

    def test_an_escaped_text_matches_itself_alone(self) -> None:
        import re

        for text in HOSTILE:
            self.assertTrue(re.fullmatch(regex(text), text), text)
        self.assertIsNone(re.fullmatch(regex("a.b"), "axb"))


class Patterns(unittest.TestCase):
    def test_common_patterns_pass(self) -> None:
        for pattern in ("^shop-app/", "(?i)bot", r"^curl/[0-9.]+$", r"(?:Chrome|Edg)/\d+", "[^a-z]x{2,3}?", "(a|b)*"):
            self.assertEqual(portable(pattern), pattern)

    def test_patterns_with_another_meaning_are_refused(self) -> None:
        for pattern in (
            "", "(?<edgewright_dollar>.)", "(?P<name>.)", "(?'name'.)", "(?R)", "(?x)a b", "(?u)a", "(*ACCEPT)", "a++",
            "a{2}+", "[[:alpha:]]", "[a&&b]", "[]a]", r"\1", r"\pL", r"\Qa\E", "é", "a\nb", "(", ")(", "a\\", "*a", "[",
            r"\<bot", r"bot\>", r"\b{start}bot", r"\B{x}",
        ):
            with self.assertRaises(NotPortable, msg=pattern):
                portable(pattern)

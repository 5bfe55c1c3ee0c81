"""User agent patterns that mean the same in the syntax of the gateway (Rust's `regex`) and in PCRE."""

from __future__ import annotations

import re

# Escapes of classes and assertions with the same meaning for ASCII, which is what user agents consist of.
_SAME_ESCAPES = set("dDwWsSbB")
_FLAGS = re.compile(r"\(\?[ims]+\)|\(\?[ims]*:")


class NotPortable(ValueError):
    """A pattern that nginx could read in another way, or not at all."""


def portable(pattern: str) -> str:
    """Returns the pattern if it has the same meaning in both syntaxes. Above all, it has no named group: that would set a
    variable of the configuration."""
    if not pattern or not pattern.isascii() or not pattern.isprintable():
        raise NotPortable("empty, or not printable ASCII")
    at, in_class = 0, False
    while at < len(pattern):
        letter, rest = pattern[at], pattern[at:]
        if letter == "\\":
            escaped = pattern[at + 1 : at + 2]
            if not escaped or (escaped.isalnum() and escaped not in _SAME_ESCAPES):
                raise NotPortable(f"escape `\\{escaped}`")
            if escaped in "<>" or rest.startswith(("\\b{", "\\B{")):
                raise NotPortable("start or end of a word")
            if in_class and escaped in "bB":
                raise NotPortable("word boundary in a class")
            at += 2
            continue
        if in_class:
            if letter == "[" or rest[:2] in ("&&", "--", "~~"):
                raise NotPortable("set operation in a class")
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
            at += 2 if rest[1:2] == "^" else 1
            # Right after the bracket, some syntaxes read it as a member.
            if pattern[at : at + 1] == "]":
                raise NotPortable("class that begins with `]`")
            continue
        elif rest.startswith("(*"):
            raise NotPortable("verb")
        elif rest.startswith("(?") and not _FLAGS.match(rest):
            raise NotPortable("group with other flags than i, m and s, or with a name")
        elif letter in "*+?}" and rest[1:2] == "+":
            raise NotPortable("possessive quantifier")
        at += 1
    try:
        re.compile(pattern)
    except re.error as error:
        raise NotPortable(str(error)) from error
    return pattern

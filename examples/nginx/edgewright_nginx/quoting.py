"""Text of others in an nginx configuration. Everything that is not a constant of this program goes through here."""

from __future__ import annotations

# nginx has no escape for a dollar sign; the rendered configuration defines this variable as one.
DOLLAR = "edgewright_dollar"


class Unquotable(ValueError):
    """A text that cannot be part of an nginx configuration."""


def plain(text: str) -> str:
    """Quotes a text for a place where nginx expands no variables."""
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in text):
        raise Unquotable(f"control character in {text!r}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unquotable(f"not Unicode: {text!r}") from error
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(text: str) -> str:
    """Quotes a text for a place where nginx expands variables, so that it stands for itself."""
    return plain(text).replace("$", "${" + DOLLAR + "}")


def regex(text: str) -> str:
    """Returns a regular expression that matches exactly this text. It still has to be quoted."""
    return "".join(letter if letter.isalnum() or ord(letter) > 0x7F else "\\" + letter for letter in text)

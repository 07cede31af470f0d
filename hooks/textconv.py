"""What git starts to show a memory in a diff: `open-memex textconv FILE` (gitattributes(5), "textconv").

A reviewer has to see whatever is in the file: what a terminal would act upon or hide is shown escaped, and no
two files that differ in what they say look the same. Secrets are shown too: a reviewer must see that one is
there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from openmemex.cli import escape

HELP = """\
Usage: open-memex textconv FILE

Show a memory as text for reviewers. git starts it in `git diff`; `open-memex init --git` sets it up.

Options:
  -h, --help  Show this message and exit.

Example:
  git config diff.openmemex.textconv "open-memex textconv"
"""
# A run of backslashes before an escape, or before what could be taken for one. Looked at once as a whole: a
# file of nothing else must not take for ever.
_BEFORE_ESCAPE = r"(?<!\\)\\++(?=x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[^\t\x20-\x7e])"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file that `argv` names to stdout, as text for reviewers; the exit code.

    What is no memory, or can't be read as one, is shown as it stands, with the same escapes.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["--help"], ["-h"]):
        sys.stdout.write(HELP)
        return 0
    if words[:1] == ["--"]:
        words = words[1:]
    if len(words) != 1:
        sys.stderr.write("usage: open-memex textconv FILE; `open-memex textconv --help` says more\n")
        return 2
    try:
        with open(words[0], "rb") as file:
            raw = file.read()
    except OSError as error:
        sys.stderr.write(f"error: {escape.one_line(words[0])} can't be read: {error.strerror}\n")
        return 1
    _write(shown(raw))
    return 0


def shown(raw: bytes) -> bytes:
    """The bytes of a memory file as text for reviewers. Never fails: what is no memory is shown as it is."""
    try:
        # Not at the top: should it be broken, the file can still be shown as it is.
        from openmemex.memory.readable import readable

        text = readable(raw, safe)
    except Exception:
        text = "\n".join(
            safe(line[:-1]) + "\r" if line.endswith("\r") else safe(line)
            for line in raw.decode("utf-8", "surrogateescape").split("\n")
        )
    return text.encode("utf-8", "replace")


def safe(text: str) -> str:
    """`text` on one line, with all that does not show itself as an escape that nothing else looks like."""
    if text.isascii() and "\\" not in text and text.replace("\t", " ").isprintable():
        return text
    if "\\" in text:
        text = re.sub(_BEFORE_ESCAPE, lambda found: found[0] * 2, text)
    return escape.visible(text.replace("\r", "\\x0d")).replace("\n", "\\x0a")


def _write(data: bytes) -> None:
    """All of it at once, as bytes: a diff is UTF-8 whatever the locale says."""
    sys.stdout.flush()
    view = memoryview(data)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]


if __name__ == "__main__":
    sys.exit(main())

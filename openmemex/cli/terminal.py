"""Where words go: results to stdout, everything else to stderr, and what each of them can show.

On the path of every search.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from openmemex.cli.escape import for_json, one_line, visible

DEFAULT_WIDTH = 80
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Screen:
    """The two streams of this process, and how they may be written to.

    Streams are looked up at each write, so that a caller in the same process may put its own in place.
    """

    def __init__(
        self,
        *,
        json: bool = False,
        plain: bool = False,
        verbose: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        env = os.environ if environ is None else environ
        self.json = json
        self.verbose = verbose
        # no-color.org: set and not empty means no colour, whatever the value.
        self.plain = plain or json or bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
        self._environ = env

    def out_is_terminal(self) -> bool:
        """Whether a person looks at stdout."""
        return _is_terminal(sys.stdout)

    def can_ask(self) -> bool:
        """Whether a person is there to answer: stdin and stderr are a terminal."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    def shows_progress(self) -> bool:
        """Whether a moving bar may be drawn on stderr."""
        return not self.plain and _is_terminal(sys.stderr)

    def width(self) -> int:
        """Columns of the terminal on stdout; 0 when nothing needs to be cut."""
        if not self.out_is_terminal():
            return 0
        columns = self._environ.get("COLUMNS", "")
        if columns.isascii() and columns.isdigit() and 0 < int(columns) < 10_000:
            return int(columns)
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH
        except (OSError, ValueError):
            return DEFAULT_WIDTH

    def style(self, text: str, name: str) -> str:
        """`text` in a style of the table above where stdout can show it."""
        return _styled(text, name) if self._colours(sys.stdout) else text

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines of a result. Whoever put a line together made texts from outside `visible`."""
        text = "".join(line + "\n" for line in lines)
        if text:
            write(sys.stdout, text)

    def document(self, value: Any) -> None:
        """Write the one JSON document of this run."""
        import json

        text = for_json(json.dumps(value, ensure_ascii=False, indent=2))
        encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("_", "-")
        if encoding not in ("utf-8", "utf8") and not text.isascii():
            # ASCII stands for itself in every encoding that a terminal has.
            text = json.dumps(json.loads(text))
        write(sys.stdout, text + "\n")

    def note(self, text: str, *, kind: str = "") -> None:
        """Write one line for a person beside the result: a notice, a warning, what is going on."""
        head = f"{kind}: " if kind else ""
        if kind and self._colours(sys.stderr):
            head = _styled(head, "red" if kind == "error" else "yellow")
        write(sys.stderr, head + one_line(text) + "\n")

    def quote(self, lines: Iterable[str]) -> None:
        """Write what another program said, line by line as it said it, with a mark before each."""
        for line in lines:
            write(sys.stderr, f"  | {visible(line)}".rstrip() + "\n")

    def ask(self, question: str) -> str:
        """What a person answers to a question on the terminal; "" when the input ends."""
        return self.answer(question) or ""

    def answer(self, question: str) -> str | None:
        """As `ask`, but None when the input ends, which is another thing than an empty line."""
        write(sys.stderr, one_line(question) + " ")
        sys.stderr.flush()
        answer = sys.stdin.readline() if sys.stdin is not None else ""
        if not answer:
            write(sys.stderr, "\n")
            return None
        return answer.strip()

    def _colours(self, stream: TextIO | None) -> bool:
        # Consoles of Windows take these codes only in a mode that Windows Terminal has on from the start.
        known = os.name != "nt" or bool(self._environ.get("WT_SESSION") or self._environ.get("TERM"))
        return not self.plain and known and _is_terminal(stream)


def write(stream: TextIO | None, text: str) -> None:
    """Write `text`, with an escape for what the stream's encoding can't hold; nothing to a closed stream."""
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _styled(text: str, name: str) -> str:
    return f"\x1b[{_STYLES[name]}m{text}\x1b[0m"


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        # A stream that was closed.
        return False

"""What another program said (a hook, a server, a signing program), as lines to show below an error."""

from __future__ import annotations

import re
from typing import Final

from openmemex.git.process import Done, without_credentials

_LINES: Final = 60
_LENGTH: Final = 400
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[mK]")


def lines_of(text: str) -> tuple[str, ...]:
    """`text` line by line as a terminal would have shown it: no colours, no blanks at line ends, no empty
    lines around, credentials taken out.

    Of a line that was written over (a progress bar) the last state counts. Long texts keep their end, where
    the reason usually stands; what is left out is counted. Other control characters stay: who shows it
    escapes them.
    """
    lines = []
    for line in _COLOUR.sub("", without_credentials(text)).replace("\r\n", "\n").split("\n"):
        line = line.rstrip("\r").rpartition("\r")[2].rstrip()
        lines.append(line if len(line) <= _LENGTH else f"{line[:_LENGTH]}… ({len(line)} characters)")
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    if len(lines) > _LINES:
        left_out = len(lines) - _LINES + 1
        lines = [f"({left_out} lines before this are left out)", *lines[left_out:]]
    return tuple(lines)


def said(done: Done) -> tuple[str, ...]:
    """Everything that a git command and what it started wrote: errors first, as most hooks write there."""
    return lines_of(done.err.rstrip("\n") + "\n" + done.out.decode("utf-8", "replace"))

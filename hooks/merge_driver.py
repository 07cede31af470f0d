"""What git starts to merge one memory: `open-memex merge-driver %O %A %B %P` (gitattributes(5)).

git hands over three files, takes the merged text from the second, and reads the exit code: 0 merged, anything
else a conflict. What it can't do is look inside: a driver that fails and leaves the second file alone would
make a conflict that shows our side only, and the next `git add` would lose the other. So whatever happens
here, both sides are in that file before the exit code says "conflict".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from openmemex import faults

MERGED, CONFLICT, USAGE = 0, 1, 2
# Under --from-config the shell around the call has to tell these from a program that never ran (1, 2, 127).
CONFLICT_IS_MARKED, NO_MEMORY = 3, 4
TEMPORARY = ".openmemex"  # the shell around the call removes %A.openmemex after a kill

HELP = """\
Usage: open-memex merge-driver %O %A %B [%P]

Merge one memory for git: field by field, into the file %A. git starts it; `open-memex init --git` sets it up.

  %O %A %B  files with base, ours and theirs; an empty %O means that both sides added the memory
  %P        the memory's path, for messages

Exit code 0: merged. 1: a person must decide; %A holds both sides between conflict markers.

Options:
  --from-config LABELS  as the line in git's configuration calls it: %L %S %X %Y
  -h, --help            Show this message and exit.

Example:
  git config merge.openmemex.driver "open-memex merge-driver %O %A %B %P"
"""


class Call(NamedTuple):
    """The command line as git filled it in: three files, the memory's path, how conflicts are marked."""

    base: str
    ours: str
    theirs: str
    path: str
    marker_size: int
    labels: tuple[str, str, str]
    from_config: bool


class Outcome(NamedTuple):
    """What stands in %A in the end: a merge, or a conflict with what it is about (never a memory's text)."""

    raw: bytes
    conflict: str
    notices: tuple[str, ...] = ()


def main(argv: Sequence[str] | None = None) -> int:
    """Merge the three files that `argv` names into the second of them; the exit code.

    Writes nothing but that file, and nothing to stdout; a line on stderr says what is in conflict.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["--help"], ["-h"]):
        sys.stdout.write(HELP)
        return MERGED
    call = parse(words)
    if call is None:
        _tell("usage: open-memex merge-driver %O %A %B [%P]; `open-memex merge-driver --help` says more")
        return USAGE
    try:
        base, ours, theirs = (_read(path) for path in (call.base, call.ours, call.theirs))
    except OSError as error:
        # Without both sides there is nothing to write. Under --from-config the shell sees a failure.
        _tell(f"{_shown(call)} can't be read to be merged: {error.strerror}")
        return CONFLICT
    stem = None
    try:
        stem = _stem(call.path)
        if call.from_config and call.path and stem is None:
            # Some other Markdown file of the memory folder: git's own merge of lines is right for it.
            return NO_MEMORY
        outcome = _merge(base or None, ours, theirs, stem, call)
    except BaseException as error:  # a Ctrl-C too: git would take the file as it stands
        outcome = Outcome(
            _whole_conflict(base, ours, theirs, call),
            f"could not be merged ({type(error).__name__}), so both sides are in the file whole",
        )
    name = stem or _shown(call)
    try:
        faults.reached("merge-driver.merged")
        _replace(call.ours, outcome.raw)
        faults.reached("merge-driver.written")
    except OSError as error:
        _tell(f"{name}: the merge can't be written: {error.strerror}")
        return CONFLICT
    if not _is_virtual(call):
        for notice in outcome.notices:
            _tell(f"{name}: {notice}")
    if not outcome.conflict:
        return MERGED
    if not _is_virtual(call):
        remedy = f"`open-memex resolve {stem}` settles it" if stem else "settle it by hand"
        _tell(f"{name}: {outcome.conflict}; {remedy}")
    return CONFLICT_IS_MARKED if call.from_config else CONFLICT


def parse(words: Sequence[str]) -> Call | None:
    """The command line read; None when it is none of ours.

    Placeholders that an older git does not know arrive as they stand (`%S`): they count as not given.
    """
    place = list(words).index("--from-config") if "--from-config" in words else len(words)
    files, rest = words[:place], words[place + 1 :]
    if not 3 <= len(files) <= 4 or any(word.startswith("-") for word in files[:3]):
        return None
    given = ["" if len(word) == 2 and word[0] == "%" else word for word in [*rest, "", "", "", ""]]
    base, ours, theirs = (
        _label(word) or name for word, name in zip(given[1:4], ("base", "ours", "theirs"), strict=True)
    )
    return Call(
        base=files[0],
        ours=files[1],
        theirs=files[2],
        path=files[3] if len(files) == 4 else "",
        marker_size=min(int(given[0][:3]), 100) or 7 if given[0].isascii() and given[0].isdigit() else 7,
        labels=(base, ours, theirs),
        from_config=place < len(words),
    )


def _label(word: str) -> str:
    """A name that git gives a side, as text on one line that can be written into the file."""
    return " ".join(os.fsencode(word).decode("utf-8", "replace").split())


def _merge(base: bytes | None, ours: bytes, theirs: bytes, stem: str | None, call: Call) -> Outcome:
    # Not at the top: should it be broken, this file still has to mark the conflict.
    from openmemex.memory.merge import Labels, merge, with_markers

    labels = Labels(*call.labels)
    merged = merge(base, ours, theirs, stem=stem, labels=labels)
    if not merged.conflicts and merged.raw is not None:
        return Outcome(merged.raw, "", merged.notices)
    fields = dict.fromkeys(conflict.field for conflict in merged.conflicts)
    told = _in_words(list(fields))
    marked = _tried(
        lambda: with_markers(base, ours, theirs, labels=labels, marker_size=call.marker_size, stem=stem)
    )
    if marked is None or b"<" * call.marker_size not in marked or b">" * call.marker_size not in marked:
        marked = _whole_conflict(base, ours, theirs, call)
    return Outcome(marked, told)


def _tried(action: Callable[[], bytes]) -> bytes | None:
    try:
        return action()
    except Exception:
        return None


def _in_words(fields: list[str]) -> str:
    """What is in conflict, for the line on stderr. An unknown field's name is text of the file: not told."""
    from openmemex.memory.model import FIELD_BY_NAME

    if not fields or "file" in fields:
        return "can't be merged field by field"
    names = [name for name in fields if name in FIELD_BY_NAME]
    if "body" in fields:
        names.append("the text")
    if len(names) < len(fields):
        names.append("an unknown field")
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
    return f"both sides changed {listed}"


def _whole_conflict(base: bytes | None, ours: bytes, theirs: bytes, call: Call) -> bytes:
    """Both sides whole between markers. Needs nothing that could be broken."""
    size = call.marker_size
    names = [label.encode("utf-8", "replace") for label in call.labels]
    parts = [b"<" * size + b" " + names[1] + b"\n", _ended(ours)]
    if base:
        parts += [b"|" * size + b" " + names[0] + b"\n", _ended(base)]
    parts += [b"=" * size + b"\n", _ended(theirs), b">" * size + b" " + names[2] + b"\n"]
    return b"".join(parts)


def _ended(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _stem(path: str) -> str | None:
    """The id that the memory's path names; None for a file that is no memory's."""
    from openmemex.memory import ids

    name = path.replace("\\", "/").rpartition("/")[2]
    return name[:-3] if name.endswith(".md") and ids.is_id(name[:-3]) else None


def _is_virtual(call: Call) -> bool:
    """Whether this merges two merge bases into one, which nobody sees: git then lengthens the markers by
    two for each level (ll-merge.c, `virtual_ancestor`).
    """
    return call.marker_size > 7 and call.marker_size % 2 == 1


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _replace(path: str, data: bytes) -> None:
    """Put `data` into the file `path`: a kill at any moment leaves the old text or the new one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    temporary = path + TEMPORARY
    try:
        handle = os.open(temporary, flags, os.stat(path).st_mode & 0o777)
    except OSError:
        # A folder that takes no new file, or a name in the way: then in place.
        _write(os.open(path, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_BINARY", 0)), data)
        return
    try:
        _write(handle, data)
        faults.reached("merge-driver.temporary")
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _write(handle: int, data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def _shown(call: Call) -> str:
    return os.fsencode(call.path or "the memory").decode("utf-8", "replace")


def _tell(text: str) -> None:
    """One line for the person who runs git. Whether it can be written changes nothing."""
    try:
        from openmemex.cli import escape, terminal

        terminal.write(sys.stderr, f"open-memex: {escape.one_line(text)}\n")
    except Exception:
        pass


if __name__ == "__main__":
    sys.exit(main())

"""The one line of attributes that memories have in git (gitattributes(5)): put there, taken out, looked at.

It stands in the memory folder's own `.gitattributes`, where it wins over every file further up. So memories
are stored as they are, whatever a repository does with its other Markdown: with bare line feeds, through no
filter (large file storage, `$Id$`, another encoding), and merged and shown by OpenMemex.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Final, NamedTuple

from openmemex import faults, paths
from openmemex.errors import Refused
from openmemex.git import conditions, sparse
from openmemex.git.process import run_git
from openmemex.git.repository import Repository

NAME: Final = ".gitattributes"
WANTED: Final = (
    "text",
    "eol=lf",
    "-filter",
    "-ident",
    "-working-tree-encoding",
    "merge=openmemex",
    "diff=openmemex",
)
_NAMES: Final = tuple(word.lstrip("-").partition("=")[0] for word in WANTED)
LINE: Final = ("*.md " + " ".join(WANTED)).encode()
COMMENT: Final = b"# Written by `open-memex init --git`; `open-memex uninstall --git` takes both lines out."
# `*.md` covers every memory; this id stands for them where git is asked about one.
SAMPLE: Final = "01M8MWM4ZC455EHK8JS70JA77A.md"


class Edit(NamedTuple):
    """What becomes of the attributes file: path from the top, text before and after (None: no file).

    `action`: "added", "changed", "removed", "unchanged", "absent", or "kept": a person changed the line by
    hand, so it stays.
    """

    path: str
    action: str
    before: bytes | None
    after: bytes | None


def with_line(repository: Repository, folder: str, *, force: bool) -> Edit:
    """The edit that brings the line into the memory folder `folder` (from the top); nothing is written.

    Raises Refused where the file is no regular file, or git would not take it.
    """
    path, before = _read(repository, folder)
    _check_taken(repository, path)
    if before is None:
        return Edit(path, "added", None, COMMENT + b"\n" + LINE + b"\n")
    lines = before.splitlines(keepends=True)
    ours = [number for number, line in enumerate(lines) if _is_ours(line)]
    if not ours:
        eol = _eol(before)
        # A file without a last line end gets it back when the lines are taken out: so ours has none then.
        ended = not before or before.endswith(b"\n")
        block = COMMENT + eol + LINE + (eol if ended else b"")
        return Edit(path, "added", before, before + (b"" if ended else eol) + block)
    last = ours[-1]
    if set(WANTED) <= set(_words(lines[last])[1:]):
        return Edit(path, "unchanged", before, before)
    if not force:
        return Edit(path, "kept", before, before)
    lines[last] = LINE + lines[last][len(lines[last].rstrip(b"\r\n")) :]
    return Edit(path, "changed", before, b"".join(lines))


def without_line(repository: Repository, folder: str, *, force: bool) -> Edit:
    """The edit that takes the line and its comment out again; a file that held nothing else goes too.

    A line that a person changed by hand stays without `force`. Raises Refused for what is no regular file.
    """
    path, before = _read(repository, folder)
    if before is None:
        return Edit(path, "absent", None, None)
    lines = before.splitlines(keepends=True)
    kept: list[bytes] = []
    removed = by_hand = False
    for line in lines:
        if _is_ours(line) and (force or _words(line)[1:] == list(WANTED)):
            removed = True
            if kept and kept[-1].strip() == COMMENT:
                kept.pop()
            if not line.endswith(b"\n") and kept:
                kept[-1] = kept[-1].rstrip(b"\r\n")
            continue
        by_hand = by_hand or _is_ours(line)
        kept.append(line)
    if not removed:
        return Edit(path, "kept" if by_hand else "absent", before, before)
    return Edit(path, "removed", before, b"".join(kept) or None)


def carry_out(repository: Repository, edit: Edit) -> None:
    """Write the edit, with the memory folder where it is missing. Raises Refused when the file has changed
    since it was read.
    """
    if edit.before == edit.after:
        return
    full = os.path.join(repository.site.root, *edit.path.split("/"))
    folder = os.path.dirname(full)

    def still_the_same() -> None:
        if _read(repository, edit.path.rpartition("/")[0])[1] != edit.before:
            raise Refused(f"{full} was changed by someone else in the meantime", "Run this again.")

    if edit.after is not None:
        paths.make_folder(folder, 0o777)
        paths.atomic_write(full, edit.after, mode=0o666, before_rename=still_the_same)
        faults.reached("attributes.written")
        return
    still_the_same()
    paths.remove_file(full)
    while folder != repository.site.root:
        try:
            os.rmdir(folder)  # fails where anything is left in it
        except OSError:
            break
        folder = os.path.dirname(folder)


def in_head(repository: Repository, path: str) -> bytes | None:
    """The committed text of `path` (from the top); None where HEAD has none."""
    done = repository.git.run("cat-file", "blob", f"HEAD:{path}", check=False)
    return done.out if done.code == 0 else None


def effective(repository: Repository, folder: str) -> dict[str, str]:
    """What git makes of the attributes of a memory in `folder` here: name to value."""
    answer = repository.git.run("check-attr", "-z", *_NAMES, "--", f"{folder}/{SAMPLE}").fields
    return dict(zip(answer[1::3], answer[2::3], strict=True))


def promised(repository: Repository, folder: str) -> tuple[bool, bool]:
    """Whether an attributes file on the way to `folder` asks for the driver: in the work tree, in HEAD."""
    parts = folder.split("/")
    files = ["/".join([*parts[:n], NAME]) for n in range(len(parts) + 1)]
    here = any(_asks(_content(os.path.join(repository.site.root, *path.split("/")))) for path in files)
    there = any(_asks(in_head(repository, path)) for path in files)
    return here, there


def own_rules(repository: Repository, folder: str) -> dict[str, str]:
    """What `.git/info/attributes`, which wins over every file of the work tree, says of memories otherwise
    than wanted: name to value.
    """
    source = os.path.join(repository.site.common_dir, "info", "attributes")
    if not os.path.isfile(source) or not os.path.getsize(source):
        return {}
    # Asked in an empty repository, so that nothing but this file answers.
    with tempfile.TemporaryDirectory(prefix="open-memex-") as holder:
        environ = repository.environ
        run_git(["init", "-q", "--template=", holder], cwd=holder, environ=environ)
        os.makedirs(os.path.join(holder, ".git", "info"), exist_ok=True)
        shutil.copyfile(source, os.path.join(holder, ".git", "info", "attributes"))
        answer = run_git(
            ["-c", "core.attributesFile=", "check-attr", "-z", *_NAMES, "--", f"{folder}/{SAMPLE}"],
            cwd=holder,
            environ=environ,
            env={"GIT_ATTR_NOSYSTEM": "1"},
        ).fields
    said = dict(zip(answer[1::3], answer[2::3], strict=True))
    return {name: value for name, value in said.items() if value not in ("unspecified", _wanted(name))}


def _wanted(name: str) -> str:
    for word in WANTED:
        bare, equals, value = word.lstrip("-").partition("=")
        if bare == name:
            return value if equals else "unset" if word.startswith("-") else "set"
    return "unspecified"


def _read(repository: Repository, folder: str) -> tuple[str, bytes | None]:
    """The attributes file of `folder`, from the top, and its bytes; None when there is none."""
    path = f"{folder}/{NAME}"
    conditions.check_places(repository.site.root, [path], True)
    return path, _content(os.path.join(repository.site.root, *path.split("/")))


def _check_taken(repository: Repository, path: str) -> None:
    """Raise Refused where git would not take the file along: ignored, or outside a sparse checkout."""
    git = repository.git
    named = f"./{path}"  # a colon in front would be the magic of a pattern
    if git.run("check-ignore", "-q", "--", named, allow=(0, 1)).code == 0:
        rule = git.run("check-ignore", "-v", "--", named, allow=(0, 1)).text.partition("\t")[0]
        raise Refused(
            f"{path} is ignored by git ({rule})",
            f"Take that rule out, or add `!/{path.partition('/')[0]}/` after it.",
        )
    if repository.config.flag("core.sparsecheckout") and not sparse.holds(repository, path):
        folder = path.rpartition("/")[0]
        raise Refused(
            f"{path} is outside this sparse checkout", f"Add its folder: git sparse-checkout add {folder}"
        )


def _content(path: str) -> bytes | None:
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise paths.failure("read", path, error) from None


def _words(line: bytes) -> list[str]:
    return line.decode("utf-8", "surrogateescape").split()


def _is_ours(line: bytes) -> bool:
    """Whether a line is the one that was written here, or what a person made of it."""
    words = _words(line)
    return len(words) > 1 and words[0].lstrip("\ufeff") == "*.md" and "merge=openmemex" in words[1:]


def _asks(text: bytes | None) -> bool:
    lines = (text or b"").splitlines()
    return any("merge=openmemex" in _words(line) and not line.lstrip().startswith(b"#") for line in lines)


def _eol(text: bytes) -> bytes:
    """The line end that the file's own lines have."""
    return b"\r\n" if b"\r\n" in text and text.count(b"\r\n") == text.count(b"\n") else b"\n"

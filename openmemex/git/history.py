"""What was known when: trees of other revisions, the life of one file, a word for a revision or a date.

Also which branch counts as the project's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from openmemex.errors import NotFound, OpenMemexError, UsageError
from openmemex.git import decisions, light
from openmemex.git.objects import REGULAR, folder_entries
from openmemex.git.process import Git, without_credentials
from openmemex.git.repository import Repository
from openmemex.memory.model import now_text, parse_time
from openmemex.trust import secrets


class Version(NamedTuple):
    """What one commit made of a memory's file.

    `at` is the time of the commit (RFC 3339, UTC), `by` its author's name. `oid` is the blob that the file
    then was, None when the commit deleted it; `before` are the blobs that it was in each parent (None: not
    there), more than one of a merge: one that differs from all of them, or that took one side's file although
    the other had changed it too (`oid` is then among `before`). `status` is A(dded), M(odified), D(eleted),
    R(enamed: its folder moved, `came_from` is the path before) or T(ype changed).
    `branch` is "" for what HEAD has, else the branch that alone has it. `begins`: in a shallow clone the
    history is cut off below this commit, so nothing is known of what was before.
    """

    commit: str
    at: str
    by: str
    oid: str | None
    path: str
    status: str
    before: tuple[str | None, ...] = ()
    subject: str = ""
    branch: str = ""
    came_from: str = ""
    begins: bool = False


class Revision(NamedTuple):
    """A commit, the time of it (RFC 3339, UTC), and the words by which it was asked for."""

    commit: str
    at: str
    text: str


# --- trees of other revisions ---


def entries(repository: Repository, rev: str, folder: str) -> dict[str, str]:
    """File name to blob id of the regular files directly in `folder` at `rev`; {} without such a folder."""
    commit = repository.resolve(rev)
    found = folder_entries(repository.objects, commit, folder.strip("/"))
    return {name: entry.oid for name, entry in found.items() if entry.mode in REGULAR}


def blobs(repository: Repository, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The bytes of each blob, in order."""
    return repository.objects.blobs(oids)


def texts(repository: Repository, oids: Sequence[str]) -> dict[str, bytes]:
    """The bytes of those of `oids` that are here. What a partial clone lacks is asked of its remote once."""
    objects = repository.objects
    try:
        return dict(objects.blobs(oids))
    except OpenMemexError:
        pass
    if objects.engine == "git":
        return texts_by_git(repository, oids)
    found: dict[str, bytes] = {}
    for oid in oids:
        try:
            found.update(objects.blobs([oid]))
        except OpenMemexError:
            pass
    return found


def texts_by_git(repository: Repository, oids: Sequence[str]) -> dict[str, bytes]:
    """The bytes of those of `oids` that are here, by one `git cat-file`: for a few, it starts sooner than
    libgit2 loads."""
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(oids)).encode()
    if not asked:
        return {}
    done = repository.git.run("cat-file", "--batch", stdin=asked, check=False)
    if done.code != 0:
        # A remote that should have the rest can't be reached. Older versions of git know the way of not
        # asking by configuration alone, newer ones also by the variable.
        promisors = [key for key in repository.config.keys("remote.") if key.endswith(".promisor")]
        off = [word for key in promisors for word in ("-c", f"{key}=false")]
        done = repository.git.run(
            *off, "cat-file", "--batch", stdin=asked, check=False, env={"GIT_NO_LAZY_FETCH": "1"}
        )
    found: dict[str, bytes] = {}
    at = 0
    while (end := done.out.find(b"\n", at)) >= 0:
        head = done.out[at:end].split(b" ")
        at = end + 1
        if len(head) == 3 and head[2].isdigit():
            size = int(head[2])
            if head[1] == b"blob" and at + size <= len(done.out):
                found[head[0].decode("ascii")] = done.out[at : at + size]
            at += size + 1
    return found


# --- the life of one file ---

_LOG: Final = (
    *("log", "--full-history", "--date-order", "-c", "--raw", "--no-abbrev", "-z", "--no-renames"),
    *("--no-follow", "--no-color", "--no-show-signature", "--no-ext-diff", "--no-textconv"),
    *("--encoding=UTF-8", "--format=%x01%H%x02%P%x02%ct%x02%aN%x02%S%x02%s"),
)
_REF_KIND: Final = re.compile(r"refs/(?:heads|remotes|tags)/")
_WALK_SECONDS: Final = 600.0
_SAFE_NAME: Final = re.compile(r"[0-9A-Za-z._-]+\Z")


class _Change(NamedTuple):
    """One raw line of `git log`: what one commit did to one path.

    `status` is "" of a merge without such a line, which took a parent's file as it is.
    """

    commit: str
    parents: tuple[str, ...]
    seconds: int
    by: str
    reached: str
    subject: str
    before: tuple[str | None, ...]
    oid: str | None
    status: str
    path: str


def versions(repository: Repository, name: str, folders: Sequence[str]) -> list[Version]:
    """The life of the file `name` (`<ID>.md`), newest first: each commit that changed it, wherever it lay.

    Looked for in `folders` (from the top, the likeliest first). A path is followed through commits that
    moved its folder, backwards and forwards, by its name, which is never another memory's. Side branches
    count; of a merge, what differs from all its parents, and what it took where more than one of them had
    changed the file. First all that HEAD has, then what other branches and tags have beside it, without what
    came to HEAD in another commit too (picked, rebased, squashed).
    Raises GitFailed where git can't walk: objects that are missing and can't be fetched.
    """
    if not _SAFE_NAME.match(name):
        raise UsageError(f"{name!r} is no memory's file name")
    tips = _tips(repository)
    if not tips:
        return []
    here, others = _sides(tips)
    begin = _first_paths(repository, name, folders, next(iter(tips.values())))
    found = _walk(repository, name, begin, here, others)
    if not any(change.status for change, _ in found):
        # Nowhere where it is looked for; a folder of another name once may have it.
        found = _walk(repository, name, _paths_anywhere(repository, name, [*here, *others]), here, others)
    shallow = shallow_commits(repository)
    found = _decided(repository, found, bool(shallow))
    mine = _joined([one for one, beside in found if not beside], shallow)
    side = _joined([one for one, beside in found if beside], shallow)
    known = {(one.before, one.oid) for one in mine}
    fresh: list[Version] = []
    for one in side:
        if (one.before, one.oid) not in known:
            known.add((one.before, one.oid))
            fresh.append(one)
    return _in_order(mine, fresh)


def names_in_history(repository: Repository, part: str, folders: Sequence[str]) -> list[str]:
    """The ids, in any commit that a ref reaches, of files `<ID>.md` in `folders` that begin or end with
    `part`. Costs a walk through the whole history."""
    here, others = _sides(_tips(repository))
    if not here and not others:
        return []
    done = repository.git.run(
        *("--literal-pathspecs", "log", "--full-history", "--no-renames", "-m", "--name-only", "-z"),
        *("--no-follow", "--no-show-signature", "--diff-filter=AR", "--format=", *here, *others, "--"),
        *folders,
        seconds=_WALK_SECONDS,
    )
    stems = {os.path.basename(path.strip("\n"))[:-3] for path in done.fields if path.endswith(".md")}
    return sorted(stem for stem in stems if stem.startswith(part) or stem.endswith(part))


def _tips(repository: Repository) -> dict[str, str]:
    """The commits of HEAD and of each branch, remote branch and tag, HEAD first."""
    _, head = light.head(repository.site)
    found = {"HEAD": head} if head is not None else {}
    done = repository.git.run(
        *("for-each-ref", "--format=%(refname)%00%(objectname)%00%(*objectname)%00%(objecttype)"),
        *("refs/heads", "refs/remotes", "refs/tags"),
    )
    for line in done.text.splitlines():
        ref, oid, peeled, kind = line.split("\0")
        if kind == "commit" or (kind == "tag" and peeled):
            found[ref] = oid if kind == "commit" else peeled
    return found


def _sides(tips: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """What names HEAD's commits to `git log`, and what names those of the other refs ([] when all are one).

    By options: a repository may have more refs than a command line can hold.
    """
    here = ["HEAD"] if "HEAD" in tips else []
    own = {tips["HEAD"]} if here else set()
    return here, ["--branches", "--remotes", "--tags"] if set(tips.values()) - own else []


def _first_paths(repository: Repository, name: str, folders: Sequence[str], commit: str) -> list[str]:
    """The paths to begin at: where HEAD has the file; else every place where it may have been.

    One path alone lets git use the Bloom filters of a commit-graph, several don't.
    """
    paths = list(dict.fromkeys(f"{folder.strip('/')}/{name}".lstrip("/") for folder in folders))
    done = repository.git.run(
        *("--literal-pathspecs", "ls-tree", "-z", "--name-only", "--full-tree", commit, "--", *paths),
        check=False,
    )
    here = [path for path in paths if path in done.fields]
    return here or paths


def _paths_anywhere(repository: Repository, name: str, commits: Sequence[str]) -> list[str]:
    done = repository.git.run(
        *("log", "--full-history", "--no-renames", "--no-follow", "--no-show-signature", "-m", "--name-only"),
        *("-z", "--format=", "--diff-filter=A", *commits, "--", f":(glob)**/{name}"),
        seconds=_WALK_SECONDS,
    )
    return list(dict.fromkeys(path.strip("\n") for path in done.fields))


def _walk(
    repository: Repository, name: str, begin: Sequence[str], here: Sequence[str], others: Sequence[str]
) -> list[tuple[_Change, bool]]:
    """Every change of the file, with whether HEAD lacks it: along `begin` and wherever that leads."""
    found: list[tuple[_Change, bool]] = []
    seen: set[str] = set()
    looked: set[str] = set()
    left = list(begin)
    while left:
        seen.update(left)
        changes = _both(repository, left, here, others)
        if not found:
            found = changes
        elif changes:
            # Only one walk over all paths gives the order of what happened along several.
            found = _both(repository, sorted(seen), here, others)
        left = []
        for change, _ in changes:
            if not set("AD") & set(change.status) or not change.parents or change.commit in looked:
                continue
            looked.add(change.commit)
            for path in _elsewhere(repository, change.commit, name):
                if path not in seen and path not in left:
                    left.append(path)
    return found


def _decided(
    repository: Repository, found: Sequence[tuple[_Change, bool]], shallow: bool
) -> list[tuple[_Change, bool]]:
    """`found`, with what those merges took that decided something; the other merges are no steps."""
    told = [change for change, _ in found if change.status]
    taken = decisions.taken(
        repository,
        {change.commit: change.parents for change, _ in found if not change.status},
        sorted({change.path for change in told}),
        frozenset(oid for change in told for oid in change.before),
        shallow,
    )
    kept = []
    for change, beside in found:
        if not change.status and change.commit in taken:
            path, oid, before = taken[change.commit]
            status = "D" if oid is None else "M"
            change = change._replace(before=before, oid=oid, status=status, path=path)
        if change.status:
            kept.append((change, beside))
    return kept


def _both(
    repository: Repository, paths: Sequence[str], here: Sequence[str], others: Sequence[str]
) -> list[tuple[_Change, bool]]:
    changes: list[tuple[_Change, bool]] = []
    if here:
        changes += [(one, False) for one in _log(repository, here, paths)]
    if others:
        beside = [*others, *(["--not", *here] if here else [])]
        changes += [(one, True) for one in _log(repository, beside, paths)]
    return changes


def _log(repository: Repository, commits: Sequence[str], paths: Sequence[str]) -> list[_Change]:
    if not paths:
        return []
    done = repository.git.run("--literal-pathspecs", *_LOG, *commits, "--", *paths, seconds=_WALK_SECONDS)
    found: list[_Change] = []
    head: tuple[str, tuple[str, ...], int, str, str, str] | None = None
    tokens = iter(done.out.decode("utf-8", "surrogateescape").split("\0"))
    for token in tokens:
        text = token.lstrip("\n")
        if text.startswith("\x01"):
            commit, parents, seconds, by, reached, subject = text[1:].split("\x02", 5)
            head = (commit, tuple(parents.split()), int(seconds), by, reached, subject)
            if len(head[1]) > 1:
                found.append(_Change(*head, (), None, "", ""))
        elif text.startswith(":") and head is not None:
            if found and found[-1].commit == head[0] and not found[-1].status:
                found.pop()  # a merge with lines of its own
            count = len(text) - len(text.lstrip(":"))
            parts = text.lstrip(":").split(" ")
            oids = [None if not oid.strip("0") else oid for oid in parts[count + 1 : 2 * count + 2]]
            found.append(_Change(*head, tuple(oids[:-1]), oids[-1], parts[-1], next(tokens, "")))
    return found


def _elsewhere(repository: Repository, commit: str, name: str) -> list[str]:
    """Other paths that lost or got a file of this name in `commit`."""
    done = repository.git.run(
        *("diff-tree", "-m", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames", "--diff-filter=AD"),
        *(commit, "--", f":(glob)**/{name}"),
    )
    return list(dict.fromkeys(done.fields))


def _joined(changes: Sequence[_Change], shallow: frozenset[str]) -> list[Version]:
    """One version a commit: going from one path and coming to another is one step, a move."""
    by_commit: dict[str, list[_Change]] = {}
    for change in changes:
        if change not in by_commit.setdefault(change.commit, []):
            by_commit[change.commit].append(change)
    found = []
    for commit, several in by_commit.items():
        came = [one for one in several if one.oid is not None]
        went = [one for one in several if one.oid is None]
        change = (came or went)[0]
        moved = bool(came and went and change.status[0] == "A")
        found.append(
            Version(
                commit,
                now_text(_moment(change.seconds)),
                without_credentials(change.by),
                change.oid,
                change.path,
                "R" if moved else change.status[0],
                went[0].before if moved else change.before,
                without_credentials(change.subject),
                "" if change.reached == "HEAD" else _REF_KIND.sub("", change.reached, count=1),
                went[0].path if moved else "",
                commit in shallow,
            )
        )
    return found


def _in_order(mine: list[Version], side: list[Version]) -> list[Version]:
    """Both by time, newest first, each in its own order: git's, in which no parent comes before its child.

    Of the same second, what HEAD lacks counts as the newer: it can be a child of the other, never a parent.
    """
    found: list[Version] = []
    one = other = 0
    while one < len(mine) or other < len(side):
        if other == len(side) or (one < len(mine) and mine[one].at > side[other].at):
            found.append(mine[one])
            one += 1
        else:
            found.append(side[other])
            other += 1
    return found


def shallow_commits(repository: Repository) -> frozenset[str]:
    """The commits at which a shallow clone's history is cut off."""
    try:
        with open(os.path.join(repository.site.common_dir, "shallow"), encoding="ascii") as file:
            return frozenset(file.read().split())
    except (OSError, UnicodeError):
        return frozenset()


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)


# --- a word for a revision or a date ---

_UNITS: Final = "second minute hour day week month year"
_COUNTS: Final = "zero one two three four five six seven eight nine ten"
_WORDS: Final = frozenset(
    f"yesterday noon midnight tea now last {_UNITS}"
    " january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday"
    " jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun".split()
) | frozenset(unit + "s" for unit in _UNITS.split())
_FILLERS: Final = frozenset(f"at on a an the and of ago am pm utc gmt z {_COUNTS}".split())
_NUMBER: Final = re.compile(r"[0-9]{1,4}(st|nd|rd|th|am|pm)?\Z|[+-][0-9]{4}\Z")
_CLOCK: Final = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?(am|pm)?\Z|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\Z")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_OID: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_SHOWN: Final = 60
_FAR: Final = 253_402_300_799  # the end of the year 9999
_AT_HINT: Final = (
    "Give a branch, a tag, a commit such as HEAD~3, or a date such as 2026-09-26, 2026-09-26T12:00:00Z"
    ' or "2 weeks ago".'
)


def revision(repository: Repository, text: str) -> Revision:
    """The commit that `text` means: a revision in any spelling that git knows, else a date.

    A name wins over a date. A day counts to its end (UTC); a date with a time is RFC 3339 (UTC where it names
    no offset); git's own words ("yesterday", "2 weeks ago", "last friday") count where each of them has to do
    with time, since git makes some date of any text that holds a number. Of a date, the newest commit on
    HEAD's first parents that was committed by then: what the branch itself held, and not what a side branch
    did that came in later. Raises NotFound for what is neither and where there is no commit by then,
    UsageError for an abbreviation of several commits.
    """
    asked = text.strip()
    if not asked or "\0" in asked:
        raise UsageError("That names no revision and no date.", _AT_HINT)
    # Of `:/TEXT`, which is always a commit, what is put behind it would be part of TEXT (gitrevisions(7)).
    named = asked if asked.startswith(":/") else f"{asked}^{{commit}}"
    done = repository.git.run("rev-parse", "--verify", "--quiet", "--end-of-options", named, check=False)
    commit = done.text.strip()
    if done.code == 0 and _OID.match(commit):
        return Revision(commit, _committed_at(repository, commit), asked)
    # Says why, where git does not take this repository at all.
    repository.git.run("rev-parse", "--git-dir")
    if "ambiguous" in done.err or "is ambiguous" in _why(repository, asked):
        raise UsageError(f"{_quoted(asked)} fits several commits.", "Type more of the commit's id.")
    seconds = _seconds(repository.git, asked)
    if seconds is None:
        raise _neither(repository, asked)
    commit = _newest_by(repository, seconds, asked)
    return Revision(commit, _committed_at(repository, commit), asked)


def _why(repository: Repository, asked: str) -> str:
    """git's words on an abbreviated id; it keeps them to itself when it only verifies."""
    if not re.fullmatch(r"[0-9a-fA-F]{4,63}", asked):
        return ""
    return repository.git.run("rev-parse", f"{asked}^{{commit}}", check=False).err


def _seconds(git: Git, asked: str) -> int | None:
    """The moment that a text names, in seconds since 1970; None when it is no date."""
    moment = parse_time(asked)
    if moment is not None:
        seconds = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        return seconds + 86_399 if ":" not in asked and "T" not in asked.upper() else seconds
    words = re.split(r"[\s.,]+", asked.lower().strip(" .,"))
    known = all(
        word in _WORDS or word in _FILLERS or _NUMBER.match(word) or _CLOCK.match(word) for word in words
    )
    if not known or not any(word in _WORDS or _CLOCK.match(word) for word in words):
        return None
    if re.match(r"[0-9]{4}-", asked):
        return None  # a date that is none, such as the 30th of February
    # `git rev-list --before` takes anything for a date; the type of an expiry date is the one that does not.
    done = git.run("-c", f"openmemex.at={asked}", "config", "--type=expiry-date", "openmemex.at", check=False)
    told = done.text.strip()
    return min(int(told), _FAR) if done.code == 0 and told.isdigit() else None


def _newest_by(repository: Repository, seconds: int, asked: str) -> str:
    _, head = light.head(repository.site)
    if head is None:
        raise NotFound(
            f"{repository.git.folder} has no commit yet, so nothing was known at {_quoted(asked)}.",
            "Commit something first, or leave --at out.",
        )
    if seconds >= 0:
        # Not --min-age: older versions read its number into 32 bits.
        found = repository.git.run(
            "rev-list", "-1", "--first-parent", f"--before=@{seconds} +0000", head
        ).text.strip()
        if found:
            return found
    oldest = repository.git.run("rev-list", "--first-parent", head).text.split()[-1]
    at = _committed_at(repository, oldest)
    if oldest in shallow_commits(repository):
        raise NotFound(
            f"This clone is shallow: its history begins with {oldest[:10]} of {at}, after {_quoted(asked)}.",
            "`git fetch --unshallow` brings the rest.",
        )
    raise NotFound(
        f"The history of HEAD begins with {oldest[:10]} of {at}, after {_quoted(asked)}.",
        "Give a later date.",
    )


def _committed_at(repository: Repository, commit: str) -> str:
    told = repository.git.run("log", "--no-walk", "--no-show-signature", "--format=%ct", commit).text.strip()
    return now_text(_moment(int(told)))


def _neither(repository: Repository, asked: str) -> OpenMemexError:
    hint = _AT_HINT
    _, head = light.head(repository.site)
    if head is None:
        hint = f"{repository.git.folder} has no commit on the current branch yet."
    elif shallow_commits(repository):
        hint = "This clone is shallow and may lack it: `git fetch --unshallow` brings the rest. " + hint
    return NotFound(f"{_quoted(asked)} is no commit here, and no date.", hint)


def _quoted(asked: str) -> str:
    shown = secrets.mask(without_credentials(asked)).text
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…")


# --- branches ---


def base_remote(repository: Repository) -> str | None:
    """The remote whose repository pull requests go to: `upstream`, else `origin`, else the only one."""
    names = remotes(repository)
    for name in ("upstream", "origin"):
        if name in names:
            return name
    return names[0] if len(names) == 1 else None


def remotes(repository: Repository) -> list[str]:
    """The remotes that have an address."""
    keys = repository.config.keys("remote.")
    return [key[len("remote.") : -len(".url")] for key in keys if key.endswith(".url")]


def unpushed(repository: Repository, folder: str) -> int:
    """How many commits of HEAD that touch `folder` no remote has, as this clone knows it; 0 without one."""
    if not remotes(repository):
        return 0
    done = repository.git.run(
        *("--literal-pathspecs", "rev-list", "--count", "HEAD", "--not", "--remotes", "--", folder),
        allow=(0, 128),
        check=False,
    )
    return int(done.text) if done.code == 0 and done.text.strip().isdigit() else 0


def default_branch(repository: Repository, said: str | None = None) -> str | None:
    """The short name of the default branch of where pull requests go to (docs/protocol.md, "Standing").

    The remote's HEAD as this clone knows it, else `said` (what the remote said at the last pull), else the
    first of init.defaultBranch, main and master that is there. None when none is.
    """
    remote = base_remote(repository)
    site = repository.site
    if remote is not None:
        prefix = f"refs/remotes/{remote}/"
        target = light.symbolic_ref(site, f"{prefix}HEAD")
        if target is not None and target.startswith(prefix):
            return target[len(prefix) :]
    else:
        prefix = "refs/heads/"
    for name in (said, repository.config.get("init.defaultbranch"), "main", "master"):
        if name and light.read_ref(site, prefix + name) is not None:
            return name
    return None


def published(repository: Repository, branch: str | None = None) -> str | None:
    """The branch that pull requests go to (`branch`, else the default one) as this clone knows it of the
    remote, in the short form that git takes; None where it knows none.
    """
    remote, name = base_remote(repository), branch or default_branch(repository)
    if remote is None or name is None:
        return None
    known = light.read_ref(repository.site, f"refs/remotes/{remote}/{name}")
    return None if known is None else f"{remote}/{name}"

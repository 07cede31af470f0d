"""Push one branch, by git itself: the server's hooks and the person's own have their say, and are heard.

Nothing is ever forced, no tag and no submodule goes along, and a refusal leaves the remote as it was.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from openmemex.errors import NotFound, PartlyDone, Refused
from openmemex.git import light, process, targets, transport
from openmemex.git.repository import Repository
from openmemex.git.words import lines_of

# The word after the summary in `git push --porcelain` when the remote has commits that are not in the push.
_BEHIND: Final = ("non-fast-forward", "fetch first", "needs force", "stale info")
_SERVER: Final = re.compile(r"^remote: ?(.*)$", re.MULTILINE)


class PushResult(NamedTuple):
    """What a push did.

    `ref`: the branch's full name there. `before` ("" when it was not there) and `after` are commits; equal
    when there was nothing to push. `created`: the branch is new there. `words`: what the server said, line by
    line (often an address to open a pull request at), without any credential.
    """

    remote: str
    ref: str
    before: str
    after: str
    created: bool
    words: tuple[str, ...]


class _Row(NamedTuple):
    """One line of `git push --porcelain` (git-push(1), "OUTPUT"): the flag, the summary, the reason."""

    flag: str
    summary: str
    reason: str


def push(
    repository: Repository, branch: str, *, remote: str | None = None, set_upstream: bool = True
) -> PushResult:
    """Push `branch` to the branch of the same name at `remote` (default: where this repository pushes it).

    `set_upstream`: a branch that follows nothing yet follows what was pushed. Raises NotFound without such a
    branch; Refused, with the remote as it was, where a hook of here, the server or the network says no, or
    where the remote has commits that the branch has not; PartlyDone where a remote has several addresses and
    only some took it.
    """
    repository.require_git()
    # As git pushes it: a symbolic ref goes to the namesake of the branch that it stands for.
    branch = targets.branch_ref(repository, branch).removeprefix("refs/heads/")
    name = f"refs/heads/{branch}"
    commit = light.read_ref(repository.site, name)
    if commit is None:
        raise NotFound(f"There is no branch {branch} in {repository.git.folder}", "`git branch` lists them.")
    chosen = remote or transport.push_remote(repository, branch)
    if chosen is None:
        raise Refused(
            f"{repository.git.folder} has no remote that {branch} would be pushed to",
            "Name one: git remote add origin URL, or among several: git config remote.pushDefault NAME",
        )
    follows = repository.config.get(f"branch.{branch}.merge")
    hook = repository.hook("pre-push")
    done = repository.git.run_network(
        *("push", "--porcelain", "--no-follow-tags", *_submodules(repository)),
        *(["--set-upstream"] if set_upstream and not follows else []),
        *("--", chosen, f"{name}:{name}"),
        check=False,
        # A pre-push hook runs whole test suites.
        seconds=process.HOOK_SECONDS if hook else None,
        own_language=hook is not None,
    )
    # A pre-push hook's own output comes before the report, on the same stream.
    hooks_words = process.without_credentials(done.out.decode("utf-8", "replace")) if hook else ""
    said = transport.without_secrets(repository, chosen, hooks_words + done.err)
    rows = _rows(done.text, name)
    refused = [row for row in rows if row.flag == "!"]
    if done.code != 0 and len(refused) < len(rows):
        raise PartlyDone(
            f"{branch} was pushed to only some of the addresses of {chosen}",
            f"`git remote get-url --push --all {shlex.quote(chosen)}` lists them; push again to finish.",
            _told(said),
        )
    if refused:
        raise _refusal(repository, branch, chosen, refused[0], said)
    if done.code != 0 or not rows:
        raise _failure(repository, branch, chosen, said, hook)
    row = rows[0]
    created = row.flag == "*"
    if row.flag == "=":
        before = after = commit
    else:
        old, _, new = row.summary.partition("..")
        before = "" if created else _full(repository, old)
        after = commit if created or commit.startswith(new) else _full(repository, new)
    return PushResult(chosen, name, before, after, created, _server_words(said))


def _submodules(repository: Repository) -> Sequence[str]:
    """Where the person's settings would push submodules along, have them looked at only."""
    config = repository.config
    wanted = config.get("push.recursesubmodules").lower()
    if wanted in ("on-demand", "only") or (not wanted and config.flag("submodule.recurse")):
        return ("--recurse-submodules=check",)
    return ()


def _rows(porcelain: str, ref: str) -> list[_Row]:
    rows = []
    for line in porcelain.splitlines():
        flag, _, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        if len(flag) == 1 and names.rpartition(":")[2] == ref:
            match = re.fullmatch(r"(.*?)(?: \((.*)\))?", summary)
            assert match is not None
            rows.append(_Row(flag, match[1], match[2] or ""))
    return rows


def _full(repository: Repository, short: str) -> str:
    """The whole id of a commit that git abbreviated; as it stands where this clone does not have it."""
    done = repository.git.run("rev-parse", "--verify", "--quiet", f"{short}^{{commit}}", check=False)
    return done.text.strip() or short


def _refusal(repository: Repository, branch: str, remote: str, row: _Row, said: str) -> Refused:
    place = transport.shown(repository, remote)
    if row.reason in _BEHIND:
        return Refused(
            f"{place} has commits of {branch} that are not here ({row.reason}): nothing was pushed",
            f"Bring them in first: {_rebase(repository, branch, remote)} Then push again.",
            _server_words(said),
        )
    reason = transport.without_secrets(repository, remote, row.reason) or row.summary.strip("[]")
    return Refused(
        f"{place} refused {branch}: {reason}",
        "Nothing was pushed, and the commit is still here. Do what the server asks for, then push again.",
        _server_words(said) or _told(said),
    )


def _rebase(repository: Repository, branch: str, remote: str) -> str:
    """The command that puts the branch's own commits on top of the remote's, wherever it is checked out."""
    pull = ["pull", "--rebase", "--autostash", remote, branch]
    where = targets.checked_out_at(repository, f"refs/heads/{branch}")
    if where is None:
        return f"{shlex.join(['git', 'switch', branch])} && {shlex.join(['git', *pull])}."
    here = os.path.realpath(where) == os.path.realpath(repository.site.root)
    return shlex.join(["git", *([] if here else ["-C", where]), *pull]) + "."


def _failure(repository: Repository, branch: str, remote: str, said: str, hook: str | None) -> Refused:
    """A push of which nothing arrived: git said so before it came to the branch."""
    own = [line for line in said.splitlines() if re.match(r"(fatal|error|ssh):? ", line)]
    told = _told(said)
    if hook is not None and not any(line.startswith("fatal:") for line in own):
        return Refused(
            f"The pre-push hook refused to push {branch}",
            f"Nothing was pushed. Do what the hook asks for ({hook}), then push again.",
            told,
        )
    place = transport.shown(repository, remote)
    reason = transport.reason_of(said)
    return Refused(
        f"Nothing could be pushed to {place}: {reason}",
        f"See that `git push {shlex.quote(remote)} {shlex.quote(branch)}` works, then try again.",
        told if len(told) > 1 else (),
    )


def _server_words(said: str) -> tuple[str, ...]:
    return lines_of("\n".join(match[1].rstrip() for match in _SERVER.finditer(said)))


def _told(said: str) -> tuple[str, ...]:
    """What was said, without what git adds by itself about a push that failed."""
    own = r"error: failed to push some refs to |hint: |To |Done$|[-+*=!X ]\t\S+:\S+\t"
    return lines_of(os.linesep.join(line for line in said.splitlines() if not re.match(own, line)))

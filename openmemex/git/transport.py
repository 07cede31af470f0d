"""Fetch and fast-forward, and the words for what a person does next: push, open a pull request.

Everything that talks to a remote is `git` itself: it alone knows the person's credentials, proxies, host keys
and hooks, and keeps shallow clones whole.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from openmemex.errors import Refused
from openmemex.git import history, identity, light, staging
from openmemex.git.process import HOOK_SECONDS, Done
from openmemex.git.repository import Config, Repository
from openmemex.git.words import lines_of
from openmemex.memory.model import now_text

Progress = Callable[[str, int, int], None]


class PullResult(NamedTuple):
    """The receipt of a pull.

    `before` ("" when the branch had no commit) and `after` are commits. `fetched_at` is RFC 3339. `changes`:
    (status letter as git's: A, M, D, T; path from the top) below the folder asked about. `authors`: who wrote
    the commits that made them, newest first. `ahead`: commits here that the remote does not have yet.
    `default_branch`: what the remote says its own is, None when it does not.
    """

    before: str
    after: str
    branch: str
    remote: str
    fetched_at: str
    changes: tuple[tuple[str, str], ...]
    authors: tuple[str, ...]
    ahead: int
    default_branch: str | None
    engine: str = "git"  # who fetched and moved the branch: always git itself


class _Upstream(NamedTuple):
    """What a branch follows: the remote ("." is this repository), the branch there, where it is noted."""

    remote: str
    merge: str
    tracking: str | None

    @property
    def name(self) -> str:
        short = self.merge.removeprefix("refs/heads/")
        return short if self.remote == "." else f"{self.remote}/{short}"


def pull(repository: Repository, folder: str = "", *, progress: Progress | None = None) -> PullResult:
    """Fetch the current branch's remote and fast-forward to it. Never merges, rebases, commits, stashes or
    forces.

    `folder`: whose changes the receipt lists ("" for all). `progress` is told each step. Raises Refused with
    HEAD, staging area and work tree as they were: no remote or upstream, detached HEAD, an operation pending,
    diverged (how many ahead and behind), the remote's branch moved back, local changes in the way, no
    network.
    """
    repository.require_git()
    branch, before = _current_branch(repository)
    upstream = _upstream(repository, branch)
    step = progress or (lambda _name, _done, _total: None)
    step(f"Fetching from {upstream.remote}", 0, 2)
    fetched_at = now_text()
    target = _bring(repository, upstream)
    step("Fast-forwarding", 1, 2)
    ahead, behind = _apart(repository, before, target)
    if before is not None:
        _check_not_moved_back(repository, upstream, branch, before, target)
        if ahead and behind:
            raise Refused(
                f"{branch} and {upstream.name} have diverged: {ahead} ahead, {behind} behind",
                "Nothing was changed. Put yours on top with `git pull --rebase`, or join both with "
                "`git pull --no-rebase`.",
            )
    if behind:
        if before is not None:
            _check_own_deletions(repository, before, target)
        _fast_forward(repository, branch, target)
    step("Fast-forwarding", 2, 2)
    after = light.read_ref(repository.site, f"refs/heads/{branch}") or target
    changes = _changes(repository, before, after, folder) if after != before else ()
    return PullResult(
        before=before or "",
        after=after,
        branch=branch,
        remote=upstream.remote,
        fetched_at=fetched_at,
        changes=changes,
        authors=_authors(repository, before, after, folder) if changes else (),
        ahead=ahead,
        default_branch=_remote_default(repository, upstream.remote),
    )


def _current_branch(repository: Repository) -> tuple[str, str | None]:
    if repository.site.bare:
        raise Refused(
            f"{repository.site.git_dir} is a bare repository: it has no work tree to bring up to date",
            "Run `git fetch` there, or pull in a clone.",
        )
    pending = repository.pending_operation()
    if pending is not None:
        raise Refused(
            f"A {pending} is not finished in {repository.git.folder}", "Finish it or give it up, then pull."
        )
    ref, commit = light.head(repository.site)
    if ref is None:
        raise Refused(
            f"HEAD is detached in {repository.git.folder}: there is no branch to bring up to date",
            "`git switch` to a branch, then pull.",
        )
    return ref.removeprefix("refs/heads/"), commit


def _upstream(repository: Repository, branch: str) -> _Upstream:
    """What `branch` follows; without a setting, its namesake at `origin` or at the only remote."""
    config = repository.config
    remote, merge = config.get(f"branch.{branch}.remote"), config.get(f"branch.{branch}.merge")
    if remote and merge:
        done = repository.git.run("rev-parse", "--symbolic-full-name", f"{branch}@{{upstream}}", check=False)
        if done.code != 0:
            # Known to git only after the first fetch, or fetched under no name (a narrow refspec).
            return _Upstream(remote, merge, _by_refspec(repository, remote, merge))
        return _Upstream(remote, merge, done.text.strip())
    names = history.remotes(repository)
    if not names:
        raise Refused(
            f"{repository.git.folder} has no remote to pull from",
            "Memories are shared through one: git remote add origin URL",
        )
    remote = remote or ("origin" if "origin" in names else names[0] if len(names) == 1 else "")
    if not remote:
        raise Refused(
            f"{branch} follows no remote branch, and there are several remotes ({', '.join(sorted(names))})",
            f"Choose one: git branch --set-upstream-to=REMOTE/{branch}",
        )
    merge = f"refs/heads/{branch}"
    return _Upstream(remote, merge, _by_refspec(repository, remote, merge))


def _by_refspec(repository: Repository, remote: str, merge: str) -> str | None:
    """Where the ordinary refspec puts a remote's branch."""
    if remote == "." or "/" in remote or ":" in remote:
        return None
    wanted = f"+refs/heads/*:refs/remotes/{remote}/*"
    done = repository.git.run("config", "--get-all", f"remote.{remote}.fetch", allow=(0, 1))
    if wanted in done.text.split("\n") and merge.startswith("refs/heads/"):
        return f"refs/remotes/{remote}/{merge.removeprefix('refs/heads/')}"
    return None


def _fetch(repository: Repository, upstream: _Upstream) -> None:
    """Bring the remote's branches here. Submodules and garbage collection are not this command's business."""
    quiet = ("fetch", "--quiet", "--no-recurse-submodules", "--no-auto-maintenance")
    named = [] if upstream.tracking else [upstream.merge]
    done = repository.git.run_network(*quiet, "--", upstream.remote, *named, check=False)
    if done.code == 0:
        return
    said = without_secrets(repository, upstream.remote, done.err)
    raise Refused(
        f"Nothing could be fetched from {shown(repository, upstream.remote)}: {reason_of(said)}",
        f"Nothing was changed. See that `git fetch {shlex.quote(upstream.remote)}` works, then pull again.",
        words if len(words := lines_of(said)) > 1 else (),
    )


def reason_of(said: str) -> str:
    """git's own words about a failed transfer on one line, without its advice about access rights in
    general.
    """
    general = re.compile(
        r"Please make sure you have the correct access|and the repository exists", re.IGNORECASE
    )
    lines = [line for line in said.splitlines() if line.strip() and not general.search(line)]
    # ssh tells of a changed host key in a page of capitals, and what it comes to in the last line of it.
    verdict = [line for line in lines if line.startswith("Host key verification failed")]
    return Done(1, b"", "\n".join(verdict or lines)).reason


def without_secrets(repository: Repository, remote: str, text: str) -> str:
    """`text` without what this clone's own settings use to log in at `remote`, in any form a server may
    repeat it: passwords and tokens in its addresses, and those in http.extraHeader.
    """
    config = repository.config
    for secret in sorted(_secrets(repository, remote, config), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _secrets(repository: Repository, remote: str, config: Config) -> set[str]:
    found: set[str] = set()
    urls = [remote]
    for which in ((), ("--push",)):
        done = repository.git.run("remote", "get-url", "--all", *which, "--", remote, check=False)
        urls += done.text.splitlines()
    for url in urls:
        match = re.match(r"[a-z+]+://([^/?#]*)@", url, re.IGNORECASE)
        if match:
            user, _, password = match[1].partition(":")
            # A user alone is a token with http, and a plain account name with ssh.
            token = password or (user if url.lower().startswith("http") else "")
            found |= {token, unquote(token)}
        elif "://" not in url and (match := re.match(r"[^/:@]*:(.+)@([^@]*:.*)\Z", url)):
            # `user:password@host:path`: for git and ssh all from the password on is a path at the host
            # `user`. With the path behind it, it is long enough to be known again however short it is.
            found |= {match[1], f"{match[1]}@{match[2]}"}
    for key in config.keys("http."):
        if not key.lower().endswith(".extraheader"):
            continue
        for value in config.values(key):
            words = value.partition(":")[2].split()
            found |= set(words)
            for word in words:
                with contextlib.suppress(ValueError):
                    found.add(base64.b64decode(word, validate=True).decode("utf-8").partition(":")[2])
    # Shorter ones would take ordinary words apart.
    return {secret for secret in found if len(secret) >= 8}


def shown(repository: Repository, remote: str) -> str:
    """A remote for people: its name, and where it is, without any credential."""
    url = identity.remote_url(repository.git, remote)
    normal = None if url is None else identity.normal_origin(url, repository.git.folder)
    return remote if normal is None else f"{remote} ({normal})"


def _bring(repository: Repository, upstream: _Upstream) -> str:
    """Fetch, and return the commit that the followed branch is at now."""
    short = upstream.merge.removeprefix("refs/heads/")
    found = None
    if upstream.remote == ".":
        found = light.read_ref(repository.site, upstream.merge)
    else:
        # A second time, as an editor that fetches in the background may have written over what git noted.
        for _ in range(2):
            _fetch(repository, upstream)
            found = _fetched(repository, short)
            if found is not None:
                break
    if found is None:
        raise Refused(
            f"{upstream.remote} has no branch {short}: there is nothing to pull",
            f"Push yours (git push -u {shlex.quote(upstream.remote)} {shlex.quote(short)}), or follow "
            "another one (git branch --set-upstream-to=REMOTE/BRANCH).",
        )
    return found


def _fetched(repository: Repository, short: str) -> str | None:
    """The commit of the remote's branch `short`, from what git noted of the last fetch (FETCH_HEAD)."""
    # Not the remote-tracking ref: it outlives a branch that was deleted at the remote.
    found = None
    try:
        with open(
            os.path.join(repository.site.git_dir, "FETCH_HEAD"), encoding="utf-8", errors="replace"
        ) as file:
            for line in file:
                oid, _, rest = line.rstrip("\n").partition("\t")
                if rest.partition("\t")[2].removeprefix("branch ").startswith(f"'{short}' of "):
                    found = oid
    except FileNotFoundError:
        return None
    return found


def _apart(repository: Repository, before: str | None, target: str) -> tuple[int, int]:
    """How many commits are only here, and only there."""
    if before is None:
        return 0, 1
    done = repository.git.run("rev-list", "--left-right", "--count", f"{before}...{target}")
    ahead, behind = done.text.split()
    return int(ahead), int(behind)


def _check_not_moved_back(
    repository: Repository, upstream: _Upstream, branch: str, before: str, target: str
) -> None:
    """Refuse when the remote's branch lost commits that this one still has: they are not new work of here."""
    if upstream.tracking is None or before == target:
        return
    done = repository.git.run("merge-base", "--fork-point", upstream.tracking, before, allow=(0, 1))
    point = done.text.strip()
    if not point or repository.git.run("merge-base", "--is-ancestor", point, target, allow=(0, 1)).code == 0:
        return
    lost = repository.git.run("rev-list", "--count", f"{target}..{point}").text.strip()
    raise Refused(
        f"{upstream.name} was moved back: {lost} commit(s) that it had, and {branch} still has, are gone",
        "Nothing was changed. Ask who rewrote it. To follow it and keep your own commits: "
        f"git rebase --onto {upstream.name} {point[:12]} {branch}",
    )


def _check_own_deletions(repository: Repository, before: str, target: str) -> None:
    """Refuse where a file that was deleted here, uncommitted, would come back changed (git lets it)."""
    here = repository.git.run("diff-files", "-z", "--name-only", "--diff-filter=D").fields
    if not here:
        return
    there = repository.git.run(
        *("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=d", before, target)
    ).fields
    both = sorted(set(here) & set(there))
    if both:
        raise Refused(
            f"You deleted {_listed(both)}, and the pull would bring it back changed",
            "Nothing was changed. Commit the deletion (memories: `open-memex submit`) or take it back "
            "(`git restore FILE`), then pull again.",
        )


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _fast_forward(repository: Repository, branch: str, target: str) -> None:
    """`git merge --ff-only`: it keeps every local change, or refuses before anything moves."""
    staging.wait_for_lock(repository.git)
    done = _merge_ff_only(repository, branch, target)
    in_the_way = _in_the_way(done)
    if in_the_way and _arrived_already(repository, target, in_the_way):
        _put_back(repository, in_the_way)
        done = _merge_ff_only(repository, branch, target)
        in_the_way = _in_the_way(done)
    if done.code == 0:
        return
    if in_the_way:
        raise Refused(
            f"Your own changes to {_listed(in_the_way)} are in the way of the pull",
            "Nothing was changed. Commit them (memories: `open-memex submit`) or put them aside "
            "(`git stash`), then pull again.",
        )
    raise Refused(
        f"git could not fast-forward {branch}: {done.reason}", "Nothing was changed; `git status` says more."
    )


def _merge_ff_only(repository: Repository, branch: str, target: str) -> Done:
    return repository.git.run(
        *("-c", f"branch.{branch}.mergeOptions=", "merge", "--ff-only"),
        *("--no-autostash", "--no-stat", "--quiet", target),
        check=False,
        writes=True,
        seconds=HOOK_SECONDS,
    )


def _in_the_way(done: Done) -> list[str]:
    lines = done.err.splitlines() if done.code != 0 else []
    return [line.strip() for line in lines if line.startswith("\t")]


def _arrived_already(repository: Repository, target: str, paths: Sequence[str]) -> bool:
    """Whether each file is what `target` has there, as a fast-forward that was killed leaves it: then it is
    nobody's own work. Names that git shows quoted count as own work.
    """
    root = repository.site.root
    if not all(
        os.path.isfile(os.path.join(root, p)) and not os.path.islink(os.path.join(root, p)) for p in paths
    ):
        return False
    listed = repository.git.run("--literal-pathspecs", "ls-tree", "-z", target, "--", *paths).fields
    there = {line.partition("\t")[2]: line.split(" ")[2].partition("\t")[0] for line in listed}
    names = "".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape")
    here = repository.git.run("hash-object", "--stdin-paths", stdin=names).text.split()
    return [there.get(path) for path in paths] == here


def _put_back(repository: Repository, paths: Sequence[str]) -> None:
    """Let those files be as the staging area has them, or gone, so that git writes them once more."""
    known = staging.staged(repository.git, paths)
    for path in paths:
        if path not in known:
            os.unlink(os.path.join(repository.site.root, path))
    names = "".join(f"{path}\0" for path in known).encode("utf-8", "surrogateescape")
    repository.git.run("checkout-index", "-q", "-f", "-u", "-z", "--stdin", stdin=names, writes=True)


def _changes(
    repository: Repository, before: str | None, after: str, folder: str
) -> tuple[tuple[str, str], ...]:
    start = before or repository.git.run("hash-object", "-t", "tree", "--stdin", stdin=b"").text.strip()
    done = repository.git.run(
        *("--literal-pathspecs", "diff-tree", "-r", "-z", "--no-renames", "--name-status", start, after),
        *("--", folder.strip("/") or "."),
    )
    return tuple(zip(done.fields[::2], done.fields[1::2], strict=True))


def _authors(repository: Repository, before: str | None, after: str, folder: str) -> tuple[str, ...]:
    done = repository.git.run(
        *("--literal-pathspecs", "log", "-z", "--format=%aN", "--no-show-signature"),
        *(f"{before}..{after}" if before else after, "--", folder.strip("/") or "."),
    )
    return tuple(dict.fromkeys(name.strip("\n") for name in done.text.split("\0") if name.strip("\n")))


def _remote_default(repository: Repository, remote: str) -> str | None:
    """What the remote says its default branch is: from here when it is noted here, else asked."""
    if remote == ".":
        return None
    prefix = f"refs/remotes/{remote}/"
    noted = light.symbolic_ref(repository.site, prefix + "HEAD")
    if noted is not None and noted.startswith(prefix):
        return noted[len(prefix) :]
    try:
        done = repository.git.run_network("ls-remote", "--symref", "--", remote, "HEAD", check=False)
    except Refused:
        return None
    match = re.match(r"ref: refs/heads/(\S+)\tHEAD$", done.text, re.MULTILINE)
    return match[1] if done.code == 0 and match else None


# --- what to do next ---


def push_remote(repository: Repository, branch: str) -> str | None:
    """Where `branch` is pushed: its own setting, the repository's, what it follows, origin, the only one."""
    config, names = repository.config, history.remotes(repository)
    for name in (
        config.get(f"branch.{branch}.pushremote"),
        config.get("remote.pushdefault"),
        config.get(f"branch.{branch}.remote"),
        "origin",
    ):
        if name and name in names:
            return name
    return names[0] if len(names) == 1 else None


def push_command(repository: Repository, branch: str) -> list[str]:
    """The command that pushes `branch`, for a shell; nothing without a remote to push to."""
    remote = push_remote(repository, branch)
    if remote is None:
        return []
    follows = repository.config.get(f"branch.{branch}.merge")
    words = ["git", "push", *([] if follows else ["-u"]), remote, branch]
    return [shlex.join(words)]


def pull_request_command(repository: Repository, branch: str, base: str) -> list[str]:
    """The `gh` command that opens a pull request from `branch` to `base`, for a shell; nothing where gh
    can't.

    The base is the repository of `upstream`, if there is that remote. From a fork the head is named with its
    owner.
    """
    remote, target = push_remote(repository, branch), history.base_remote(repository)
    if remote is None or target is None:
        return []
    head_at, base_at = (_normal(repository, name, push=name == remote) for name in (remote, target))
    if not _is_github(head_at) or identity.host_of(head_at) != identity.host_of(base_at):
        return []
    head_repo, base_repo = identity.owner_repo(head_at), identity.owner_repo(base_at)
    if head_repo is None or base_repo is None or "/" not in head_repo:
        return []
    host = identity.host_of(base_at)
    words = ["gh", "pr", "create", "--base", base, "--head", branch]
    if head_repo != base_repo:
        words[-1] = f"{head_repo.split('/')[0]}:{branch}"
        words[3:3] = ["--repo", base_repo if host == "github.com" else f"{host}/{base_repo}"]
    return [shlex.join(words)]


def _normal(repository: Repository, remote: str, *, push: bool) -> str:
    url = identity.remote_url(repository.git, remote, push=push)
    return "" if url is None else identity.normal_origin(url, repository.git.folder)


def _is_github(normal: str) -> bool:
    """Whether a host looks like GitHub, or GitHub Enterprise by its usual names."""
    host = identity.host_of(normal)
    return (
        host == "github.com" or host.endswith(".ghe.com") or bool(re.match(r"(github|ghe)\.(?!com\.)", host))
    )

"""How git is started: no prompt, no inherited input, a time limit, no stray GIT_DIR, no password shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from openmemex.errors import OpenMemexError, Refused
from openmemex.git.light import Site

LOCAL_SECONDS: Final = 60.0
NETWORK_SECONDS: Final = 120.0
HOOK_SECONDS: Final = 900.0
GRACE_SECONDS: Final = 2.0

# What `git rev-parse --local-env-vars` lists, without the ones that all of git obeys alike (a user's own
# `git -c` and GIT_CONFIG_*), and what changes how names on the command line or git's output are read. Hooks'
# children inherit these from git: they would send our git to another repository, staging area or object store
# than the one asked about.
_MISLEADING: Final = (
    # Obeyed by `git config` alone: what it tells would not be what a commit goes by (signing, hooks).
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_GRAFT_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_NAMESPACE",
    "GIT_ATTR_SOURCE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_PRINT_SHA1_ELLIPSIS",
    "GIT_REFLOG_ACTION",
    # On Windows they take git's streams elsewhere.
    "GIT_REDIRECT_STDIN",
    "GIT_REDIRECT_STDOUT",
    "GIT_REDIRECT_STDERR",
)
# How a person watches git at work. It would be mixed into git's words, `Authorization: …` included.
_TRACES: Final = re.compile(r"GIT_TRACE2?(_.*)?|GIT_CURL_VERBOSE")
_TO_STDERR: Final = frozenset({"1", "2", "true"})
# A person's settings may put a signature's check between the lines that `git log` prints, print names in
# another encoding, or leave out what the first commit brought. These commands start no hook and no filter:
# nobody else inherits this.
_TELLING: Final = frozenset({"log", "show", "rev-list", "diff-tree"})
_AS_READ_HERE: Final = (
    *("-c", "log.showSignature=false", "-c", "log.showRoot=true"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
)
# What git from 2.36 on says, in any language, of a setting that only older ones need (see Git.run).
_OWN_SETTING: Final = re.compile(r"^.*core\.fsyncObjectFiles.*\n?", re.MULTILINE)
# Oldest git whose commands and options are all there.
OLDEST: Final = (2, 30)


class Done(NamedTuple):
    """How a git command ended: its exit code, its output, and its words without any credential."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """The output as text; names that are no UTF-8 keep their bytes (surrogateescape)."""
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def fields(self) -> list[str]:
        """The output of a `-z` command, split."""
        return self.text.split("\0")[:-1]

    @property
    def reason(self) -> str:
        """What git said was wrong, on one line, without its `fatal:` and its hints."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        said = [line for line in lines if not line.startswith(("hint:", "warning:"))] or lines
        words = [re.sub(r"^(fatal|error): ", "", line) for line in said[:4]]
        return " ".join(words) or f"exit code {self.code}"


class GitMissing(Refused):
    """There is no git on the PATH."""


class GitFailed(OpenMemexError):
    """A git command ended with an exit code that nobody expected; `done` is how."""

    def __init__(self, message: str, hint: str = "", done: Done | None = None) -> None:
        super().__init__(message, hint)
        self.done = done


class Untrusted(GitFailed):
    """The repository belongs to another account, and git does not read it until it is told to."""


def without_credentials(text: str) -> str:
    """`text` without the user, password and query of every URL in it, or those of user:password@host:path."""
    # A password can hold a slash that should have been percent-encoded: up to the last @, rather too much.
    text = re.sub(r"(://)[^/\s'\"@:]*:[^\s'\"]*@", r"\1", text)
    text = re.sub(r"(://)[^/\s'\"]*@", r"\1", text)
    text = re.sub(r"(://[^\s'\"?#]+)\?[^\s'\"]*", r"\1", text)
    # No scheme, so no password by git's rules: but people write it, and git says it back.
    return re.sub(r"(?<![^\s'\"(<=`])[^\s'\"/:@<(]+:(?!//)[^\s'\"]+@(?=[\w.\-\[\]]+:)", "", text)


class Git:
    """Starts git in one repository.

    `site` says which: a work tree that git finds by itself is entered with -C alone, so that hooks see what
    they see when the user commits; any other is named by GIT_DIR and GIT_WORK_TREE.
    """

    def __init__(self, site: Site, environ: Mapping[str, str] = os.environ) -> None:
        self.site = site
        self.environ = environ
        self.folder = site.root or site.git_dir
        self._place: dict[str, str] = {}
        if site.bare or not _finds_itself(site):
            self._place["GIT_DIR"] = site.git_dir
            if site.common_dir != site.git_dir:
                self._place["GIT_COMMON_DIR"] = site.common_dir
            if site.root:
                self._place["GIT_WORK_TREE"] = site.root

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        check: bool = True,
        allow: Collection[int] = (0,),
        seconds: float = LOCAL_SECONDS,
        writes: bool = False,
        own_language: bool = False,
        durable: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """Run `git ARGS` at the top of the repository and wait.

        `stdin`: what it reads; nothing when None. `writes`: it may take git's optional locks. `own_language`:
        keep the user's locale, for words that go to the user and for hooks. `durable`: what it writes must be
        on disk before it ends (git's own default trusts the system to write soon). Raises GitFailed on an
        exit code outside `allow` (unless `check` is false), Refused when git is missing or the time is over.
        """
        own: dict[str, str] = {} if own_language else {"LC_ALL": "C", "LANGUAGE": ""}
        if not writes:
            own["GIT_OPTIONAL_LOCKS"] = "0"
        return run_git(
            # The second is what git before 2.36 called it.
            ("-c", "core.fsync=all", "-c", "core.fsyncObjectFiles=true", *args) if durable else args,
            cwd=self.folder,
            environ=self.environ,
            env={**own, **self._place, **(env or {})},
            stdin=stdin,
            allow=allow if check else None,
            seconds=seconds,
        )

    def run_network(
        self,
        *args: str,
        allow: Collection[int] = (0,),
        check: bool = True,
        seconds: float | None = None,
        own_language: bool = False,
    ) -> Done:
        """Run a command that talks to a remote: never asks anything, and not longer than `seconds`
        (NETWORK_SECONDS).
        """
        env = {}
        if not (self.environ.get("GIT_SSH_COMMAND") or self.environ.get("GIT_SSH")):
            configured = self.run("config", "--get", "core.sshCommand", allow=(0, 1))
            if not configured.text.strip():
                env["GIT_SSH_COMMAND"] = "ssh -oBatchMode=yes"
        return self.run(
            *args,
            allow=allow,
            check=check,
            seconds=NETWORK_SECONDS if seconds is None else seconds,
            writes=True,
            own_language=own_language,
            env=env,
        )


def oldest() -> str:
    """The oldest git that this program works with, as a version."""
    return ".".join(map(str, OLDEST))


def version(environ: Mapping[str, str] = os.environ) -> str:
    """The version that the git on the PATH tells of itself. Raises Refused without one."""
    done = run_git(["--version"], cwd=os.path.abspath(os.sep), environ=environ, seconds=LOCAL_SECONDS)
    return done.text.strip().removeprefix("git version ")


def is_old(told: str) -> bool:
    """Whether a version as git tells it is below OLDEST; one that can't be read is not."""
    match = re.match(r"(\d+)\.(\d+)", told)
    return match is not None and (int(match[1]), int(match[2])) < OLDEST


def _finds_itself(site: Site) -> bool:
    """Whether git, started in the work tree's top, comes to this very git folder."""
    dot_git = os.path.join(site.root, ".git")
    if os.path.isdir(dot_git):
        return os.path.realpath(dot_git) == site.git_dir
    try:
        with open(dot_git, encoding="utf-8", errors="surrogateescape") as file:
            pointed = file.read(1 << 16)
    except OSError:
        return False
    named = pointed.partition("gitdir:")[2].strip()
    return os.path.realpath(os.path.join(site.root, named)) == site.git_dir


def run_git(
    args: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str] = os.environ,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    allow: Collection[int] | None = (0,),
    seconds: float = LOCAL_SECONDS,
) -> Done:
    """Run git anywhere; see Git.run. `allow` None: any exit code is fine."""
    clean = {
        name: value
        for name, value in environ.items()
        if name not in _MISLEADING and not (_TRACES.fullmatch(name) and value.lower() in _TO_STDERR)
    }
    command = _command(args)
    if command in _TELLING:
        args = (*_AS_READ_HERE, *args)
    clean.update(GIT_TERMINAL_PROMPT="0", GCM_INTERACTIVE="never", GIT_PAGER="cat", GIT_EDITOR=":")
    clean.update(env or {})
    try:
        process = subprocess.Popen(
            ["git", *args],
            cwd=cwd,
            env=clean,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Its own session: no terminal to ask at, and one signal ends it with all its children.
            start_new_session=sys.platform != "win32",
        )
    except FileNotFoundError:
        if not os.path.isdir(cwd):
            raise Refused(f"{cwd} is gone", "Start again from a folder that exists.") from None
        raise GitMissing(
            "git was not found on the PATH",
            f"Install git {oldest()} or newer (https://git-scm.com/downloads).",
        ) from None
    except OSError as error:
        raise Refused(f"git could not be started in {cwd}: {error.strerror}") from None
    out, err, late = _communicate(process, stdin, seconds)
    words = _OWN_SETTING.sub("", without_credentials(err.decode("utf-8", "replace")))
    done = Done(process.returncode, out, words)
    if late:
        raise Refused(
            f"`git {command}` in {cwd} was stopped after {seconds:.0f} s without an end",
            "Run it by hand there to see what it waits for (a password, a host key, a server).",
        )
    if allow is not None and done.code not in allow:
        raise failure(command, cwd, done)
    return done


def _command(args: Sequence[str]) -> str:
    """git's command among its arguments: the first word that is no option, and no option's value."""
    before = ("", *args)
    return next(
        (
            a
            for a, b in zip(args, before, strict=False)
            if a[:1] != "-" and b not in ("-c", "-C", "--git-dir")
        ),
        "",
    )


def _communicate(
    process: subprocess.Popen[bytes], stdin: bytes | None, seconds: float
) -> tuple[bytes, bytes, bool]:
    """Feed and drain the process. When the time is over end it and its children, and return True last."""
    try:
        out, err = process.communicate(stdin, timeout=seconds)
        return out, err, False
    except subprocess.TimeoutExpired:
        _end(process)
    except BaseException:
        _end(process)
        raise
    try:
        out, err = process.communicate(timeout=2)
    except (subprocess.TimeoutExpired, ValueError):
        out, err = b"", b""  # a child that left the session holds the pipe: leave it alone
    return out, err, True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with all its children: asked first, so that git takes its locks away, then killed."""
    if sys.platform == "win32":
        process.kill()
    else:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=GRACE_SECONDS)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
    threading.Thread(target=process.wait, daemon=True).start()


def failure(command: str, cwd: str, done: Done) -> GitFailed:
    """The error for a `git COMMAND` in `cwd` that ended as nobody expected; Untrusted where that is why."""
    if "safe.directory" in done.err:
        hint = f"If you trust it: git config --global --add safe.directory {cwd}"
        return Untrusted(f"git does not trust {cwd}: it belongs to another user", hint, done)
    return GitFailed(f"`git {command}` failed in {cwd}: {done.reason}", done=done)

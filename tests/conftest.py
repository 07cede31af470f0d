"""What every test stands on: an own HOME, an own git configuration, real git, real processes.

No test may see the configuration, the memories or the repositories of the person who runs it. So the
environment is made anew for each test, without being asked (`_hermetic`), and once more while the test
modules are imported. Safe under pytest-xdist: tests share nothing but the checkout, which none writes to.

Fixtures for tests:

* `home` - the test's HOME; `home.data` and `home.config` are its data root and config file (not there yet).
* `git("commit", "-m", "x", cwd=repo)` - runs git, fails the test when git fails, returns stdout without the
  last line end. `git.run(...)` returns the CompletedProcess and fails nothing.
* `make_repo("name")` - a repository on branch `main` with one commit; `commits=0` leaves it unborn,
  `origin=URL` adds that remote.
* `make_remote(repo, "name")` - a bare remote made from `repo`, set as its `origin`; returns its path.
* `clone(remote, "name")` - a clone of it.
* `run_cli("search", "x", cwd=repo, stdin="…", env={…})` - a real process; CompletedProcess with text.
* `om("add", "x", cwd=repo)` - the same with `--json`: the document; `code=` is the exit code that must come.
* `fixed_dates` - git commits made in this test carry one fixed date.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

CHECKOUT = Path(__file__).resolve().parent.parent
IDENTITY = ("Ada Example", "ada@example.org")
FIXED_DATE = "2026-09-26T12:00:00+00:00"

_GIT_CONFIG = f"""\
[user]
\tname = {IDENTITY[0]}
\temail = {IDENTITY[1]}
[init]
\tdefaultBranch = main
[advice]
\tdetachedHead = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""

# A run that finds nothing today must find nothing tomorrow: the default examples are the same each time.
# HYPOTHESIS_PROFILE=deep looks further, with new examples each time (docs/testing.md).
_QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile(
    "ci", max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=_QUIET
)
settings.register_profile(
    "deep", max_examples=3000, deadline=None, print_blob=True, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_PERSONS_OWN = re.compile(
    r"(GIT|OPEN_MEMEX|MY_O_MEMORY|XDG|LC|SSH)_.*"
    r"|.*_(PROJECT_DIR|WORKSPACE_ROOT)"
    r"|HOME|USERPROFILE|(LOCAL)?APPDATA|LANG(UAGE)?|EDITOR|VISUAL|PAGER|EMAIL"
    r"|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|COLUMNS|LINES|TERM|COLORTERM"
    r"|(GH|GITHUB)_TOKEN|PYTHONWARNINGS",
    re.IGNORECASE,
)


def _dropped(name: str) -> bool:
    return _PERSONS_OWN.fullmatch(name) is not None


def _own_environment(home: Path, ceiling: Path) -> dict[str, str]:
    """The variables that a test's processes get instead of the person's own."""
    return {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "APPDATA": str(home / "AppData"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "OPEN_MEMEX_HOME": str(home / "memex-data"),
        "OPEN_MEMEX_CONFIG": str(home / "memex-config" / "config.jsonc"),
        # libgit2 does not read GIT_CONFIG_GLOBAL: the file has the name that it looks for.
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": str(ceiling),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": str(CHECKOUT),
    }


def _apply(environ: Mapping[str, str]) -> None:
    for name in [n for n in os.environ if _dropped(n)]:
        del os.environ[name]
    os.environ.update(environ)


def _point_libgit2_at(home: Path) -> None:
    """Let libgit2 look for system, XDG and global configuration in `home` only."""
    import pygit2
    from pygit2.enums import ConfigLevel

    nowhere = home / "no-such-folder"
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = str(home)
    pygit2.settings.search_path[ConfigLevel.XDG] = str(home / ".config" / "git")
    pygit2.settings.search_path[ConfigLevel.SYSTEM] = str(nowhere)
    pygit2.settings.search_path[ConfigLevel.PROGRAMDATA] = str(nowhere)


_import_home = Path(tempfile.mkdtemp(prefix="memex-import-"))
_apply(_own_environment(_import_home, _import_home.parent))


def pytest_unconfigure() -> None:
    shutil.rmtree(_import_home, ignore_errors=True)


class Home(type(Path())):  # type: ignore[misc]
    """The test's HOME, with the two places that OpenMemex keeps there."""

    @property
    def data(self) -> Path:
        return Path(os.environ["OPEN_MEMEX_HOME"])

    @property
    def config(self) -> Path:
        return Path(os.environ["OPEN_MEMEX_CONFIG"])


@pytest.fixture(autouse=True)
def _hermetic(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("home", numbered=True).resolve()
    (folder / ".gitconfig").write_text(_GIT_CONFIG, encoding="utf-8")
    for name in [n for n in os.environ if _dropped(n)]:
        monkeypatch.delenv(name)
    for name, value in _own_environment(folder, tmp_path_factory.getbasetemp().resolve()).items():
        monkeypatch.setenv(name, value)
    _point_libgit2_at(folder)
    mask = os.umask(0o022)
    try:
        yield Home(folder)
    finally:
        os.umask(mask)


@pytest.fixture
def home(_hermetic: Home) -> Home:
    return _hermetic


class Git:
    """Runs the real git in the test's environment."""

    def run(
        self,
        *args: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *map(os.fspath, args)],
            cwd=cwd,
            input=stdin,
            env={**os.environ, **(env or {})},
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=120,
        )

    def __call__(
        self,
        *args: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
    ) -> str:
        done = self.run(*args, cwd=cwd, stdin=stdin, env=env)
        words = " ".join(map(os.fspath, args))
        assert done.returncode == 0, f"git {words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.removesuffix("\n")


@pytest.fixture
def git() -> Git:
    return Git()


@pytest.fixture
def fixed_dates(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give every commit of this test one date, so that its commit ids can be told beforehand."""
    monkeypatch.setenv("GIT_AUTHOR_DATE", FIXED_DATE)
    monkeypatch.setenv("GIT_COMMITTER_DATE", FIXED_DATE)
    return FIXED_DATE


@pytest.fixture
def make_repo(tmp_path: Path, git: Git) -> Callable[..., Path]:
    def make(name: str = "repo", *, commits: int = 1, origin: str | None = None) -> Path:
        folder = tmp_path.resolve() / name
        folder.mkdir(parents=True)
        git("init", "-q", "-b", "main", cwd=folder)
        for number in range(1, commits + 1):
            (folder / "app.txt").write_text(f"{number}\n", encoding="utf-8")
            git("add", "app.txt", cwd=folder)
            git("commit", "-q", "-m", f"Commit {number}", cwd=folder)
        if origin is not None:
            git("remote", "add", "origin", origin, cwd=folder)
        return folder

    return make


@pytest.fixture
def make_remote(tmp_path: Path, git: Git) -> Callable[..., Path]:
    def make(repo: Path, name: str = "remote.git") -> Path:
        bare = tmp_path.resolve() / name
        git("clone", "-q", "--bare", str(repo), str(bare))
        git("remote", "add", "origin", str(bare), cwd=repo)
        git("fetch", "-q", "origin", cwd=repo)
        branch = git("symbolic-ref", "--short", "HEAD", cwd=repo)
        git("branch", "-q", f"--set-upstream-to=origin/{branch}", cwd=repo)
        return bare

    return make


@pytest.fixture
def clone(tmp_path: Path, git: Git) -> Callable[..., Path]:
    def make(remote: Path | str, name: str = "clone") -> Path:
        folder = tmp_path.resolve() / name
        git("clone", "-q", str(remote), str(folder))
        return folder

    return make


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(
        *args: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "openmemex", *map(os.fspath, args)],
            cwd=cwd or tmp_path,
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=stdin,
            env={**os.environ, **(env or {})},
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout,
        )

    return run


@pytest.fixture
def om(run_cli: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    def run(*args: str, cwd: Path, code: int = 0, **options: Any) -> Any:
        done = run_cli(*args, "--json", cwd=cwd, **options)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout) if done.stdout else None

    return run

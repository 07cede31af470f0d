"""A newer and an older git than the machine's own, for the tests: from Debian's packages, installed nowhere.

    python3 scripts/other_gits.py        prints MEMEX_NEW_GIT=FOLDER and MEMEX_OLD_GIT=FOLDER

Each folder has bin/git and stands alone: git, every library that it needs and the loader that goes with them,
unpacked side by side and pointed at each other. The mirror and its key are the machine's own, read from
/etc/apt; no root is needed, and nothing outside `.venv-gits` in the checkout is written. Deleting that folder
is always safe. A machine that has no such packages is told so on stderr, and its line stays away.

Standard library only.
"""

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv-gits"
# The first suite that has a git in the range is taken.
WANTED = {
    "MEMEX_NEW_GIT": ("new", ("testing", "stable", "devel"), (2, 45), (99, 0)),
    "MEMEX_OLD_GIT": ("old", ("bullseye", "jammy"), (2, 30), (2, 36)),
}
_ELF = b"\x7fELF"


class Failure(Exception):
    """There is no such git here; the text says why."""


def sources(apt: str = "/etc/apt") -> list[tuple[str, str]]:
    """(address, apt's options) of the places that this machine takes its distribution's packages from."""
    found: list[tuple[str, str]] = []
    for file in sorted(glob.glob(f"{apt}/sources.list.d/*.sources")):
        for block in re.split(r"\n\s*\n", Path(file).read_text(encoding="utf-8", errors="replace")):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(\S.*)$", block, re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and "main" in fields.get("Components", "").split():
                key = fields.get("Signed-By", "")
                options = f"[signed-by={key}] " if key.startswith("/") else ""
                found += [(uri, options) for uri in fields.get("URIs", "").split()]
    for file in [f"{apt}/sources.list", *sorted(glob.glob(f"{apt}/sources.list.d/*.list"))]:
        if os.path.exists(file):
            text = Path(file).read_text(encoding="utf-8", errors="replace")
            pattern = r"^deb[ \t]+(\[[^\]]*\][ \t]+)?(\S+)[ \t]+\S+[ \t].*\bmain\b"
            found += [(uri, options) for options, uri in re.findall(pattern, text, re.MULTILINE)]
    own = [pair for pair in dict.fromkeys(found) if re.search(r"/(debian|ubuntu)/?$", pair[0])]
    if not own:
        raise Failure(f"{apt} names no place of Debian's or Ubuntu's packages")
    return own


def version_of(git: Path | str) -> tuple[int, int]:
    """The version of a git program; (0, 0) when it does not start."""
    try:
        said = subprocess.run([str(git), "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    match = re.match(r"git version (\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def ensure(name: str, suites: tuple[str, ...], lowest: tuple[int, int], highest: tuple[int, int]) -> Path:
    """The folder with bin/git in it, made if it is not there. Raises Failure."""
    folder = FOLDER / name
    if lowest <= version_of(folder / "bin" / "git") <= highest:
        return folder
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            raise Failure(f"{program} is not here: only Debian's packages are known to this script")
    reasons = []
    for address, options in sources():
        for suite in suites:
            try:
                _make(folder, f"deb {options}{address} {suite} main\n")
            except Failure as failure:
                reasons.append(f"{suite}: {failure}")
                continue
            version = version_of(folder / "bin" / "git")
            if lowest <= version <= highest:
                return folder
            reasons.append(f"{suite}: its git is {version[0]}.{version[1]}")
    shutil.rmtree(folder, ignore_errors=True)
    raise Failure("; ".join(reasons))


def _make(folder: Path, source: str) -> None:
    """Fetch git with all that it needs, as for an empty machine, and unpack it all into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="memex-apt-") as temporary:
        apt = Path(temporary)
        for part in ("lists/partial", "cache/archives/partial", "nothing"):
            (apt / part).mkdir(parents=True)
        (apt / "sources.list").write_text(source, encoding="utf-8")
        (apt / "status").touch()
        settings = {
            "Dir::Etc::SourceList": apt / "sources.list",
            "Dir::Etc::SourceParts": apt / "nothing",
            "Dir::Etc::PreferencesParts": apt / "nothing",
            "Dir::Etc::Preferences": apt / "none",
            "Dir::State::Lists": apt / "lists",
            "Dir::State::status": apt / "status",
            "Dir::Cache": apt / "cache",
            "Debug::NoLocking": "1",
            "Acquire::Retries": "2",
        }
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            settings["APT::Sandbox::User"] = "root"  # apt's own account can't enter a private folder
        command = ["apt-get", "-qq", *(word for k, v in settings.items() for word in ("-o", f"{k}={v}"))]
        _run([*command, "update"])
        _run([*command, "install", "-y", "--download-only", "--no-install-recommends", "git", "patchelf"])
        packages = sorted((apt / "cache" / "archives").glob("*.deb"))
        if not packages:
            raise Failure("nothing was fetched")
        for package in packages:
            _run(["dpkg", "-x", str(package), str(root)])
    _join(folder, root)


def _join(folder: Path, root: Path) -> None:
    """Point every program of git at the loader and the libraries that came with it."""
    core = root / "usr" / "lib" / "git-core"
    libraries = sorted(
        {
            path.parent
            for base in (root / "lib", root / "usr" / "lib")
            for path in base.glob("*-linux-*/*.so*")
            if path.is_file() or path.is_symlink()
        }
    )
    loaders = [path for folder in libraries for path in folder.glob("ld*.so*") if not path.is_symlink()]
    if not loaders or not core.is_dir():
        raise Failure(f"nothing that starts programs on {platform.machine()} is among the packages")
    path = ":".join(map(str, dict.fromkeys(map(Path.resolve, libraries))))
    loader = str(loaders[0].resolve())
    patch = [loader, "--library-path", path, str(root / "usr" / "bin" / "patchelf")]
    programs = [file for file in [root / "usr/bin/git", *core.iterdir()] if not file.is_symlink()]
    done: set[int] = set()
    for program in programs:
        if not program.is_file() or program.stat().st_ino in done or _begins(program) != _ELF:
            continue
        _run([*patch, "--set-interpreter", loader, "--force-rpath", "--set-rpath", path, str(program)])
        done.add(program.stat().st_ino)
    start = folder / "bin" / "git"
    start.parent.mkdir()
    start.write_text(
        "#!/bin/sh\n"
        f"GIT_EXEC_PATH='{core}' GIT_TEMPLATE_DIR='{root}/usr/share/git-core/templates'\n"
        f"export GIT_EXEC_PATH GIT_TEMPLATE_DIR\nexec '{root}/usr/bin/git' \"$@\"\n",
        encoding="utf-8",
    )
    start.chmod(0o755)


def _begins(program: Path) -> bytes:
    with program.open("rb") as file:
        return file.read(4)


def _run(command: list[str]) -> None:
    environ = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environ)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise Failure(f"{Path(command[0]).name} said: {words[0]}")


def main() -> int:
    """Make what is missing, and print where each is. Returns 0 when both are there, else 1."""
    missing = 0
    for variable, (name, suites, lowest, highest) in WANTED.items():
        try:
            print(f"{variable}={ensure(name, suites, lowest, highest)}", flush=True)
        except Failure as failure:
            missing += 1
            print(f"No git for {variable}: {failure}", file=sys.stderr, flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

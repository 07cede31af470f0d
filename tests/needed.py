"""Programs that some tests need beside Python and git: found, or a reason why the test can't run here.

`.ci/run` installs them all and sets MEMEX_TESTS_STRICT=1: there a missing one fails the test. Anywhere else
the test is skipped, and says what is missing and how to get it. Ask for them in tests and fixtures:

* `needed.program("git-lfs")` - the path of a program on the PATH (or in /usr/sbin).
* `needed.new_git()`, `needed.old_git()` - folders with a `git` in them that goes first on the PATH of a test;
  their versions are `needed.version(folder)`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

_PACKAGES = {
    "git-lfs": "git-lfs",
    "gpg": "gnupg",
    "gpgconf": "gnupg",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ssh-agent": "openssh-client",
    "ssh-add": "openssh-client",
    "sshd": "openssh-server",
}


def program(name: str) -> str:
    """The absolute path of `name`; without it the test is skipped, or fails where everything is promised."""
    path = os.environ.get("PATH", os.defpath)
    found = shutil.which(name, path=f"{path}{os.pathsep}/usr/sbin")
    if found is None:
        _missing(f"{name} is not installed (on Debian: apt-get install {_PACKAGES.get(name, name)})")
    return found


def new_git() -> Path:
    """The folder of a git of 2.45 or newer, which knows reftable and two object formats at once."""
    return _other("MEMEX_NEW_GIT")


def old_git() -> Path:
    """The folder of a git near 2.30, the oldest that OpenMemex works with."""
    return _other("MEMEX_OLD_GIT")


def version(folder: Path) -> tuple[int, int]:
    """The version of the git in `folder`."""
    said = subprocess.run([folder / "git", "--version"], capture_output=True, text=True, check=True).stdout
    match = re.match(r"git version (\d+)\.(\d+)", said)
    assert match is not None, said
    return int(match[1]), int(match[2])


def _other(variable: str) -> Path:
    folder = Path(os.environ.get(variable, "/nowhere"), "bin")
    if not (folder / "git").exists():
        _missing(f"{variable} names no folder with bin/git; scripts/other_gits.py makes one on Debian")
    return folder


def _missing(text: str) -> None:
    if os.environ.get("MEMEX_TESTS_STRICT") == "1":
        pytest.fail(f"{text}, and MEMEX_TESTS_STRICT says that everything is here", pytrace=False)
    pytest.skip(text)

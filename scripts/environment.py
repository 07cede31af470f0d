"""The environment that the two README commands run in: made once, kept while nothing changed.

Standard library only, and nothing that Python 3.6 can't parse (so: no postponed annotations, and a check
before the first modern one): an old Python must get as far as saying what it lacks. The folder is
`.venv-memex` in the checkout; deleting it is always safe.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDER = CHECKOUT / ".venv-memex"
_STAMP = FOLDER / "made-for.json"
_OLDEST = (3, 11)
_PACKAGES = ("openmemex", "hooks")


class Failure(Exception):
    """The environment can't be made; the text says why and what to do."""


def check_python() -> None:
    """Raise Failure when this Python is too old, naming newer ones that are installed."""
    if sys.version_info >= _OLDEST:
        return
    newer = [name for name in ("python3.14", "python3.13", "python3.12", "python3.11") if _runs(name)]
    found = f"Run this with {newer[0]}, which is installed." if newer else "Install Python 3.11 or newer."
    raise Failure(
        f"OpenMemex needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}.\n{found}"
    )


def _runs(name: str) -> bool:
    # Version managers put names on the PATH that start nothing.
    if shutil.which(name) is None:
        return False
    done = subprocess.run([name, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


try:
    check_python()
except Failure as failure:
    sys.exit(str(failure))


class Environment:
    """A ready environment: `python` and the folder of its commands."""

    def __init__(self, folder: Path) -> None:
        windows = os.name == "nt"
        self.commands = folder / ("Scripts" if windows else "bin")
        self.python = self.commands / ("python.exe" if windows else "python")

    def command(self, name: str) -> Path:
        """The path of an installed command; raises Failure when it is missing."""
        path = self.commands / (name + ".exe" if os.name == "nt" else name)
        if not path.exists():
            raise Failure(f"{path} is missing.\nDelete {FOLDER} and run this again.")
        return path


def ensure(extra: str = "") -> Environment:
    """Make, mend or reuse the environment, with OpenMemex as it stands in the checkout installed in it.

    `extra` names an optional group of pyproject.toml ("test"). What is installed follows three things: this
    Python, pyproject.toml, and the package's own files; when only the last changed, only the package is
    installed anew. Raises Failure.
    """
    if shutil.which("git") is None:
        raise Failure("git is not installed, or not on the PATH.\nInstall git and run this again.")
    wanted = {
        "python": f"{sys.version} {sys.executable}",
        "place": str(CHECKOUT),
        "dependencies": _digest([CHECKOUT / "pyproject.toml"]),
        "package": _digest([file for name in _PACKAGES for file in sorted((CHECKOUT / name).rglob("*.py"))]),
    }
    had = _read_stamp()
    environment = Environment(FOLDER)
    same_base = all(had.get(key) == wanted[key] for key in ("python", "place", "dependencies"))
    had_extras = had.get("extras")
    extras = set(map(str, had_extras)) if same_base and isinstance(had_extras, list) else set()
    if same_base and had.get("package") == wanted["package"] and (not extra or extra in extras):
        return environment
    if not same_base or not environment.python.exists():
        _say(f"Making an environment in {FOLDER.name} (once, about a minute) ...")
        _make(environment)
        extras = set()
    if extra:
        extras.add(extra)
    _say("Installing OpenMemex" + (f" with what its {extra}s need" if extra else "") + " ...")
    _STAMP.unlink(missing_ok=True)
    _install(environment, sorted(extras))
    _STAMP.write_text(json.dumps({**wanted, "extras": sorted(extras)}), encoding="utf-8")
    return environment


def clean_environ() -> dict[str, str]:
    """This process's variables without those that would lead another Python astray.

    Modules are compiled once, and beside the environment: thousands of short processes follow.
    """
    dropped = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPYCACHEPREFIX": str(FOLDER / "compiled")}


def _say(text: str) -> None:
    print(text, flush=True)


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _read_stamp() -> dict[str, object]:
    try:
        stamp = json.loads(_STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _make(environment: Environment) -> None:
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        maker = [sys.executable, "-m", "venv", "--clear", str(FOLDER)]
    elif importlib.util.find_spec("virtualenv"):
        maker = [sys.executable, "-m", "virtualenv", "--clear", "--quiet", str(FOLDER)]
    else:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Failure(
            f"{sys.executable} can't make environments: its modules venv and ensurepip are not both there.\n"
            f"On Debian or Ubuntu: apt-get install python{version}-venv (or python3-venv).\n"
            "Elsewhere: install a whole Python, from python.org or your package manager. Then run this again."
        )
    _run(maker, "making the environment failed")
    # setuptools is installed here, so that later changes of the code build without a download.
    _run(_pip(environment, "install", "--upgrade", "pip", "setuptools>=77"), "installing pip failed")


def _install(environment: Environment, extras: list[str]) -> None:
    # Built from a copy: a build in place would leave folders in the checkout, and take old files along.
    with tempfile.TemporaryDirectory(prefix="memex-build-") as folder:
        source = Path(folder) / "open-memex"
        source.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            if (CHECKOUT / name).exists():
                shutil.copy2(CHECKOUT / name, source / name)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in _PACKAGES:
            shutil.copytree(CHECKOUT / name, source / name, ignore=ignored)
        what = f"{source}[{','.join(extras)}]" if extras else str(source)
        build = ["install", "--no-build-isolation"]
        _run(_pip(environment, *build, what), "installing OpenMemex failed")
        # An unchanged version number would keep the old code.
        _run(_pip(environment, *build, "--no-deps", "--force-reinstall", str(source)), "installing failed")


def _pip(environment: Environment, *args: str) -> list[str]:
    return [str(environment.python), "-m", "pip", "--disable-pip-version-check", "--quiet", *args]


def _run(command: list[str], failed: str) -> None:
    done = subprocess.run(
        command,
        env=clean_environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise Failure(
            f"{done.stdout.strip()}\n\n{failed} (exit {done.returncode}): {' '.join(command)}\n"
            "Is the package index reachable from here (proxy, PIP_INDEX_URL)? Running this again is safe."
        )

"""Make an environment and run every check of this project: ruff, mypy, then all tests.

    python3 scripts/test.py              everything
    python3 scripts/test.py -k store     words after the name go to pytest

Ends with pytest's own closing line; exit code 0 only when all three are content.
"""

import os
import re
import subprocess
import sys

import environment
import other_gits


def main(arguments: list[str]) -> int:
    """Run the checks; `arguments` go to pytest. Returns the exit code."""
    try:
        ready = environment.ensure("test")
    except environment.Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    python = str(ready.python)
    results = {
        name: _run([python, "-m", *words])[0]
        for name, words in (
            ("ruff check", ["ruff", "check", "."]),
            ("ruff format", ["ruff", "format", "--check", "."]),
            ("mypy --strict", ["mypy"]),
        )
    }
    workers = [] if any(word.startswith("-n") for word in arguments) else ["-n", _workers()]
    code, lines = _run([python, "-m", "pytest", *workers, *arguments])
    results["pytest"] = code
    closing = [
        line for line in lines if re.search(r"\b\d+ (passed|failed|errors?|skipped)\b|no tests ran", line)
    ]
    print()
    for name, exit_code in results.items():
        print(f"{name}: {'ok' if exit_code == 0 else f'FAILED (exit {exit_code})'}")
    print(closing[-1] if closing else f"pytest ended without a closing line (exit {code})", flush=True)
    return 0 if not any(results.values()) else 1


def _workers() -> str:
    return str(min(4, os.cpu_count() or 1))


def _other_gits() -> dict[str, str]:
    """Where the other versions of git are, if they were fetched before (scripts/other_gits.py)."""
    folders = {name: other_gits.FOLDER / words[0] for name, words in other_gits.WANTED.items()}
    return {name: str(folder) for name, folder in folders.items() if (folder / "bin" / "git").exists()}


def _run(command: list[str]) -> tuple[int, list[str]]:
    """Run in the checkout, pass its output on as it comes; returns exit code and the lines."""
    print(f"\n$ python {' '.join(command[1:])}", flush=True)
    process = subprocess.Popen(
        command,
        cwd=environment.CHECKOUT,
        env={**_other_gits(), **environment.clean_environ(), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    return process.wait(), lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

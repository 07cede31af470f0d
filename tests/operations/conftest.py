"""Shortcuts for tests that drive the operations through the real command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def om(run_cli) -> Callable[..., Any]:
    """`om("add", "text", cwd=repo)` → the JSON document; `code=` is the exit code that is expected."""

    def run(*args: str, cwd: Path, code: int = 0, **options: Any) -> Any:
        done = run_cli(*args, "--json", cwd=cwd, **options)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout) if done.stdout else None

    return run

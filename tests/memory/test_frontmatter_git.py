"""What git says of a changed memory: the lines of its fields, whatever the line ends of the checkout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openmemex.memory.frontmatter import parse, rewrite
from tests.memory.test_frontmatter import RICH, TEMPLATE, A

FOLDER = ".ai/open-memex"


@pytest.mark.parametrize("autocrlf", ["false", "true"])
@pytest.mark.parametrize("content", [TEMPLATE, RICH])
def test_a_status_change_is_a_diff_of_two_lines(
    autocrlf: str, content: str, make_repo: Callable[..., Path], git: Any
) -> None:
    repo = make_repo("team")
    git("config", "core.autocrlf", autocrlf, cwd=repo)
    path = repo / FOLDER / f"{A}.md"
    path.parent.mkdir(parents=True)
    eol = "\r\n" if autocrlf == "true" else "\n"
    path.write_bytes(content.replace("\n", eol).encode())
    git("add", FOLDER, cwd=repo)
    git("commit", "-qm", "memory", cwd=repo)
    assert b"\r" not in git("cat-file", "blob", f"HEAD:{FOLDER}/{A}.md", cwd=repo).encode()

    document = parse(path.read_bytes(), stem=A)
    path.write_bytes(rewrite(document, {}))
    assert git("status", "--porcelain", cwd=repo) == ""

    path.write_bytes(rewrite(document, {"importance": "high", "updated_at": "2026-09-27T08:00:00Z"}))
    assert git("diff", "--numstat", cwd=repo) == f"2\t2\t{FOLDER}/{A}.md"
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(eol.encode())

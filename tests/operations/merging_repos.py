"""Repositories in which memories are in conflict, made by real git."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = ".ai/open-memex"


def memory_id(number: int) -> str:
    """The id of the memory `number`: an old stamp and the number in decimal, which is valid base 32."""
    return f"01J8ZQ4N{number:018d}"


def text_of(
    number: int, body: str = "Deploys need the VPN.\n", *, lines: tuple[str, ...] = (), **fields: Any
) -> str:
    """A memory file as this project writes it; `lines` are added to the front matter."""
    values: dict[str, Any] = {
        "id": memory_id(number),
        "schema_version": 2,
        "scope": "project",
        "scope_key": "project__repo__0123456789ab",
        "visibility": "internal",
        "project_name": "repo",
        "type": "fact",
        "role": "knowledge",
        "importance": "normal",
        "status": "active",
        "tags": "[]",
        "aliases": "[]",
        "source": "user",
        "created_at": '"2026-09-26T12:00:00Z"',
        "updated_at": '"2026-09-26T12:00:00Z"',
        "supersedes": "null",
        "superseded_by": "null",
        "review_state": "proposed",
        "proposed_by": "ada",
        "approved_by": "null",
        "derived_from": "null",
        "review_note": "null",
        "review_history": "[]",
        **fields,
    }
    front = "".join(f"{name}: {value}\n" for name, value in values.items() if value is not None)
    return "---\n" + front + "".join(f"{line}\n" for line in lines) + "---\n" + body


class Conflicts:
    """A repository with a base commit, and ways to let two branches go apart from it."""

    def __init__(self, repo: Path, git: Any, folder: str = FOLDER) -> None:
        self.repo = repo
        self.git = git
        self.folder = folder

    def path(self, number: int, folder: str | None = None) -> str:
        return f"{folder or self.folder}/{memory_id(number)}.md"

    def file(self, number: int, folder: str | None = None) -> Path:
        return self.repo / self.path(number, folder)

    def write(self, texts: dict[int, str | None]) -> None:
        for number, text in texts.items():
            file = self.file(number)
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode("utf-8"))

    def commit(self, texts: dict[int, str | None], message: str = "change") -> str:
        self.write(texts)
        self.git("add", "-A", cwd=self.repo)
        self.git("commit", "-q", "-m", message, cwd=self.repo)
        return self.git("rev-parse", "HEAD", cwd=self.repo)

    def apart(
        self, base: dict[int, str | None], ours: dict[int, str | None], theirs: dict[int, str | None]
    ) -> None:
        """`base` on main, `theirs` on the branch topic, `ours` on main, which is checked out."""
        self.commit(base, "base")
        self.git("switch", "-q", "-c", "topic", cwd=self.repo)
        self.commit(theirs, "theirs")
        self.git("switch", "-q", "main", cwd=self.repo)
        self.commit(ours, "ours")

    def stages(self) -> str:
        return self.git("ls-files", "-u", cwd=self.repo)

    def status(self) -> str:
        return self.git("status", "--porcelain", cwd=self.repo)

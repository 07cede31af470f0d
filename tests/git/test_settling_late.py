"""An editor that saves at the worst moment of a resolve: what it saved stays, and so does the conflict."""

from __future__ import annotations

import pytest

from openmemex import faults
from openmemex.git.conflicts import Settlement
from tests.git.commits import provider

FILES = ("notes/a.md", "notes/b.md")


@pytest.mark.parametrize("moment", ["resolve.blobs-written", "resolve.files-prepared"])
@pytest.mark.parametrize("what", ["saved", "removed", "a link"])
def test_a_file_that_changes_before_it_is_replaced_is_left_alone(git, make_repo, monkeypatch, moment, what):
    repo = make_repo()
    (repo / "notes").mkdir()
    for branch in ("main", "topic", "main"):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=repo)
        for path in FILES:
            (repo / path).write_text(f"{branch} {git('rev-list', '--count', 'HEAD', cwd=repo)}\n")
        git("add", ".", cwd=repo)
        git("commit", "-qm", branch, cwd=repo)
    assert git.run("merge", "topic", cwd=repo).returncode == 1
    here = provider(repo)
    before = {one.path: one for one in here.unmerged()}
    assert set(before) == set(FILES)
    steps = [Settlement(path, b"both\n", (repo / path).read_bytes()) for path in FILES]
    late = repo / FILES[1]

    def reached(name: str) -> None:
        if name == moment:
            late.unlink()
            if what == "saved":
                late.write_text("an editor saved this\n")
            elif what == "a link":
                late.symlink_to("../app.txt")

    monkeypatch.setattr(faults, "reached", reached)
    settled = here.settle(steps, before)
    assert settled.paths == (FILES[0],) and set(settled.left) == {FILES[1]}
    assert (repo / FILES[0]).read_text() == "both\n"
    assert here.unmerged() == [before[FILES[1]]]
    if what == "saved":
        assert late.read_text() == "an editor saved this\n"
    elif what == "a link":
        assert late.is_symlink() and (repo / "app.txt").read_text() == "1\n"
    else:
        assert not late.exists()
    assert {path.name for path in (repo / "notes").iterdir()} <= {"a.md", "b.md"}

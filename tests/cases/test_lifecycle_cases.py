"""Chains of memories that people or a merge left in a knot: nothing hangs, hides, or is tied any further."""

from __future__ import annotations

from pathlib import Path

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(number: int) -> str:
    digits = _LETTERS[number // 1024] + _LETTERS[number // 32 % 32] + _LETTERS[number % 32]
    return "01K6AB3XZQ7WVD9J1M2N4P5" + digits


def write(repo: Path, number: int, text: str, **fields: int | str) -> Path:
    """A hand-written memory; a number among the fields stands for that memory's id."""
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(
        f"{name}: {ulid(value) if isinstance(value, int) else value}\n" for name, value in fields.items()
    )
    path = folder / f"{ulid(number)}.md"
    path.write_text(f"---\nid: {ulid(number)}\nscope: project\n{lines}---\n{text}\n", encoding="utf-8")
    return path


def committed(repo: Path, git) -> None:
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "memories", cwd=repo)


def summaries(answer: dict, key: str) -> list[str]:
    return sorted(row["summary"] for row in answer[key])


def test_knots_of_every_kind_stay_visible_in_list_and_search(om, run_cli, make_repo) -> None:
    repo = make_repo()
    write(repo, 0, "knot: two that name each other, one", superseded_by=1)
    write(repo, 1, "knot: two that name each other, two", superseded_by=0)
    write(repo, 2, "knot: replaces itself", supersedes=2)
    write(repo, 3, "knot: replaced by itself", superseded_by=3, status="superseded")
    write(repo, 4, "knot: root of a fork")
    write(repo, 5, "knot: fork, left", supersedes=4)
    write(repo, 6, "knot: fork, right", supersedes=4)
    write(repo, 7, "knot: points at nothing", superseded_by=900, status="superseded")
    write(repo, 8, "knot: replaces nothing", supersedes=901)
    for number in (10, 11, 12):
        write(repo, number, f"knot: one of three in a ring, {number}", supersedes=10 + (number - 9) % 3)
    write(repo, 20, "knot: leads into a loop", superseded_by=21, status="superseded")
    write(repo, 21, "knot: looping one", superseded_by=22, status="superseded")
    write(repo, 22, "knot: looping two", superseded_by=21, status="superseded")
    listed = om("list", "--limit", "50", cwd=repo)
    assert listed["total"] == 15
    found = om("search", "knot", "--limit", "50", cwd=repo)
    assert found["total"] == 15
    assert summaries(found, "hits") == summaries(listed, "items")
    assert run_cli("reindex", cwd=repo).returncode == 0
    for number in (0, 2, 3, 7, 10, 20):
        assert om("show", ulid(number), cwd=repo)["status"] == "active"


def test_a_chain_of_five_thousand_shows_its_newest_and_as_a_ring_hides_nothing(om, make_repo) -> None:
    repo = make_repo()
    last = 4999
    for number in range(last + 1):
        fields: dict[str, int | str] = {} if number == 0 else {"supersedes": number - 1}
        if number < last and number % 2:
            fields |= {"superseded_by": number + 1, "status": "superseded"}
        write(repo, number, f"link {number} of the long chain", **fields)
    found = om("search", "long chain", cwd=repo)
    assert (found["total"], [hit["id"] for hit in found["hits"]]) == (1, [ulid(last)])
    assert [row["id"] for row in om("list", cwd=repo)["items"]] == [ulid(last)]
    assert om("show", ulid(0), cwd=repo)["status"] == "superseded"
    write(repo, 0, "link 0 of the long chain", supersedes=last)
    assert om("list", "--limit", "1", cwd=repo)["total"] == last + 1


def test_replacing_in_a_loop_says_which_file_to_mend(om, run_cli, make_repo) -> None:
    repo = make_repo()
    first = write(repo, 0, "red kettle", superseded_by=1)
    write(repo, 1, "blue kettle", superseded_by=0)
    done = run_cli("supersede", ulid(0), "green kettle", cwd=repo)
    assert done.returncode == 1
    assert ulid(1) in done.stderr
    assert f".ai/open-memex/{ulid(0)}.md" in done.stderr
    first.write_text(first.read_text().replace(f"superseded_by: {ulid(1)}\n", ""))
    assert run_cli("supersede", ulid(0), "green kettle", cwd=repo).returncode == 0
    assert summaries(om("search", "kettle", cwd=repo), "hits") == ["green kettle"]


def test_replacing_the_root_of_a_fork_asks_which_branch_of_it_is_meant(run_cli, om, make_repo) -> None:
    repo = make_repo()
    write(repo, 0, "red kettle")
    write(repo, 1, "blue kettle", supersedes=0)
    write(repo, 2, "black kettle", supersedes=0)
    done = run_cli("supersede", ulid(0), "green kettle", cwd=repo)
    assert done.returncode == 3
    assert ulid(1) in done.stderr
    assert ulid(2) in done.stderr
    assert om("list", cwd=repo)["total"] == 3


def test_replacing_what_points_at_nothing_says_which_field_to_take_out(run_cli, om, make_repo) -> None:
    repo = make_repo()
    write(repo, 0, "red kettle", superseded_by=900, status="superseded")
    done = run_cli("supersede", ulid(0), "green kettle", cwd=repo)
    assert done.returncode == 1
    assert "superseded_by" in done.stderr
    assert f"{ulid(0)}.md" in done.stderr
    assert om("list", cwd=repo)["total"] == 1


def test_replacing_an_old_link_of_a_chain_names_the_newest(run_cli, make_repo) -> None:
    repo = make_repo()
    write(repo, 0, "red kettle")
    write(repo, 1, "blue kettle", supersedes=0)
    write(repo, 2, "black kettle", supersedes=1)
    done = run_cli("supersede", ulid(0), "green kettle", cwd=repo)
    assert done.returncode == 1
    assert f"open-memex supersede {ulid(2)} TEXT" in done.stderr


def test_sharing_an_edit_ties_no_half_pair_fork_or_loop(om, make_repo, git) -> None:
    repo = make_repo()
    write(repo, 0, "fork root")
    write(repo, 1, "fork left", supersedes=0)
    write(repo, 2, "fork right", supersedes=0)
    write(repo, 3, "half a loop", supersedes=4)
    write(repo, 4, "the other half", supersedes=3)
    write(repo, 5, "old half of a pair")
    write(repo, 6, "new half of a pair", supersedes=5)
    committed(repo, git)
    for number in (1, 3, 6):
        om("edit", ulid(number), "--tag", "checked", cwd=repo)
        done = om("submit", ulid(number), cwd=repo)
        assert done["files"] == [f".ai/open-memex/{ulid(number)}.md"]
        assert git("status", "--porcelain", cwd=repo) == ""
    for number in (0, 4, 5):
        assert "superseded_by" not in (repo / ".ai" / "open-memex" / f"{ulid(number)}.md").read_text()


def test_a_replacement_that_would_make_a_fork_or_a_loop_is_not_shared(om, run_cli, make_repo, git) -> None:
    repo = make_repo()
    for number, text in ((0, "red kettle"), (1, "red teapot"), (2, "red spoon")):
        write(repo, number, text)
    committed(repo, git)
    drafts = [
        om("supersede", ulid(n), text, cwd=repo)["id"] for n, text in ((0, "blue kettle"), (1, "blue pot"))
    ]
    # Meanwhile a teammate's commit replaced one, and made the other replace the draft.
    write(repo, 5, "green kettle", supersedes=0)
    write(repo, 1, "red teapot", supersedes=drafts[1])
    committed(repo, git)
    head = git("rev-parse", "HEAD", cwd=repo)
    for draft in drafts:
        for words in (["submit", draft], ["submit", draft, "--branch", "topic"]):
            done = run_cli(*words, cwd=repo)
            assert done.returncode == 3, done.stdout + done.stderr
            assert len(done.stderr.strip().splitlines()) == 2
    assert git("rev-parse", "HEAD", cwd=repo) == head
    assert git("status", "--porcelain", cwd=repo) == ""
    assert git("branch", "--list", "topic", cwd=repo) == ""
    assert len(om("sync-status", cwd=repo)["outbox"]) == 2


def test_a_memory_that_names_itself_is_mended_by_its_replacement(om, make_repo, git) -> None:
    repo = make_repo()
    write(repo, 0, "red kettle", superseded_by=0, status="superseded")
    write(repo, 1, "red teapot", supersedes=1)
    committed(repo, git)
    for number in (0, 1):
        new = om("supersede", ulid(number), f"blue one {number}", cwd=repo)["id"]
        om("submit", new, cwd=repo)
        assert f"superseded_by: {new}" in (repo / ".ai" / "open-memex" / f"{ulid(number)}.md").read_text()
    assert summaries(om("list", cwd=repo), "items") == ["blue one 0", "blue one 1"]

"""The index follows the files: whatever happens to a folder, the next look knows it, and reads no more."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openmemex.errors import NotFound, OpenMemexError
from openmemex.index import ingest, schema, sync
from openmemex.memory.ids import new_id

from .conftest import Folder, Reader, some_ids

AS_NOBODY = 65534


def contents(reader: Reader) -> int:
    """The highest row of any text ever parsed: it grows whenever one is."""
    with sqlite3.connect(reader.path) as connection:
        return connection.execute("select coalesce(max(id), 0) from content").fetchone()[0]


def test_files_are_read_once_and_again_only_when_they_change(personal: Folder, reader: Reader) -> None:
    first, second = personal.write("zarf brackets"), personal.write("other words")
    freshness = reader.look(personal)
    assert (freshness.fresh, freshness.read, freshness.added) == (True, 2, 2)
    assert reader.settled(personal).fresh
    assert reader.look(personal).read == 0

    personal.write("plain brackets", id=first)
    freshness = reader.look(personal)
    assert (freshness.read, freshness.added, freshness.changed) == (1, 0, 1)
    assert reader.found("zarf", personal) == []
    assert reader.found("brackets", personal) == [first]

    personal.remove(second)
    assert reader.look(personal).removed == 1
    assert reader.ids(personal) == [first]


def test_a_second_process_reads_nothing_that_the_first_has_read(personal: Folder, reader: Reader) -> None:
    personal.write("kept between processes")
    reader.settled(personal)
    script = (
        "import sys; from openmemex.index.memory_index import MemoryIndex as M;"
        "from openmemex.store.homes import personal_home as p;"
        "print(M.open(sys.argv[1]).reconcile([p(sys.argv[2])]))"
    )
    root = str(reader.path.parent)
    done = subprocess.run(
        [sys.executable, "-c", script, str(reader.path), root], capture_output=True, text=True, check=True
    )
    assert "read=0" in done.stdout


def test_an_edit_in_place_of_the_same_size_and_time_is_seen(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("colour amber here")
    path = personal.file(memory_id)
    reader.look(personal)
    for word in ("olive", "ivory", "amber", "olive"):
        before = path.stat()
        raw = path.read_bytes()
        for old in (b"amber", b"olive", b"ivory"):
            raw = raw.replace(old, word.encode())
        with path.open("r+b") as handle:
            handle.write(raw)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        assert path.stat().st_mtime_ns == before.st_mtime_ns
        assert reader.found(word, personal) == [memory_id]


def test_a_touched_file_is_the_same_memory(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("same words")
    reader.settled(personal)
    rows = contents(reader)
    os.utime(personal.file(memory_id))
    freshness = reader.look(personal)
    assert (freshness.read, freshness.added, freshness.changed) == (1, 0, 0)
    assert contents(reader) == rows


def test_a_file_from_the_future_is_read_once(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("tomorrow")
    os.utime(personal.file(memory_id), (4e9, 4e9))
    assert reader.settled(personal).read == 0
    assert reader.ids(personal) == [memory_id]


def test_a_folder_that_is_not_there_is_empty_and_comes_back_without_being_parsed(
    repository: Folder, reader: Reader
) -> None:
    ids = {repository.write(f"words {number}") for number in range(5)}
    assert set(reader.ids(repository)) == ids
    rows = contents(reader)
    elsewhere = repository.path.with_name("elsewhere")
    repository.path.rename(elsewhere)
    assert reader.look(repository).removed == 5
    assert reader.ids(repository) == []
    assert reader.found("words", repository) == []
    elsewhere.rename(repository.path)
    assert set(reader.ids(repository)) == ids
    assert contents(reader) == rows


def test_what_leaves_a_private_folder_leaves_the_index(
    personal: Folder, outbox: Folder, reader: Reader
) -> None:
    word = "quokka" + "zebra"
    gone = [personal.write(f"{word} one"), outbox.write(f"{word} two")]
    reader.look(personal, outbox)
    for folder, memory_id in zip((personal, outbox), gone, strict=True):
        folder.remove(memory_id)
    reader.look(personal, outbox)
    with sqlite3.connect(reader.path) as connection:
        for table in ("content", "stream", "orphan", "place", "twin"):
            assert connection.execute(f"select count(*) from {table}").fetchone() == (0,)
        assert connection.execute("select rows, length from total").fetchone() == (0, 0)
        assert connection.execute("select count(*) from vocabulary where doc > 0").fetchone() == (0,)


def test_nothing_of_a_forgotten_memory_stays_in_the_file(personal: Folder, reader: Reader) -> None:
    for number in range(30):
        personal.write(f"kept words {number}")
    word = "quokka" + "zebra"
    gone = personal.write(f"{word} and more", tags=(f"tag{word}",))
    reader.look(personal)
    assert reader.found(word, personal) == [gone]
    personal.remove(gone)
    reader.look(personal)
    reader.index.scrub()
    for path in reader.path.parent.glob("index.db*"):
        raw = path.read_bytes()
        assert gone.encode() not in raw
        assert b"quokkaz" not in raw
        assert b"kept words" in raw or not path.name.endswith(".db")
    assert len(reader.ids(personal)) == 30


def test_only_plain_files_with_an_id_for_a_name_are_memories(
    personal: Folder, tmp_path: Path, reader: Reader
) -> None:
    good = personal.write("a memory")
    link, folder, pipe, large = some_ids(4)
    outside = tmp_path / "outside.md"
    outside.write_bytes(personal.file(good).read_bytes().replace(good.encode(), link.encode()))
    personal.file(link).symlink_to(outside)
    personal.file(folder).mkdir()
    os.mkfifo(personal.file(pipe))
    personal.write_raw(large, b"x" * (1 << 20) + b"y")
    (personal.path / "README.md").write_text("no memory")
    (personal.path / f"{good.lower()}.md").write_bytes(personal.file(good).read_bytes())
    (personal.path / "two\nlines.md").write_text("---\ntitle: no memory either\n---\n")
    (personal.path / f".{good}.md").write_bytes(personal.file(good).read_bytes())
    (personal.path / f"{good}.md.bak").write_text("nor this")

    assert reader.ids(personal) == [good]
    unread = {Path(one.path).stem: one.reason for one in reader.index.quarantined([personal.home])}
    assert unread == {
        link: "a symbolic link, which is not followed",
        folder: "a folder, not a file",
        pipe: "no regular file",
        large: "over the limit of 1 MiB (1048577 bytes)",
        good.lower(): "the file's name is no memory id in upper case followed by .md",
    }
    assert reader.settled(personal).quarantined == 5


def test_a_file_that_cannot_be_read_stops_nothing_and_is_named_with_its_line(
    personal: Folder, reader: Reader
) -> None:
    good, bad = some_ids(2)
    personal.write("good words", id=good)
    text = f"---\nid: {bad}\nreview_note: see C: drive: later\n---\nbad words\n"
    personal.write_raw(bad, text.encode())
    freshness = reader.look(personal)
    assert freshness.quarantined == 1
    assert reader.ids(personal) == [good]
    (unread,) = reader.index.quarantined([personal.home])
    assert unread.path == f"memories/personal/{bad}.md"
    assert unread.line == 3
    assert unread.reason
    assert personal.file(bad).read_bytes() == text.encode()

    personal.write("mended words", id=bad)
    assert reader.look(personal).quarantined == 0
    assert reader.found("mended", personal) == [bad]


def test_a_memory_under_another_name_than_its_id_is_quarantined(personal: Folder, reader: Reader) -> None:
    one, other = some_ids(2)
    personal.write("the real one", id=one)
    personal.write_raw(other, personal.file(one).read_bytes())
    assert reader.ids(personal) == [one]
    (unread,) = reader.index.quarantined([personal.home])
    assert unread.path.endswith(f"{other}.md")
    assert unread.reason


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process of another user")
def test_a_file_without_permission_is_quarantined_and_read_when_it_may_be(
    personal: Folder, reader: Reader, tmp_path: Path
) -> None:
    good, secret = personal.write("open words"), personal.write("closed words")
    personal.file(secret).chmod(0)
    index = tmp_path / "own" / "index.db"
    if os.geteuid() == 0:
        index.parent.mkdir()
        os.chown(index.parent, AS_NOBODY, AS_NOBODY)
        for folder in (*personal.path.parents, personal.path):
            if folder.stat().st_uid == 0 and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o055)
        personal.file(good).chmod(0o644)
    script = (
        "import os, sys\n"
        "from openmemex.index.memory_index import MemoryIndex\n"
        "from openmemex.memory import frontmatter\n"
        "from openmemex.trust import admission\n"
        "from openmemex.index import ingest\n"
        "from openmemex.store.homes import personal_home\n"
        f"os.geteuid() or os.setuid({AS_NOBODY})\n"
        "index, home = MemoryIndex.open(sys.argv[1]), [personal_home(sys.argv[2])]\n"
        "freshness = index.reconcile(home)\n"
        "print(freshness.quarantined, [row.id for row in index.list(home).rows])\n"
        "print([u.reason for u in index.quarantined(home)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(index), str(reader.path.parent)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"1 ['{good}']\n[\"can't be opened: Permission denied\"]\n"
    personal.file(secret).chmod(0o600)
    assert set(reader.ids(personal)) == {good, secret}


def test_a_file_that_vanishes_or_changes_between_look_and_read_is_no_error(
    personal: Folder, reader: Reader
) -> None:
    gone, changed = personal.write("gone words"), personal.write("old words")
    reader.look()
    connection = sqlite3.connect(reader.path, isolation_level=None)
    look = sync.look(connection, [personal.home], None)
    personal.remove(gone)
    personal.write("new words", id=changed)
    outcome = ingest.ingest(
        connection, look.stale, None, rules=schema.current_rules("bigram"), full_text=True
    )
    assert (outcome.added, outcome.removed) == (1, 0)
    assert reader.found("new", personal) == [changed]
    assert reader.ids(personal) == [changed]
    connection.close()


def test_two_that_saw_the_same_change_take_it_in_once(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("first words")
    reader.look(personal)
    personal.write("second words", id=memory_id)
    added = personal.write("third words")
    connection = sqlite3.connect(reader.path, isolation_level=None)
    late = sync.look(connection, [personal.home], None)
    reader.look(personal)
    outcome = ingest.ingest(
        connection, late.stale, None, rules=schema.current_rules("bigram"), full_text=True
    )
    assert (outcome.added, outcome.changed) == (0, 0)
    assert set(reader.found("words", personal)) == {memory_id, added}
    assert connection.execute("select count(*) from content").fetchone() == (2,)
    connection.close()


def test_one_that_is_late_does_not_bring_back_what_another_removed(personal: Folder, reader: Reader) -> None:
    kept, gone = personal.write("kept words"), personal.write("gone words")
    reader.look(personal)
    connection = sqlite3.connect(reader.path, isolation_level=None)
    personal.write("changed words", id=gone)
    late = sync.look(connection, [personal.home], None)
    read = ingest.read_file(str(personal.file(gone)), 0)
    assert read[0] is not None
    personal.remove(gone)
    reader.look(personal)
    ingest.ingest(connection, late.stale, None, rules=schema.current_rules("bigram"), full_text=True)
    assert reader.ids(personal) == [kept]
    connection.close()


def test_progress_reaches_its_end(personal: Folder, reader: Reader) -> None:
    count = ingest.BATCH * 2 + 3
    for _ in range(count):
        personal.write("words")
    steps: list[tuple[int, int]] = []
    reader.index.reconcile([personal.home], progress=lambda done, total: steps.append((done, total)))
    assert steps == [(ingest.BATCH, count), (2 * ingest.BATCH, count), (count, count)]


@pytest.mark.parametrize(
    ("fault", "kept"),
    [("index.batch-written", 0), ("index.batch-committed", 1), ("index.batch-written:2", 1)],
)
def test_a_first_index_that_is_killed_goes_on_where_it_stopped(
    personal: Folder, reader: Reader, fault: str, kept: int
) -> None:
    count = ingest.BATCH * 2 + 50
    ids = {personal.write("words") for _ in range(count)}
    script = (
        "import sys; from openmemex.index.memory_index import MemoryIndex as M;"
        "from openmemex.store.homes import personal_home as p;"
        "M.open(sys.argv[1]).reconcile([p(sys.argv[2])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(reader.path), str(reader.path.parent)],
        env={**os.environ, "OPEN_MEMEX_FAULT": fault},
    )
    assert done.returncode < 0
    freshness = reader.look(personal)
    assert freshness.added == count - kept * ingest.BATCH
    assert freshness.rebuilt == ""
    assert set(reader.ids(personal)) == ids
    with sqlite3.connect(reader.path) as connection:
        assert connection.execute("select count(*) from content").fetchone() == (count,)
        assert connection.execute("select rows from total").fetchone() == (count,)
    assert len(reader.index.search("words", [personal.home]).hits) == 10


def test_old_contents_go_after_a_while(
    repository: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "ORPHANS_KEPT", 3)
    words = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine"]
    ids = [repository.write(word) for word in words]
    reader.look(repository)
    for memory_id in ids[:8]:
        repository.remove(memory_id)
    reader.look(repository)
    with sqlite3.connect(reader.path) as connection:
        assert connection.execute("select count(*) from orphan").fetchone() == (3,)
        assert connection.execute("select count(*) from content").fetchone() == (5,)
    assert set(reader.ids(repository)) == set(ids[8:])
    assert reader.found("pine", repository) == [ids[9]]

    monkeypatch.setattr(ingest, "ORPHAN_SECONDS", -10)
    repository.remove(ids[8])
    reader.look(repository)
    with sqlite3.connect(reader.path) as connection:
        assert connection.execute("select count(*) from content").fetchone() == (1,)


def test_the_row_of_a_removed_memory_is_used_again_without_its_old_words(
    personal: Folder, reader: Reader
) -> None:
    first = personal.write("likes zarf brackets")
    gone = personal.write("likes gone brackets")
    reader.look(personal)
    for _ in range(3):
        personal.write("likes plain brackets", id=first)
        personal.remove(gone)
        reader.look(personal)
        gone = personal.write("likes new brackets")
        reader.look(personal)
        assert reader.found("zarf", personal) == []
        assert reader.found("gone", personal) == []
        assert sorted(reader.found("brackets", personal)) == sorted([first, gone])
        assert reader.found("new", personal) == [gone]
        personal.write("likes zarf brackets", id=first)
        assert reader.found("zarf", personal) == [first]


class GitTrees:
    """Reads branches with git itself, and notes which texts it was asked for."""

    def __init__(self, git: Any, root: Path) -> None:
        self.git = git
        self.root = root
        self.asked: list[str] = []
        self.missing: set[str] = set()
        self.broken = False

    def tip(self, home: Any) -> str | None:
        if self.broken:
            raise OpenMemexError("no repository")
        done = self.git.run("rev-parse", "--verify", "-q", home.ref, cwd=self.root)
        return done.stdout.strip() or None

    def entries(self, home: Any) -> dict[str, str]:
        lines = self.git("ls-tree", f"{home.ref}:{home.base}", cwd=self.root).splitlines()
        return {line.split("\t")[1]: line.split()[2] for line in lines}

    def blobs(self, oids: list[str]) -> list[tuple[str, bytes]]:
        self.asked += oids
        if self.missing & set(oids):
            raise NotFound("no such blob")
        return [(oid, self.git("cat-file", "blob", oid, cwd=self.root).encode() + b"\n") for oid in oids]


def test_a_branch_is_read_from_its_tree_and_only_what_is_new_in_it(
    make_repo: Any, git: Any, reader: Reader
) -> None:
    from openmemex.store import homes

    root = make_repo()
    folder = Folder(homes.repository_home(str(root), ".ai/open-memex", "project__app__0123456789ab"))
    shared = [folder.write(f"shared words {number}") for number in range(5)]
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "memories", cwd=root)
    git("switch", "-q", "-c", "topic", cwd=root)
    drafted = folder.write("drafted words")
    folder.write("shared words changed", id=shared[0])
    folder.write_raw(new_id(), b"no memory\n")
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "draft", cwd=root)
    git("switch", "-q", "main", cwd=root)

    trees = GitTrees(git, root)
    branch = homes.branch_home(
        str(root / ".git"), "refs/heads/topic", ".ai/open-memex", folder.home.scope_key
    )
    here = [folder.home, branch]
    reader.look(folder)
    freshness = reader.index.reconcile(here, trees)
    assert len(trees.asked) == 3
    assert freshness.quarantined == 1
    rows = {row.id: row for row in reader.index.list(here, None, 100).rows}
    assert set(rows) == {*shared, drafted}
    assert rows[drafted].place_label == "on branch topic"
    assert rows[drafted].rel_path == f".ai/open-memex/{drafted}.md"
    assert rows[shared[0]].place_label == ""
    assert rows[shared[0]].summary == "shared words 0"
    assert [row.place_kind for row in reader.index.find(here, shared[0])] == ["repository", "branch"]
    assert [row.place_kind for row in reader.index.find(here, shared[1])] == ["repository"]

    reader.index.reconcile(here, trees)
    assert len(trees.asked) == 3
    git("branch", "-q", "-D", "topic", cwd=root)
    reader.index.reconcile(here, trees)
    assert {row.id for row in reader.index.list(here, None, 100).rows} == set(shared)


def test_a_branch_that_cannot_be_read_stays_as_it_was(make_repo: Any, git: Any, reader: Reader) -> None:
    from openmemex.store import homes

    root = make_repo()
    folder = Folder(homes.repository_home(str(root), ".ai/open-memex", "project__app__0123456789ab"))
    first = folder.write("first words")
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "memories", cwd=root)
    trees = GitTrees(git, root)
    branch = homes.branch_home(str(root / ".git"), "refs/heads/main", ".ai/open-memex", folder.home.scope_key)
    assert reader.index.reconcile([branch], trees).fresh
    second = folder.write("second words")
    third = folder.write("third words")
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "more", cwd=root)

    lost = git("rev-parse", f"HEAD:.ai/open-memex/{second}.md", cwd=root)
    trees.missing.add(lost)
    freshness = reader.index.reconcile([branch], trees)
    assert freshness.fresh
    assert {row.id for row in reader.index.list([branch]).rows} == {first, third}
    (unread,) = reader.index.quarantined([branch])
    assert unread == (f".ai/open-memex/{second}.md", 0, "its text is not in this clone")

    trees.broken = True
    freshness = reader.index.reconcile([branch], trees)
    assert not freshness.fresh
    assert {row.id for row in reader.index.list([branch]).rows} == {first, third}


def test_switching_branches_parses_what_differs_once(make_repo: Any, git: Any, reader: Reader) -> None:
    from openmemex.store import homes

    root = make_repo()
    folder = Folder(homes.repository_home(str(root), ".ai/open-memex", "project__app__0123456789ab"))
    ids = [folder.write(f"common words {number}") for number in range(30)]
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "memories", cwd=root)
    git("switch", "-q", "-c", "topic", cwd=root)
    for memory_id in ids[:3]:
        folder.write("topic words", id=memory_id)
    git("commit", "-q", "-a", "-m", "topic", cwd=root)
    git("switch", "-q", "main", cwd=root)
    reader.settled(folder)
    assert contents(reader) == 30
    for branch, expected in (("topic", 3), ("main", 0), ("topic", 3)):
        git("switch", "-q", branch, cwd=root)
        freshness = reader.look(folder)
        assert freshness.changed == 3
        assert len(reader.found("topic", folder)) == expected
        assert contents(reader) == 33


def test_two_worktrees_share_what_was_parsed(
    make_repo: Any, git: Any, reader: Reader, tmp_path: Path
) -> None:
    from openmemex.store import homes

    root = make_repo()
    folder = Folder(homes.repository_home(str(root), ".ai/open-memex", "project__app__0123456789ab"))
    ids = {folder.write(f"common words {number}") for number in range(10)}
    git("add", ".", cwd=root)
    git("commit", "-q", "-m", "memories", cwd=root)
    other = tmp_path / "tree"
    git("worktree", "add", "-q", "-b", "topic", str(other), cwd=root)
    reader.look(folder)
    beside = Folder(homes.repository_home(str(other), ".ai/open-memex", folder.home.scope_key))
    only = beside.write("only beside")
    reader.look(beside)
    assert contents(reader) == 11
    assert set(reader.ids(beside)) == {*ids, only}
    assert set(reader.ids(folder)) == ids
    assert reader.index.find([beside.home], only)[0].path == str(beside.file(only))

"""Old revisions as places: they cost others nothing, don't pile up, and lose nothing that is still named."""

from __future__ import annotations

import hashlib

import pytest

from openmemex.index import ingest
from openmemex.index.memory_index import MemoryIndex
from openmemex.index.rows import Filters
from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.memory.model import Memory
from openmemex.store.homes import personal_home, repository_home, revision_home

KEY = "project__r__0123456789ab"


def text_of(memory_id, body, **fields):
    return frontmatter.render(Memory(memory_id, body, scope="project", scope_key=KEY, **fields))


class Trees:
    """Commits by name, as a TreeReader; counts what is read."""

    def __init__(self):
        self.commits: dict[str, dict[str, bytes]] = {}
        self.lacking: set[str] = set()
        self.read: list[str] = []

    @staticmethod
    def oid(raw):
        return hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()

    def tip(self, home):
        return home.ref.partition(":")[0]

    def entries(self, home):
        return {name: self.oid(raw) for name, raw in self.commits[self.tip(home)].items()}

    def blobs(self, oids):
        texts = {self.oid(raw): raw for files in self.commits.values() for raw in files.values()}
        self.read += oids
        return [(oid, texts[oid]) for oid in oids if oid not in self.lacking]


@pytest.fixture
def index(tmp_path):
    made = MemoryIndex.open(str(tmp_path / "data" / "index.db"))
    yield made
    made.close()


@pytest.fixture
def trees():
    return Trees()


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "repo" / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    return repository_home(str(tmp_path / "repo"), ".ai/open-memex", KEY)


def at(tmp_path, commit):
    return revision_home(str(tmp_path / "repo" / ".git"), commit, ".ai/open-memex", KEY)


def many(trees, commit, count, word="alpha"):
    trees.commits[commit] = {}
    for number in range(count):
        memory_id = new_id(1_700_000_000_000 + number)
        trees.commits[commit][f"{memory_id}.md"] = text_of(memory_id, f"{word} number {number}\n")


def found(index, homes, query, **options):
    return {hit.row.id for hit in index.search(query, homes, Filters(**options), 100).hits}


def test_a_revision_is_read_once_and_only_what_was_never_seen(index, trees, tmp_path):
    many(trees, "a" * 40, 5)
    trees.commits["b" * 40] = dict(trees.commits["a" * 40])
    name = next(iter(trees.commits["b" * 40]))
    trees.commits["b" * 40][name] = text_of(name[:-3], "alpha changed\n")
    first, second = at(tmp_path, "a" * 40), at(tmp_path, "b" * 40)
    index.reconcile([first], trees)
    index.reconcile([second], trees)
    assert len(trees.read) == 6
    index.reconcile([first], trees)
    index.reconcile([second], trees)
    assert len(trees.read) == 6
    assert len(found(index, [first], "alpha")) == len(found(index, [second], "alpha")) == 5
    assert found(index, [second], "changed") == {name[:-3]}
    assert found(index, [first], "changed") == set()


def test_what_only_a_revision_has_is_found_by_nobody_else(index, trees, place, tmp_path):
    many(trees, "a" * 40, 5)
    index.reconcile([at(tmp_path, "a" * 40)], trees)
    own = new_id()
    (tmp_path / "repo/.ai/open-memex" / f"{own}.md").write_bytes(text_of(own, "alpha own\n"))
    here = [personal_home(str(tmp_path / "data")), place]
    index.reconcile(here, trees)
    assert found(index, here, "alpha") == {own}
    assert index.list(here).total == 1
    assert len(found(index, [at(tmp_path, "a" * 40)], "alpha")) == 5


def test_a_text_that_a_file_has_too_stays_when_either_goes(index, trees, place, tmp_path):
    many(trees, "a" * 40, 2)
    name, raw = next(iter(trees.commits["a" * 40].items()))
    file = tmp_path / "repo/.ai/open-memex" / name
    file.write_bytes(raw)
    old = at(tmp_path, "a" * 40)
    index.reconcile([old], trees)
    index.reconcile([place], trees)
    assert found(index, [place], "alpha") == {name[:-3]}
    file.unlink()
    index.reconcile([place], trees)
    assert found(index, [place], "alpha") == set()
    assert len(found(index, [old], "alpha")) == 2
    file.write_bytes(raw)
    index.reconcile([place], trees)
    assert found(index, [place], "alpha") == {name[:-3]}
    assert len(trees.read) == 2


def test_a_private_text_that_a_revision_has_too_is_not_lost_to_it(index, trees, tmp_path):
    many(trees, "a" * 40, 2)
    name, raw = next(iter(trees.commits["a" * 40].items()))
    home = personal_home(str(tmp_path / "data"))
    folder = tmp_path / "data" / "memories" / "personal"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(raw)
    old = at(tmp_path, "a" * 40)
    index.reconcile([home], trees)
    index.reconcile([old], trees)
    (folder / name).unlink()
    index.reconcile([home], trees)
    assert found(index, [home], "alpha") == set()
    assert len(found(index, [old], "alpha")) == 2


def test_revisions_do_not_pile_up(index, trees, tmp_path):
    commits = [f"{number:040x}" for number in range(ingest.REVISIONS_KEPT + 10)]
    for commit in commits:
        many(trees, commit, 2, word=f"w{commit[-3:]}")
        index.reconcile([at(tmp_path, commit)], trees)
    kept = [commit for commit in commits if index.holds(at(tmp_path, commit))]
    assert kept == commits[-ingest.REVISIONS_KEPT :]
    assert len(found(index, [at(tmp_path, commits[-1])], f"w{commits[-1][-3:]}")) == 2


def test_texts_that_a_kept_revision_names_outlive_the_pruning_of_what_was_left(
    index, trees, tmp_path, monkeypatch
):
    monkeypatch.setattr(ingest, "ORPHANS_KEPT", 0)
    monkeypatch.setattr(ingest, "REVISIONS_KEPT", 2)
    commits = [f"{number:040x}" for number in range(5)]
    for commit in commits:
        many(trees, commit, 20, word=f"w{commit[-3:]}")
        index.reconcile([at(tmp_path, commit)], trees)
    for commit in commits[-2:]:
        assert len(found(index, [at(tmp_path, commit)], f"w{commit[-3:]}")) == 20
    again = at(tmp_path, commits[0])
    index.reconcile([again], trees)
    assert len(found(index, [again], "w000")) == 20


def test_a_text_that_could_not_be_had_is_asked_for_again(index, trees, tmp_path):
    many(trees, "a" * 40, 2)
    trees.lacking = {trees.oid(next(iter(trees.commits["a" * 40].values())))}
    old = at(tmp_path, "a" * 40)
    index.reconcile([old], trees)
    (unread,) = index.quarantined([old])
    assert unread.reason == "its text is not in this clone"
    trees.lacking = set()
    index.reconcile([old], trees)
    assert index.quarantined([old]) == []
    assert len(found(index, [old], "alpha")) == 2


def test_what_has_ended_is_judged_as_of_the_moment_asked_about(index, trees, tmp_path):
    memory_id = new_id(1_700_000_000_000)
    raw = text_of(
        memory_id, "alpha ends\n", expires_at="2025-06-01T00:00:00Z", updated_at="2025-01-01T00:00:00Z"
    )
    trees.commits["a" * 40] = {f"{memory_id}.md": raw}
    old = at(tmp_path, "a" * 40)
    index.reconcile([old], trees)
    assert found(index, [old], "alpha") == set()
    assert found(index, [old], "alpha", now=1_746_000_000.0) == {memory_id}  # 2025-04-30
    (hit,) = index.search("alpha", [old], Filters(now=1_746_000_000.0)).hits
    assert hit.age_days == 119
    (row,) = index.list([old], Filters(now=1_746_000_000.0)).rows
    assert (row.place_label, row.rel_path) == ("at aaaaaaaaaa", f".ai/open-memex/{memory_id}.md")

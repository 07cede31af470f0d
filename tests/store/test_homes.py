"""The places of memories, and that none of them leads out of where it should be."""

from __future__ import annotations

import pytest

from openmemex.errors import OpenMemexError, Refused
from openmemex.memory import ids
from openmemex.store import homes

KEY = "project__widget__0123456789ab"


def test_each_home_knows_its_folder_scope_and_base(tmp_path):
    root = str(tmp_path)
    personal = homes.personal_home(root)
    outbox = homes.outbox_home(root, KEY)
    repository = homes.repository_home(root, ".ai/open-memex", KEY)
    branch = homes.branch_home(f"{root}/.git", "refs/heads/x", ".ai/open-memex", KEY)
    assert personal == ("personal", f"{root}/memories/personal", "personal", "personal", root, "")
    assert outbox == ("outbox", f"{root}/memories/{KEY}", "project", KEY, root, "")
    assert repository == ("repository", f"{root}/.ai/open-memex", "project", KEY, root, "")
    assert branch == ("branch", f"{root}/.git", "project", KEY, ".ai/open-memex", "refs/heads/x")
    assert homes.outbox_home(root, "org__acme__0123456789ab").scope == "org"


def test_paths_are_shown_relative_to_the_base(tmp_path):
    home = homes.personal_home(str(tmp_path))
    memory_id = ids.new_id()
    assert home.shown(home.path_of(memory_id)) == f"memories/personal/{memory_id}.md"
    assert home.shown("/elsewhere/x.md") == "/elsewhere/x.md"


@pytest.mark.parametrize(
    "text",
    ["../../../etc/hostname", "/etc/hostname", "", "X" * 27, " " + "0" * 26, "0" * 26 + "\0", "0" * 25 + "a"],
)
def test_only_a_whole_id_becomes_a_path(tmp_path, text):
    with pytest.raises(OpenMemexError, match="no memory id"):
        homes.personal_home(str(tmp_path)).path_of(text)


@pytest.mark.parametrize(
    "key",
    [
        "personal",
        "",
        "..",
        "project__..__0123456789ab",
        "project__a/b__0123456789ab",
        "project__a__0123456789AB",
        "project__a__0123456789ab\n",
        "team__a__0123456789ab",
        "project____0123456789ab",
        "project__a\0__0123456789ab",
    ],
)
def test_a_malformed_scope_key_never_names_a_folder(tmp_path, key):
    with pytest.raises(OpenMemexError, match="no scope key"):
        homes.outbox_home(str(tmp_path), key)


def test_existing_outboxes_are_listed_without_links_and_odd_names(tmp_path):
    assert homes.outbox_homes(str(tmp_path)) == []
    memories = tmp_path / "memories"
    for name in (KEY, "personal", "project__b__0123456789ab", "notes", "org__acme__0123456789ab"):
        (memories / name).mkdir(parents=True)
    (memories / "project__link__0123456789ab").symlink_to(memories / KEY)
    (memories / "project__file__0123456789ab").write_bytes(b"")
    found = homes.outbox_homes(str(tmp_path))
    assert [home.scope_key for home in found] == ["org__acme__0123456789ab", "project__b__0123456789ab", KEY]


@pytest.mark.parametrize(
    "folder", ["", ".", "..", "a/..", "../a", "/a", "a//b", "a/./b", ".git", "a/.GIT/b", "a/"]
)
def test_a_memory_folder_outside_of_the_work_tree_is_refused(tmp_path, folder):
    with pytest.raises(Refused):
        homes.repository_home(str(tmp_path), folder, KEY)


def test_a_memory_folder_that_is_a_link_or_a_file_is_refused(tmp_path):
    outside = tmp_path / "out"
    (outside / "open-memex").mkdir(parents=True)
    for number, break_it in enumerate(("folder", "parent", "file")):
        work = tmp_path / f"work{number}"
        work.mkdir()
        if break_it == "parent":
            (work / ".ai").symlink_to(outside)
        else:
            (work / ".ai").mkdir()
            if break_it == "folder":
                (work / ".ai" / "open-memex").symlink_to(outside / "open-memex")
            else:
                (work / ".ai" / "open-memex").write_bytes(b"")
        with pytest.raises(Refused, match="symbolic link" if break_it != "file" else "no folder"):
            homes.repository_home(str(work), ".ai/open-memex", KEY)


def test_a_folder_that_becomes_a_link_later_is_noticed(tmp_path):
    home = homes.repository_home(str(tmp_path), "m", KEY)
    homes.check_folder(home)
    (tmp_path / "m").symlink_to("/tmp")
    with pytest.raises(Refused, match="symbolic link"):
        homes.check_folder(home)

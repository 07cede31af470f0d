"""`init --git` and `uninstall --git`: one line and four keys come, exactly these go, all else stays."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import needed
import pytest

from openmemex.cli import fast
from openmemex.git import attributes, drivers
from openmemex.memory import frontmatter
from openmemex.memory.model import Memory

FOLDER = ".ai/open-memex"
FILE = f"{FOLDER}/.gitattributes"
ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
MEMORY = f"{FOLDER}/{ID}.md"
LINE = "*.md text eol=lf -filter -ident -working-tree-encoding merge=openmemex diff=openmemex"
KEYS = ["merge.openmemex.name", drivers.DRIVER, drivers.TEXTCONV, "diff.openmemex.xfuncname"]
BASE = frontmatter.render(
    Memory(id=ID, body="Deploys need the VPN.\n", scope="project", scope_key="project__app__0123456789ab")
)


@pytest.fixture
def om(om, monkeypatch, capsys):
    """As the fixture of that name, in this process where no environment is asked for: there are many runs."""

    def run(*words: str, cwd: Path, code: int = 0, env: dict[str, str] | None = None):
        if env is not None:
            return om(*words, cwd=cwd, code=code, env=env)
        monkeypatch.chdir(cwd)
        ended = fast.main([*words, "--json"])
        told = capsys.readouterr()
        assert ended == code, told
        return json.loads(told.out)

    return run


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the work tree, and the configuration: mode and bytes."""
    files = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    files += [root / ".git" / "config"]
    return {str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes()) for path in files}


def local(git, repo: Path) -> dict[str, str]:
    lines = git("config", "--local", "--list", "-z", cwd=repo).split("\0")[:-1]
    return dict(line.split("\n", 1) for line in lines)


def put_memory(repo: Path, raw: bytes = BASE, folder: str = FOLDER) -> Path:
    path = repo / folder / f"{ID}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


def concurrent_edits_merge(git, repo: Path, folder: str = FOLDER) -> bool:
    """Whether git merges two changes of adjacent fields of a new memory, with no conflict."""
    path = put_memory(repo, folder=folder)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "A memory", cwd=repo)
    git("branch", "-q", "topic", cwd=repo)
    path.write_bytes(BASE.replace(b"type: fact", b"type: gotcha"))
    git("commit", "-q", "-a", "-m", "ours", cwd=repo)
    here = git("symbolic-ref", "--short", "HEAD", cwd=repo)
    git("switch", "-q", "topic", cwd=repo)
    path.write_bytes(BASE.replace(b"role: knowledge", b"role: instruction"))
    git("commit", "-q", "-a", "-m", "theirs", cwd=repo)
    done = git.run("merge", "-q", "-m", "x", here, cwd=repo)
    text = path.read_bytes()
    return done.returncode == 0 and b"type: gotcha\nrole: instruction\n" in text


def merge_check(om, repo: Path, code: int) -> dict:
    checks = om("doctor", cwd=repo, code=code)["checks"]
    (found,) = [check for check in checks if check["name"] == "merge driver"]
    return found


# --- setting up ---


def test_one_line_of_attributes_and_the_configuration_of_this_clone(make_repo, om, git):
    repo = make_repo()
    before = local(git, repo)
    made = om("init", "--git", cwd=repo)
    assert made == {
        "dry_run": False,
        "attributes": {"path": FILE, "action": "added"},
        "config": [{"key": key, "action": "added", "value": local(git, repo)[key]} for key in KEYS],
        "next": [
            f"git add -- {FILE}",
            f"git commit -m 'Merge memories field by field' -- {FILE}",
        ],
        "notices": [],
    }
    assert (repo / FILE).read_text().splitlines() == [attributes.COMMENT.decode(), LINE]
    assert sorted(local(git, repo).keys() - before.keys()) == sorted(KEYS)
    assert git("status", "--porcelain", cwd=repo) == "?? .ai/"
    assert stat.S_IMODE((repo / FILE).stat().st_mode) == 0o644
    assert stat.S_IMODE((repo / FOLDER).stat().st_mode) == 0o755
    for command in made["next"]:
        git(*shlex.split(command)[1:], cwd=repo)
    assert git("status", "--porcelain", cwd=repo) == ""
    assert om("init", "--git", cwd=repo)["next"] == []
    assert concurrent_edits_merge(git, repo)


def test_run_again_it_changes_nothing(make_repo, om):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    before = snapshot(repo)
    again = om("init", "--git", cwd=repo)
    assert again["attributes"]["action"] == "unchanged"
    assert {value["action"] for value in again["config"]} == {"unchanged"}
    assert snapshot(repo) == before


@pytest.mark.parametrize("command", ["init", "uninstall"])
def test_a_dry_run_says_what_the_run_does_and_writes_nothing(make_repo, om, command):
    repo = make_repo()
    if command == "uninstall":
        om("init", "--git", cwd=repo)
    before = snapshot(repo)
    planned = om(command, "--git", "--dry-run", cwd=repo)
    assert snapshot(repo) == before
    assert {**planned, "dry_run": False} == om(command, "--git", cwd=repo)
    assert snapshot(repo) != before


def test_the_command_begins_as_documented_where_the_program_is_on_the_path(make_repo, om, git, tmp_path):
    repo = make_repo()
    program = tmp_path / "bin" / "open-memex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    om("init", "--git", cwd=repo, env={"PATH": path})
    assert local(git, repo)[drivers.DRIVER].startswith("open-memex merge-driver %O %A %B %P ")
    assert local(git, repo)[drivers.TEXTCONV].startswith('open-memex textconv "$1" ')


def test_else_it_names_the_program_by_its_absolute_path_whatever_is_in_that(make_repo, om, git, tmp_path):
    repo = make_repo()
    program = tmp_path / "it's 100%A \\ven v" / "open-memex"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m openmemex "$@"\n')
    program.chmod(0o755)
    started = f"import sys; sys.argv[0] = {str(program)!r}; from openmemex.cli.fast import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", started, "init", "--git"],
        cwd=repo,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    command = local(git, repo)[drivers.DRIVER]
    assert command.startswith("'") and " merge-driver %O %A %B %P " in command
    assert "100%%A" in command
    assert concurrent_edits_merge(git, repo)
    assert merge_check(om, repo, 0)["ok"]


# --- the attributes file ---

OTHERS = {
    "nothing": b"",
    "with a last line end": b"# mine\n*.png binary\n",
    "without one": b"*.png binary",
    "CRLF": b"*.png binary\r\n*.jpg binary\r\n",
    "CRLF without a last one": b"*.png binary\r\n*.jpg binary",
    "mixed": b"*.png binary\r\n*.jpg binary\n\n\n",
    "not UTF-8": b"caf\xe9.md -text\n",
    "rules that come before": b"*.md merge=union filter=lfs text=auto\n",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_lines_stay_byte_for_byte_and_are_all_that_is_left_in_the_end(make_repo, om, kind):
    repo = make_repo()
    (repo / FOLDER).mkdir(parents=True)
    (repo / FILE).write_bytes(OTHERS[kind])
    (repo / FILE).chmod(0o664)
    before = snapshot(repo)
    om("init", "--git", cwd=repo)
    raw = (repo / FILE).read_bytes()
    assert raw.startswith(OTHERS[kind])
    eol = b"\r\n" if kind.startswith("CRLF") else b"\n"
    assert attributes.COMMENT + eol + LINE.encode() in raw
    assert om("init", "--git", cwd=repo)["attributes"]["action"] == "unchanged"
    assert (repo / FILE).read_bytes() == raw
    merge = subprocess.run(
        ["git", "check-attr", "merge", "filter", "--", MEMORY], cwd=repo, capture_output=True, text=True
    )
    assert merge.stdout == f"{MEMORY}: merge: openmemex\n{MEMORY}: filter: unset\n"
    om("uninstall", "--git", cwd=repo)
    if kind == "nothing":
        assert not (repo / FILE).exists()
    else:
        assert snapshot(repo) == before


def test_a_line_that_was_extended_by_hand_counts_and_stays(make_repo, om):
    repo = make_repo()
    (repo / FOLDER).mkdir(parents=True)
    (repo / FILE).write_text(f"{LINE} linguist-documentation\n")
    assert om("init", "--git", cwd=repo)["attributes"]["action"] == "unchanged"
    done = om("uninstall", "--git", cwd=repo)
    assert done["attributes"]["action"] == "kept"
    assert (repo / FILE).read_text() == f"{LINE} linguist-documentation\n"
    assert done["next"] == []  # nothing was taken out that could be committed
    assert om("uninstall", "--git", "--force", cwd=repo)["attributes"]["action"] == "removed"
    assert not (repo / FILE).exists()


def test_a_line_that_was_cut_by_hand_stays_without_force(make_repo, om):
    repo = make_repo()
    (repo / FOLDER).mkdir(parents=True)
    (repo / FILE).write_text("*.png binary\n*.md merge=openmemex\n# end\n")
    kept = om("init", "--git", cwd=repo)
    assert kept["attributes"]["action"] == "kept"
    assert [notice["text"] for notice in kept["notices"]] == [
        f"the line in {FILE} was changed by hand and stays; --force writes it anew"
    ]
    assert om("init", "--git", "--force", cwd=repo)["attributes"]["action"] == "changed"
    assert (repo / FILE).read_text() == f"*.png binary\n{LINE}\n# end\n"


def test_a_folder_that_was_made_for_the_line_goes_with_it(make_repo, om):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    om("uninstall", "--git", cwd=repo)
    assert sorted(os.listdir(repo)) == [".git", "app.txt"]


def test_memories_stay_when_the_line_goes(make_repo, om):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    put_memory(repo)
    om("uninstall", "--git", cwd=repo)
    assert os.listdir(repo / FOLDER) == [f"{ID}.md"]


# --- the configuration ---


def test_uninstall_gives_the_configuration_back_byte_for_byte(make_repo, om, git):
    repo = make_repo()
    config = repo / ".git" / "config"
    config.write_text(
        config.read_text() + '# mine\n[merge "openmemex-not"]\n\tdriver = x\n[diff "png"]\n\ttextconv = y\n'
    )
    before = config.read_bytes()
    om("init", "--git", cwd=repo)
    assert config.read_bytes() != before
    done = om("uninstall", "--git", cwd=repo)
    assert {value["action"] for value in done["config"]} == {"removed"}
    assert config.read_bytes() == before
    again = om("uninstall", "--git", cwd=repo)
    assert {value["action"] for value in again["config"]} | {again["attributes"]["action"]} == {"absent"}


def test_a_value_that_was_set_by_hand_stays_without_force(make_repo, om, git):
    repo = make_repo()
    mine = "my-merge %O %A %B"
    git("config", drivers.DRIVER, mine, cwd=repo)
    made = om("init", "--git", cwd=repo)
    assert [(v["action"], v["value"]) for v in made["config"] if v["key"] == drivers.DRIVER] == [
        ("kept", mine)
    ]
    assert [n["text"] for n in made["notices"]] == [
        f"{drivers.DRIVER} was set by hand and stays as it is; --force sets it anew"
    ]
    done = om("uninstall", "--git", cwd=repo)
    assert local(git, repo)[drivers.DRIVER] == mine
    assert [n["text"] for n in done["notices"]] == [
        f"{drivers.DRIVER} was set by hand and stays as it is; --force removes it"
    ]
    made = om("init", "--git", "--force", cwd=repo)
    assert "changed" in [v["action"] for v in made["config"]]
    assert local(git, repo)[drivers.DRIVER] != mine


def test_a_value_of_another_installation_is_set_anew(make_repo, om, git):
    repo = make_repo()
    for key, value in drivers.commands("'/gone/bin/open-memex'").items():
        git("config", key, value, cwd=repo)
    made = om("init", "--git", cwd=repo)
    assert [v["action"] for v in made["config"]] == ["unchanged", "changed", "changed", "unchanged"]
    assert merge_check(om, repo, 0)["ok"]


def test_a_key_with_several_values_is_judged_by_all_of_them(make_repo, om, git):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    git("config", "--add", drivers.TEXTCONV, "cat", cwd=repo)
    made = om("init", "--git", cwd=repo)
    assert [v["action"] for v in made["config"] if v["key"] == drivers.TEXTCONV] == ["kept"]
    om("init", "--git", "--force", cwd=repo)
    assert "textconv" not in git("config", "--get-all", drivers.TEXTCONV, cwd=repo).splitlines()[1:]


def test_a_value_for_one_work_tree_alone_is_told(make_repo, om, git):
    repo = make_repo()
    git("config", "extensions.worktreeConfig", "true", cwd=repo)
    git("config", "--worktree", drivers.DRIVER, "mine %A", cwd=repo)
    made = om("init", "--git", cwd=repo)
    assert [n["text"] for n in made["notices"]] == [
        f"{drivers.DRIVER} is set for this work tree alone (git config --worktree), which wins"
    ]
    assert git("config", "--worktree", "--get", drivers.DRIVER, cwd=repo) == "mine %A"


@pytest.mark.parametrize("point", ["drivers.configured:1", "drivers.configured:3", "attributes.written"])
def test_after_a_kill_the_same_command_finishes(make_repo, run_cli, om, git, point):
    repo = make_repo()
    killed = run_cli("init", "--git", cwd=repo, env={"OPEN_MEMEX_FAULT": point})
    assert killed.returncode == -signal.SIGKILL
    om("init", "--git", cwd=repo)
    assert sorted(local(git, repo).keys() & set(KEYS)) == sorted(KEYS)
    assert om("init", "--git", cwd=repo)["attributes"]["action"] == "unchanged"
    assert merge_check(om, repo, 0)["ok"]
    run_cli("uninstall", "--git", cwd=repo, env={"OPEN_MEMEX_FAULT": point})
    om("uninstall", "--git", cwd=repo)
    assert not local(git, repo).keys() & set(KEYS)
    assert sorted(os.listdir(repo)) == [".git", "app.txt"]


def test_people_read_what_was_done_and_what_is_left(make_repo, run_cli):
    repo = make_repo()
    planned = run_cli("init", "--git", "--dry-run", cwd=repo).stdout.splitlines()
    done = run_cli("init", "--git", cwd=repo).stdout.splitlines()
    assert planned == ["Nothing was written; this is what would be done:", *done]
    assert done == [
        f"{FILE}: added",
        *(f"git config {key}: added" for key in KEYS),
        "Commit the file, so that it counts for everyone; each clone runs `open-memex init --git` once:",
        f"  git add -- {FILE}",
        f"  git commit -m 'Merge memories field by field' -- {FILE}",
    ]
    assert run_cli("uninstall", "--git", cwd=repo).stdout.splitlines() == [
        f"{FILE}: taken out",
        *(f"git config {key}: taken out" for key in KEYS),
    ]


# --- places ---


def test_from_a_subfolder(make_repo, om, git):
    repo = make_repo()
    (repo / "src").mkdir()
    made = om("init", "--git", cwd=repo / "src")
    assert (repo / FILE).is_file()
    for command in made["next"]:
        git(*shlex.split(command)[1:], cwd=repo / "src")
    assert git("ls-files", cwd=repo).splitlines() == [FILE, "app.txt"]


def test_from_elsewhere(make_repo, om, git, tmp_path):
    repo = make_repo("a 'repo'")
    made = om("init", "--git", "--project", str(repo), cwd=tmp_path)
    for command in made["next"]:
        git(*shlex.split(command)[1:], cwd=tmp_path)
    assert git("ls-files", cwd=repo).splitlines() == [FILE, "app.txt"]


@pytest.mark.parametrize("name", ["a folder", 'it\'s "quoted"', "100%A $HOME `x`", "ünï"])
def test_in_a_folder_of_any_name(make_repo, om, git, name):
    repo = make_repo(name)
    om("init", "--git", cwd=repo)
    assert concurrent_edits_merge(git, repo)
    assert merge_check(om, repo, 0) == {
        "name": "merge driver",
        "ok": True,
        "text": "memories merge field by field",
        "fix": "",
    }


def test_a_linked_work_tree_is_set_up_with_its_repository(make_repo, om, git, tmp_path):
    repo = make_repo()
    linked = tmp_path.resolve() / "linked"
    git("worktree", "add", "-q", str(linked), cwd=repo)
    om("init", "--git", cwd=linked)
    assert (linked / FILE).is_file() and not (repo / FILE).exists()
    assert drivers.DRIVER in local(git, repo)
    assert concurrent_edits_merge(git, linked)
    assert merge_check(om, linked, 0)["ok"]


def test_where_git_dir_is_set(make_repo, om, git):
    repo, other = make_repo("one"), make_repo("other")
    env = {"GIT_DIR": str(repo / ".git"), "GIT_WORK_TREE": str(repo)}
    before = snapshot(other)
    om("init", "--git", cwd=repo, env=env)
    assert (repo / FILE).is_file() and drivers.DRIVER in local(git, repo)
    assert snapshot(other) == before


@pytest.mark.parametrize("folder", ["docs/memory of ours", 'it\'s "so"/100%P $HOME `x`', "a[b]*"])
def test_another_memory_folder(make_repo, om, run_cli, git, folder):
    repo = make_repo()
    run_cli("config", "set", "memoryDir", folder, cwd=repo)
    made = om("init", "--git", cwd=repo)
    assert made["attributes"]["path"] == f"{folder}/.gitattributes"
    (repo / "ab").mkdir()
    (repo / "ab" / "untouched").touch()
    for command in made["next"]:
        git(*shlex.split(command)[1:], cwd=repo)
    assert git("status", "--porcelain", cwd=repo) == "?? ab/"
    assert concurrent_edits_merge(git, repo, folder)
    assert merge_check(om, repo, 0)["ok"]


def test_a_repository_without_commits(make_repo, om):
    repo = make_repo(commits=0)
    assert len(om("init", "--git", cwd=repo)["next"]) == 2
    assert merge_check(om, repo, 0)["ok"]


def refusal(run_cli, repo: Path, *words: str) -> str:
    before = snapshot(repo) if (repo / ".git").is_dir() else {}
    done = run_cli("init", "--git", *words, cwd=repo)
    assert done.returncode == 1, done.stdout
    assert before == (snapshot(repo) if before else {})
    return done.stderr


def test_an_attributes_file_that_is_a_link_is_refused(make_repo, run_cli, tmp_path):
    repo = make_repo()
    (tmp_path / "elsewhere").write_text("x\n")
    (repo / FOLDER).mkdir(parents=True)
    (repo / FILE).symlink_to(tmp_path / "elsewhere")
    assert ".gitattributes is a symbolic link" in refusal(run_cli, repo)
    assert (tmp_path / "elsewhere").read_text() == "x\n"


def test_an_attributes_file_that_is_a_folder_or_a_pipe_is_refused(make_repo, run_cli):
    repo = make_repo()
    (repo / FILE).mkdir(parents=True)
    assert ".gitattributes is no regular file" in refusal(run_cli, repo)
    (repo / FILE).rmdir()
    os.mkfifo(repo / FILE)
    done = run_cli("init", "--git", cwd=repo)
    assert (done.returncode, ".gitattributes is no regular file" in done.stderr) == (1, True)


def test_a_memory_folder_that_is_a_link_is_refused(make_repo, run_cli, tmp_path):
    repo = make_repo()
    (tmp_path / "elsewhere").mkdir()
    (repo / ".ai").symlink_to(tmp_path / "elsewhere")
    assert "is a symbolic link" in refusal(run_cli, repo)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_ignored_memory_folder_is_refused_with_the_rule(make_repo, run_cli):
    repo = make_repo()
    (repo / ".gitignore").write_text(".ai/\n")
    told = refusal(run_cli, repo)
    assert f"{FILE} is ignored by git (.gitignore:1:.ai/)" in told and "!/.ai/" in told


def test_a_memory_folder_outside_a_sparse_checkout_is_refused(make_repo, run_cli, git):
    repo = make_repo()
    (repo / "src").mkdir()
    (repo / "src" / "a").write_text("a")
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "x", cwd=repo)
    git("sparse-checkout", "set", "src", cwd=repo)
    assert f"git sparse-checkout add {FOLDER}" in refusal(run_cli, repo)


def test_a_bare_repository_is_refused(make_repo, make_remote, run_cli):
    bare = make_remote(make_repo())
    done = run_cli("init", "--git", cwd=bare)
    assert (done.returncode, "bare repository" in done.stderr) == (1, True)


def test_outside_of_a_repository_it_is_refused(run_cli, tmp_path):
    (tmp_path / "plain").mkdir()
    done = run_cli("init", "--git", cwd=tmp_path / "plain")
    assert (done.returncode, "is not in a git repository" in done.stderr) == (1, True)


@pytest.mark.parametrize("command", ["init", "uninstall"])
def test_without_a_word_what_for_it_says_what_there_is(run_cli, command, tmp_path):
    done = run_cli(command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`open-memex {command} --git`" in done.stderr


# --- what git stores ---


def test_memories_are_stored_plain_whatever_the_rules_of_the_repository(make_repo, om, git):
    repo = make_repo()
    (repo / ".gitattributes").write_text("*.md filter=upper working-tree-encoding=UTF-16LE ident eol=crlf\n")
    git("config", "filter.upper.clean", "tr a-z A-Z", cwd=repo)
    git("config", "filter.upper.required", "true", cwd=repo)
    git("config", "core.autocrlf", "true", cwd=repo)
    om("init", "--git", cwd=repo)
    text = BASE.replace(b"Deploys", b"$Id$ Deploys")
    put_memory(repo, text.replace(b"\n", b"\r\n"))
    git("add", "-A", cwd=repo)
    stored = git("cat-file", "blob", f":{MEMORY}", cwd=repo)
    assert stored.encode() + b"\n" == text
    (repo / MEMORY).unlink()
    git("checkout", "-q", "--", MEMORY, cwd=repo)
    assert (repo / MEMORY).read_bytes() == text
    told = git("check-attr", "-a", "--", MEMORY, cwd=repo).splitlines()
    assert sorted(line.split(": ", 1)[1] for line in told) == [
        "diff: openmemex",
        "eol: lf",
        "filter: unset",
        "ident: unset",
        "merge: openmemex",
        "text: set",
        "working-tree-encoding: unset",
    ]


def test_memories_are_no_pointers_where_markdown_is_in_large_file_storage(make_repo, om, git):
    needed.program("git-lfs")
    repo = make_repo()
    git("lfs", "install", "--local", "--skip-smudge", cwd=repo)
    git("lfs", "track", "*.md", cwd=repo)
    om("init", "--git", cwd=repo)
    put_memory(repo)
    (repo / "large.md").write_text("large\n")
    git("add", "-A", cwd=repo)
    assert git("cat-file", "blob", ":large.md", cwd=repo).startswith("version https://git-lfs")
    assert git("cat-file", "blob", f":{MEMORY}", cwd=repo).encode() + b"\n" == BASE


def test_the_attributes_file_is_no_memory_that_waits_to_be_shared(make_repo, om):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    assert om("sync-status", cwd=repo)["uncommitted"] == []
    assert om("list", "--all", cwd=repo)["total"] == 0


def test_no_attribute_ever_joins_memories_line_by_line(make_repo, om):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    assert "union" not in (repo / FILE).read_text()


# --- doctor ---


def test_doctor_offers_the_setup_where_there_is_none(make_repo, om):
    repo = make_repo()
    assert merge_check(om, repo, 0) == {
        "name": "merge driver",
        "ok": True,
        "text": "memories merge as plain text here; `open-memex init --git` lets them merge by field",
        "fix": "open-memex init --git",
    }


def test_a_fresh_clone_merges_as_text_and_doctor_says_so(make_repo, make_remote, clone, om, git):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    put_memory(repo)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "x", cwd=repo)
    fresh = clone(make_remote(repo))
    found = merge_check(om, fresh, 1)
    assert found["fix"] == "open-memex init --git"
    assert "this clone has not set it up" in found["text"]
    git("switch", "-q", "-c", "topic", cwd=fresh)
    for branch, state in (("topic", b"archived"), ("main", b"deprecated")):
        git("switch", "-q", branch, cwd=fresh)
        (fresh / MEMORY).write_bytes(BASE.replace(b"status: active", b"status: " + state))
        git("commit", "-q", "-am", branch, cwd=fresh)
    done = git.run("merge", "topic", cwd=fresh)
    assert done.returncode == 1
    text = (fresh / MEMORY).read_text()
    assert "<<<<<<< HEAD\nstatus: deprecated\n=======\nstatus: archived\n>>>>>>> topic\n" in text
    git("merge", "--abort", cwd=fresh)
    om("init", "--git", cwd=fresh)
    assert merge_check(om, fresh, 0)["ok"]


@pytest.mark.parametrize("here", [True, False], ids=["in the work tree", "in HEAD alone"])
def test_doctor_sees_the_attribute_wherever_it_is(make_repo, om, git, here):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "x", cwd=repo)
    if not here:
        git("rm", "-q", FILE, cwd=repo)
    for key in KEYS:
        git("config", "--unset", key, cwd=repo)
    found = merge_check(om, repo, 1)
    assert (found["ok"], found["fix"]) == (False, "open-memex init --git")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("'/no such/open-memex'", "'/no such/open-memex' can't be found or started"),
        ("false", "false did not merge two changes of different fields (exit code 1)"),
        ("true", "true did not merge two changes of different fields (exit code 0)"),
    ],
)
def test_doctor_tries_the_driver(make_repo, om, git, program, told):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    git("config", drivers.DRIVER, drivers.commands(program)[drivers.DRIVER], cwd=repo)
    found = merge_check(om, repo, 1)
    assert found["text"] == f"the merge driver does not work: {told}"
    om(*shlex.split(found["fix"])[1:], cwd=repo)
    assert merge_check(om, repo, 0)["ok"]


def test_doctor_takes_the_short_form_too(make_repo, om, git):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    started = f"{drivers.program()} merge-driver %O %A %B %P"
    git("config", drivers.DRIVER, started, cwd=repo)
    assert merge_check(om, repo, 0)["ok"]


def test_doctor_names_the_private_rule_that_wins(make_repo, om, git):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    info = repo / ".git" / "info" / "attributes"
    info.parent.mkdir(exist_ok=True)
    info.write_text("*.md merge=binary\n")
    found = merge_check(om, repo, 1)
    assert ".git/info/attributes" in found["text"] and "merge=binary" in found["text"]
    made = om("init", "--git", cwd=repo)
    assert [n["text"] for n in made["notices"]] == [
        ".git/info/attributes says merge=binary for memories, which wins; take it out there"
    ]


def test_doctor_names_a_private_rule_that_changes_what_is_stored(make_repo, om, git):
    repo = make_repo()
    om("init", "--git", cwd=repo)
    info = repo / ".git" / "info" / "attributes"
    info.parent.mkdir(exist_ok=True)
    info.write_text("*.png binary\n*.md diff=openmemex merge=openmemex\n")
    assert merge_check(om, repo, 0)["ok"]
    info.write_text("*.md filter=lfs\n")
    found = merge_check(om, repo, 1)
    assert ".git/info/attributes says filter=lfs" in found["text"] and found["fix"]


@pytest.mark.parametrize("place", [".gitattributes", FILE, ".git/info/attributes"])
def test_doctor_never_takes_union_for_right(make_repo, om, place):
    repo = make_repo()
    (repo / FOLDER).mkdir(parents=True)
    (repo / place).parent.mkdir(exist_ok=True)
    (repo / place).write_text("*.md merge=union\n")
    found = merge_check(om, repo, 1)
    assert "merge=union" in found["text"] and found["fix"]


def test_doctor_in_a_bare_repository_says_nothing_of_it(make_repo, make_remote, om):
    bare = make_remote(make_repo())
    assert [c for c in om("doctor", cwd=bare)["checks"] if c["name"] == "merge driver"] == []

"""Start-up is a promise: what a search loads, and what the hooks' half of the package needs."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

# Each of these costs more than a search may, or pulls in something that does.
FORBIDDEN = frozenset(
    {
        "typer",
        "click",
        "rich",
        "pygit2",
        "_pygit2",
        "cffi",
        "yaml",
        "frontmatter",
        "filelock",
        "detect_secrets",
    }
    | {
        "dataclasses",
        "inspect",
        "ast",
        "dis",
        "pathlib",
        "subprocess",
        "tempfile",
        "shutil",
        "logging",
        "random",
    }
    | {"hashlib", "json", "argparse", "asyncio", "threading", "socket", "ssl", "urllib", "email", "ctypes"}
    | {"importlib.metadata", "string", "textwrap", "traceback", "fnmatch", "glob", "locale"}
)
# A file this young may change again and keep its stamp: the next look at it would read it once more.
STAMP_DOUBT = 0.2
# As the installed script does it.
SCRIPT = "import sys; from openmemex.cli.fast import run; sys.argv[0] = 'open-memex'; sys.exit(run())"


def loaded(code: str, *args: str, cwd, ends: int = 0) -> tuple[set[str], str]:
    """The modules that a process loads (as `-X importtime` names them), and what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *args],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = done.stderr.splitlines()
    names = {line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")}
    told = [line for line in lines if not line.startswith("import time:")]
    assert done.returncode == ends, "\n".join(told)
    return names, done.stdout


def heavy(names: set[str], forbidden: frozenset[str] = FORBIDDEN) -> list[str]:
    return sorted(n for n in names if n in forbidden or n.split(".")[0] in forbidden)


@pytest.mark.parametrize("words", [["search", "rotation"], ["search", "--limit", "3", "rotation of keys"]])
def test_a_search_with_nothing_changed_loads_nothing_heavy(home, make_repo, run_cli, words):
    repo = make_repo(origin="https://example.org/team/app.git")
    for text, scope in (("Key rotation happens on Mondays", "project"), ("I like rotation", "personal")):
        added = run_cli("add", text, "--scope", scope, cwd=repo)
        assert added.returncode == 0, added.stderr
    time.sleep(STAMP_DOUBT)
    assert "Mondays" in run_cli(*words, cwd=repo).stdout  # reads what changed
    before, _ = loaded("pass", cwd=repo)
    names, output = loaded(SCRIPT, *words, cwd=repo)
    assert "Mondays" in output
    assert "openmemex.cli.fast" in names
    assert heavy(names - before) == []


def test_json_output_loads_json_and_nothing_else_heavy(home, make_repo, run_cli):
    repo = make_repo()
    run_cli("add", "Key rotation happens on Mondays", cwd=repo)
    time.sleep(STAMP_DOUBT)
    run_cli("search", "rotation", cwd=repo)
    before, _ = loaded("pass", cwd=repo)
    names, _ = loaded(SCRIPT, "search", "rotation", "--json", cwd=repo)
    assert {n.split(".")[0] for n in heavy(names - before)} <= {"json"}


# What git starts for each file of a merge or a diff has no use for these either.
NOT_FOR_GIT = FORBIDDEN | {
    *("difflib", "sqlite3", "Stemmer", "decimal", "calendar", "base64", "platform"),
    *("openmemex.git", "openmemex.index", "openmemex.store", "openmemex.trust", "openmemex.operations"),
    *("openmemex.workspace", "openmemex.settings", "openmemex.cli.app", "openmemex.cli.session"),
}
OWN = (
    "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: fact\nrole: knowledge\ntags: [deploy]\nreview_note: null\n"
    'created_at: "2026-01-02T03:04:05Z"\nreview_history:\n'
    '- {at: "2026-01-02T03:04:05Z", by: Ada, from: draft, to: proposed, note: null}\n'
    "---\nDeploys need the VPN.\n"
)
# Nothing that OpenMemex writes: a list in block style, a comment.
FOREIGN = OWN.replace("tags: [deploy]", "tags: # mine\n  - deploy\n")
TYPE, ROLE = ("type: fact", "type: gotcha"), ("role: knowledge", "role: instruction")


@pytest.mark.parametrize(
    ("theirs", "ends"), [(ROLE, 0), (("type: fact", "type: howto"), 1), (("VPN", "tunnel"), 0)]
)
def test_the_merge_driver_loads_nothing_heavy(tmp_path, theirs, ends):
    for name, edit in (("O", ("", "")), ("A", TYPE), ("B", theirs)):
        (tmp_path / name).write_text(OWN.replace(*edit))
    before, _ = loaded("pass", cwd=tmp_path)
    names, _ = loaded(SCRIPT, *driver_words(), cwd=tmp_path, ends=ends)
    assert {"openmemex.cli.fast", "openmemex_hooks.merge_driver", "openmemex.memory.merge"} <= names
    assert heavy(names - before, NOT_FOR_GIT) == []
    assert ("<<<<<<<" in (tmp_path / "A").read_text()) == bool(ends)


def driver_words() -> list[str]:
    return ["merge-driver", "O", "A", "B", ".ai/open-memex/01ARZ3NDEKTSV4RRFFQ69G5FAV.md"]


def test_the_diff_driver_loads_nothing_heavy(tmp_path):
    (tmp_path / "O").write_text(OWN)
    before, _ = loaded("pass", cwd=tmp_path)
    names, output = loaded(SCRIPT, "textconv", "O", cwd=tmp_path)
    assert output.endswith("\n\nDeploys need the VPN.\n")
    assert {"openmemex.cli.fast", "openmemex_hooks.textconv", "openmemex.memory.readable"} <= names
    assert heavy(names - before, NOT_FOR_GIT) == []


def test_files_of_other_hands_may_cost_the_yaml_parser_and_nothing_else(tmp_path):
    for name, edit in (("O", ("", "")), ("A", TYPE), ("B", ROLE)):
        (tmp_path / name).write_text(FOREIGN.replace(*edit))
    for words in (driver_words(), ["textconv", "O"]):
        before, _ = loaded("import yaml", cwd=tmp_path)
        names, _ = loaded(SCRIPT, *words, cwd=tmp_path)
        assert "yaml" in names
        assert heavy(names - before, NOT_FOR_GIT) == []


ALONE = """
import importlib, pkgutil, sys

class OnlyYaml:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names or top in ("openmemex", "yaml", "_yaml"):
            return None
        raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, OnlyYaml())
for package in ("openmemex.memory", "openmemex.trust"):
    found = importlib.import_module(package)
    for part in pkgutil.iter_modules(found.__path__, package + "."):
        try:
            importlib.import_module(part.name)
            print(part.name)
        except ModuleNotFoundError as error:
            print(part.name, "lacks", error.name)
try:
    import typer
except ModuleNotFoundError:
    print("typer was kept out")
"""


def test_memory_and_trust_need_pyyaml_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {"openmemex.memory.model", "openmemex.memory.frontmatter"} <= set(lines)
    # Reading the notes of other tools is for `add --file` alone; no hook has a use for it.
    lacking = [line for line in lines if " lacks " in line]
    assert lacking == ["openmemex.memory.frontmatter_handler lacks frontmatter"]
    assert lines[-1] == "typer was kept out"

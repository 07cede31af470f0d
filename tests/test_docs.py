"""The docs are true: links, commands, settings, dependencies, decisions, and what must stand in no file."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from conftest import CHECKOUT

DOCS = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])
README = (CHECKOUT / "README.md").read_text("utf-8")
EVERY_COMMAND = {"--json", "--project", "--verbose", "--plain", "--help"}


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, by the rule that code hosts use."""
    headings = re.findall(r"^#+ +(.+?) *$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_lines(text: str) -> list[str]:
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


# --- links ---


@pytest.mark.parametrize("path", DOCS, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_links_lead_somewhere(path):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_headings_that_the_code_refers_to_exist():
    missing = []
    for source in (CHECKOUT / "openmemex").rglob("*.py"):
        for file, heading in re.findall(r'docs/([\w.-]+\.md)(?:, "([^"\n]+)")?', source.read_text("utf-8")):
            page = CHECKOUT / "docs" / file
            if not page.exists() or (
                heading and not re.search(rf"^#+ {re.escape(heading)}\b", page.read_text(), re.M)
            ):
                missing.append(f"{source.relative_to(CHECKOUT)}: docs/{file} {heading}".strip())
    assert missing == []


def test_every_page_is_reachable_from_the_readme():
    seen, queue = set(), [CHECKOUT / "README.md"]
    while queue:
        page = queue.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in re.findall(r"\]\(([^)\s#:]+)[^)]*\)", page.read_text("utf-8")):
            there = (page.parent / target).resolve()
            queue += (
                sorted(there.glob("*.md")) if there.is_dir() else [there] if there.suffix == ".md" else []
            )
    assert [str(p.relative_to(CHECKOUT)) for p in DOCS if p not in seen] == []


# --- the README ---


def test_the_readme_names_the_two_commands_and_they_exist():
    for command in ("python3 scripts/story.py", "python3 scripts/test.py"):
        assert command in code_lines(README)
        assert (CHECKOUT / command.split()[1]).is_file()
        assert f"scripts/{Path(command.split()[1]).name}" in (CHECKOUT / ".ci" / "run").read_text("utf-8")


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_the_readme_tour_works_as_written(git, make_repo, make_remote, clone, run_cli):
    tour = README[README.index("## Five minutes") : README.index("## Where things live")]
    lines = [line for line in code_lines(tour) if line.strip()]
    assert len(lines) >= 10
    repo = make_repo("project")
    teammate = clone(make_remote(repo), "teammate")
    teammates_data = {"OPEN_MEMEX_HOME": str(teammate.parent / "teammates-data")}
    place, env, memory_id, outputs = repo, {}, "", []
    for line in lines:
        program, *words = shlex.split(line)
        words = [memory_id if word == "ID" else word for word in words]
        if words[0] == "pull":
            place, env = teammate, teammates_data
        elif words[0] == "supersede":
            place, env = repo, {}
        if program == "git":
            git(*words, cwd=place)
            continue
        if words[0] == "forget":
            words.append("--yes")  # nobody is there to be asked
        done = run_cli(*words, cwd=place, env=env)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        outputs.append((line, done.stdout))
        if not memory_id:
            found = json.loads(run_cli("list", "--json", cwd=repo).stdout)["items"]
            memory_id = found[0]["id"]
    searches = [output for line, output in outputs if line.startswith("open-memex search")]
    assert len(searches) == 2
    assert all(memory_id in output for output in searches)


# --- commands ---


def leaf_commands() -> list[tuple[str, ...]]:
    """Every command of the program, groups followed down, from the program's own table."""
    import typer

    from openmemex.cli.app import app

    def walk(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            return [path]
        return [leaf for name in inner if not inner[name].hidden for leaf in walk(inner[name], (*path, name))]

    return walk(typer.main.get_command(app), ())


@pytest.fixture
def help_of(capsys):
    """The help of a command, in this process: what real processes print is tested beside the command line."""
    from openmemex.cli.fast import main

    def read(path: tuple[str, ...]) -> str:
        assert main([*path, "--help"]) == 0
        return capsys.readouterr().out

    return read


def documented_commands() -> dict[tuple[str, ...], str]:
    text = (CHECKOUT / "docs" / "commands.md").read_text("utf-8")
    parts = re.split(r"^#{2,3} open-memex (.+)$", text, flags=re.MULTILINE)
    return {tuple(parts[n].split()): parts[n + 1] for n in range(1, len(parts), 2)}


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def test_every_command_is_documented_and_no_other():
    assert sorted(documented_commands()) == sorted(leaf_commands())


def test_every_option_is_documented_and_no_other(help_of):
    differences = []
    for path, text in documented_commands().items():
        told = set(re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]*)", help_of(path), re.MULTILINE)) - EVERY_COMMAND
        rows = {
            option for row in re.findall(r"^\| (.+?) \|", text, re.MULTILINE) for option in options_in(row)
        }
        if told != rows:
            differences.append((path, sorted(told - rows), sorted(rows - told)))
    assert differences == []


def test_every_command_has_an_example_that_names_real_options(help_of):
    wrong = []
    for path, text in documented_commands().items():
        examples = [line for line in code_lines(text) if line.startswith("open-memex " + " ".join(path))]
        if not examples:
            wrong.append((path, "no example"))
        known = options_in(help_of(path))
        for line in examples:
            if not options_in(line.partition(" -- ")[0]) <= known:
                wrong.append((path, line))
    assert wrong == []


def test_help_of_every_command_holds_an_example_and_the_common_options(help_of):
    lacking = []
    for path in leaf_commands():
        told = help_of(path)
        if (
            f"open-memex {' '.join(path)}" not in told.partition("Example")[2]
            or not options_in(told) >= EVERY_COMMAND
        ):
            lacking.append(path)
    assert lacking == []


def documented_keys(text: str) -> set[str]:
    """The top-level keys of a document as the table writes it: `{a, b: [c], d: {e}}` has a, b and d."""
    inner = text[text.index("{") + 1 : text.rindex("}")]
    while re.search(r"[\[{][^\[\]{}]*[\]}]", inner):
        inner = re.sub(r"[\[{][^\[\]{}]*[\]}]", "", inner)
    return {part.partition(":")[0].strip() for part in inner.split(",")} - {""}


def test_documents_for_machines_have_the_documented_keys(make_repo, make_remote, clone, run_cli):
    text = (CHECKOUT / "docs" / "protocol.md").read_text("utf-8")
    memory = set(
        re.search(r"A \*\*memory\*\* in a list or hit is `([^`]+)`", text)[1].replace("\n", " ").split(", ")
    )
    repo = make_repo("project")
    make_remote(repo)
    added = json.loads(run_cli("add", "Deploys need the VPN", "--json", cwd=repo).stdout)
    hit = json.loads(run_cli("search", "vpn", "--json", cwd=repo).stdout)["hits"][0]
    assert set(hit) == memory | {"score", "lane", "age_days"}
    runs = {
        "add": added,
        "list": json.loads(run_cli("list", "--json", cwd=repo).stdout),
        "search": json.loads(run_cli("search", "vpn", "--json", cwd=repo).stdout),
        "show": json.loads(run_cli("show", added["id"], "--json", cwd=repo).stdout),
        "sync-status": json.loads(run_cli("sync-status", "--json", cwd=repo).stdout),
        "doctor": json.loads(run_cli("doctor", "--json", cwd=repo).stdout),
        "submit": json.loads(run_cli("submit", added["id"], "--json", cwd=repo).stdout),
    }
    runs["pull"] = json.loads(run_cli("pull", "--json", cwd=repo).stdout)
    runs["resolve"] = json.loads(run_cli("resolve", "--json", cwd=repo).stdout)
    runs["forget"] = json.loads(run_cli("forget", added["id"], "--yes", "--json", cwd=repo).stdout)
    rows = {
        name: row
        for names, row in re.findall(r"^\| (`[^|]+) \| (.+) \|$", text, re.MULTILINE)
        for name in re.findall(r"`([a-z-]+)`", names)
    }
    for name, document in runs.items():
        keys = documented_keys(rows[name]) | (memory if name == "show" else set())
        assert keys == set(document), name
    assert set(runs["list"]["items"][0]) == memory


# --- settings, dependencies ---


def test_every_setting_is_documented_with_its_default_and_no_other():
    from openmemex.setting_keys import KEYS

    text = (CHECKOUT / "docs" / "settings.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Za-z.]+)` \| (.+?) \| (.+?) \|", text, re.MULTILINE)
    shown = {name: (default, allowed) for name, default, allowed in rows}
    assert sorted(shown) == sorted(KEYS)
    for name, key in KEYS.items():
        default = list(key.default) if isinstance(key.default, tuple) else key.default
        text_of = default if isinstance(default, str) else json.dumps(default)
        assert shown[name][0].strip("`") == (text_of or "empty"), name
        for choice in key.choices:
            assert f"`{choice}`" in shown[name][1], name


def test_settings_that_nothing_reads_yet_are_marked_so_and_no_others():
    from openmemex.setting_keys import KEYS

    sources = [p for p in (CHECKOUT / "openmemex").rglob("*.py") if p.name != "settings.py"]
    code = "\n".join(path.read_text("utf-8") for path in sources)
    unread = {name for name, key in KEYS.items() if not re.search(rf"settings\.{key.attribute}\b", code)}
    text = (CHECKOUT / "docs" / "settings.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([A-Za-z.]+)` \|.*\*Later\*", text, re.MULTILINE)) == unread


def test_retired_settings_are_named():
    from openmemex.setting_keys import RETIRED

    text = (CHECKOUT / "docs" / "settings.md").read_text("utf-8")
    assert [name for name in RETIRED if f"`{name}`" not in text] == []


def test_variables_that_the_code_reads_are_documented():
    text = (CHECKOUT / "docs" / "settings.md").read_text("utf-8")
    read = set()
    for source in (CHECKOUT / "openmemex").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                read |= set(re.findall(r"\b(?:OPEN_MEMEX|MY_O_MEMORY)_[A-Z]+\b", node.value))
    # The fault points are the tests' own and stand in docs/testing.md.
    assert sorted(name for name in read - {"OPEN_MEMEX_FAULT"} if f"`{name}`" not in text) == []


def test_every_dependency_has_its_reason():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (CHECKOUT / "docs" / "dependencies.md").read_text("utf-8")
    installed, planned = text.split("## Planned")
    names = re.findall(r"[A-Za-z][\w-]*", "\n".join(re.findall(r"^\| ([^|]+) \|", installed, re.MULTILINE)))
    wanted = [
        *project["dependencies"],
        *(w for extra in project["optional-dependencies"].values() for w in extra),
    ]
    declared = {re.match(r"[\w-]+", word)[0] for word in wanted}
    assert set(names) - {"package"} == declared
    assert not {d for d in declared if re.search(rf"^\| {re.escape(d)} \|", planned, re.MULTILINE)}


# --- decisions, changelog ---


def test_decisions_are_numbered_without_gaps_and_say_what_they_must():
    records = sorted((CHECKOUT / "docs" / "adr").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text("utf-8")
        assert re.match(r"# \S", text), path.name
        assert re.search(r"^Date: \d{4}-\d\d-\d\d\. Status: (accepted|superseded by \d+)\.$", text, re.M), (
            path.name
        )
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings[:3] == ["Context", "Decision", "Consequences"], path.name


def test_the_changelog_has_a_place_for_the_next_change():
    text = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


# --- what must stand in no file ---


def tracked_files() -> list[Path]:
    done = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={CHECKOUT}",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0 and done.stdout:
        names = [CHECKOUT / name for name in done.stdout.split("\0") if name]
    else:  # an unpacked archive: the files that are its own
        own = ("openmemex", "tests", "scripts", "docs", "benchmarks", "fixtures", ".ci", ".github", ".ai")
        names = [*CHECKOUT.glob("*.*"), *(p for top in own for p in (CHECKOUT / top).rglob("*"))]
        names = [path for path in names if "__pycache__" not in path.parts]
    return sorted(path for path in names if path.is_file() and not path.is_symlink())


# Each put together here, so that this file does not hold what it forbids.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.])(?:/ro" + r"ot/|/wo" + r"rk/|/tm" + r"p/v/)[\w.-]",
    "a package index's host": r"pypi\."
    + r"org|pythonhosted\."
    + r"org|npmjs\."
    + r"(?:com|org)|deb\."
    + r"debian\.org",
    "a vendor's token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_" + r"pat_\w{40,}|xox[abprs]-[\w-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}|glpat-[\w-]{20,}|npm_[A-Za-z0-9]{36})\b",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE " + r"KEY-----",
    "a generated-by line": r"(?i)co-authored"
    + r"-by:|generated "
    + r"(?:with|by) \[?(?:claude|copilot|chatgpt|cursor|codex)",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what):
    pattern = re.compile(FORBIDDEN[what])
    found = []
    for path in tracked_files():
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(CHECKOUT)}:{number}")
    assert found == []


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a path of one machine", "see /wo" + "rk/main"),
        ("a path of one machine", "/ro" + "ot/.config"),
        ("a package index's host", "https://py" + "pi.org/simple"),
        ("a vendor's token", "gh" + "p_" + "a1B2" * 9),
        ("a private key", "-----BEGIN RSA PRIV" + "ATE KEY-----"),
        ("a generated-by line", "Co-Authored" + "-By: somebody"),
    ],
)
def test_each_forbidden_thing_would_be_seen(what, text):
    assert re.search(FORBIDDEN[what], text)


def test_ci_calls_itself_in_the_workflow():
    assert ".ci/run" in (CHECKOUT / ".github" / "workflows" / "ci.yml").read_text("utf-8")

"""The picture in docs/architecture.md, held: who may import whom, who may do what.

The rules are functions from one module's source to the lines that break them, so that the last tests here can
show each rule a source that does break it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "openmemex"

# A unit is a package or a single module right below `openmemex`. It may import units of a lower rank only.
RANKS = {
    "": 0,
    "errors": 0,
    "faults": 0,
    "jsonc": 0,
    "settings": 0,
    "setting_keys": 1,
    "settings_file": 2,
    "paths": 1,
    "memory": 1,
    "trust": 2,
    "git": 3,
    "store": 3,
    "index": 3,
    "life": 4,
    "results": 4,
    "kinds": 4,
    "workspace": 5,
    "selecting": 6,
    "then": 7,
    "branches": 6,
    "settling": 6,
    "checking": 7,
    "writing": 7,
    "sharing": 8,
    "operations": 9,
    "cli": 10,
    "__main__": 11,
}
SURFACES = {"cli", "__main__"}
HOOKS = "openmemex_hooks"  # the folder hooks/: a surface of its own, beside the command line
PURE = {"memory", "trust"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base", "shared"}

# Where a search begins. What these import when they are imported is on the hot path, and so on downwards.
HOT_ROOTS = (
    "openmemex.cli.fast",
    "openmemex.cli.plain",
    "openmemex.operations.search",
    "openmemex.workspace",
    "openmemex.settings",
    "openmemex.paths",
    "openmemex.memory.ids",
    "openmemex.git.light",
    "openmemex.store.homes",
    "openmemex.store.state",
    "openmemex.index.memory_index",
    "openmemex.index.query",
    "openmemex.index.ranking",
    "openmemex.index.segment",
)
# Cheap at start-up: built in, or loaded by `re`, `typing` or `sqlite3` anyway.
HOT_IMPORTS = frozenset(
    {"__future__", "sys", "os", "time", "re", "sqlite3", "unicodedata", "Stemmer", "typing", "collections"}
    | {"zlib", "signal", "errno", "stat", "math", "functools", "itertools", "operator", "contextlib", "enum"}
    | {"bisect", "heapq", "array", "struct", "binascii", "keyword", "copyreg", "types", "atexit"}
)
MAX_OPERATION_LINES = 300


class Import(NamedTuple):
    line: int
    name: str  # a module, or a module and a name in it: "openmemex.git.light", "openmemex.git.light.Site"
    when: str  # "import", "call" (inside a function) or "types" (under TYPE_CHECKING)


class Module(NamedTuple):
    name: str
    tree: ast.Module
    lines: int

    @property
    def unit(self) -> str:
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""


def module(name: str, source: str) -> Module:
    return Module(name, ast.parse(source), source.count("\n") + 1)


def modules() -> list[Module]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(CHECKOUT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(module(name, path.read_text(encoding="utf-8")))
    return found


def imports(tree: ast.Module, name: str = "") -> Iterator[Import]:
    def walk(node: ast.AST, when: str) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(child.lineno, alias.name, when) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    base = ".".join([*name.split(".")[: -child.level], *([base] if base else [])])
                yield from (Import(child.lineno, f"{base}.{alias.name}", when) for alias in child.names)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield from walk(child, "call" if when == "import" else when)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from walk(ast.Module(child.body, []), "types")
                yield from walk(ast.Module(child.orelse, []), when)
            else:
                yield from walk(child, when)

    return walk(tree, "import")


def unit_of(imported: str) -> str | None:
    """The unit that an imported name belongs to; None for a foreign one."""
    parts = imported.split(".")
    if parts[0] != "openmemex":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in RANKS else ""


def foreign(imported: str) -> str | None:
    top = imported.partition(".")[0]
    return None if top in ("openmemex", HOOKS) else top


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


# --- the rules ---


def imports_go_down(m: Module) -> Iterator[str]:
    for i in imports(m.tree, m.name):
        target = unit_of(i.name)
        if target is None or target in (m.unit, ""):
            continue
        if RANKS[target] >= RANKS.get(m.unit, 0):
            yield f"{m.name}:{i.line} imports {i.name}, which is not below it"


def every_unit_has_a_rank(m: Module) -> Iterator[str]:
    if m.unit not in RANKS:
        yield f"{m.name}: no layer is known for it; give it one in RANKS and in docs/architecture.md"


def only_the_command_line_knows_the_hooks(m: Module) -> Iterator[str]:
    if m.unit in SURFACES:
        return
    for i in imports(m.tree, m.name):
        if i.name.partition(".")[0] == HOOKS:
            yield f"{m.name}:{i.line} imports {i.name}"


def an_operation_imports_no_operation(m: Module) -> Iterator[str]:
    if m.unit != "operations" or m.name == "openmemex.operations":
        return
    for i in imports(m.tree, m.name):
        if unit_of(i.name) == "operations":
            yield f"{m.name}:{i.line} imports {i.name}; what two operations need moves down a layer"


def only_git_imports_pygit2(m: Module) -> Iterator[str]:
    for i in imports(m.tree, m.name):
        if foreign(i.name) in ("pygit2", "_pygit2") and m.unit != "git":
            yield f"{m.name}:{i.line} imports pygit2"


_STARTERS = {"run", "Popen", "call", "check_call", "check_output", "system", "popen", "getoutput"} | {
    f"{verb}{kind}" for verb in ("exec", "spawn") for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
}


def only_git_starts_git(m: Module) -> Iterator[str]:
    if m.unit == "git":
        return
    for i in imports(m.tree, m.name):
        # The command line starts the person's editor; nothing else has a reason to start a process.
        if foreign(i.name) in ("subprocess", "multiprocessing", "pty") and m.unit not in SURFACES:
            yield f"{m.name}:{i.line} imports {i.name}"
    for node in ast.walk(m.tree):
        if not isinstance(node, ast.Call) or called(node).split(".")[-1] not in _STARTERS:
            continue
        for argument in node.args[:2]:
            first = (
                argument.elts[0] if isinstance(argument, ast.List | ast.Tuple) and argument.elts else argument
            )
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                word = first.value.split(" ")[0].replace("\\", "/").rsplit("/", 1)[-1]
                if word in ("git", "git.exe"):
                    yield f"{m.name}:{node.lineno} starts git"


def only_the_index_imports_sqlite3(m: Module) -> Iterator[str]:
    for i in imports(m.tree, m.name):
        if foreign(i.name) in ("sqlite3", "_sqlite3") and m.unit != "index":
            yield f"{m.name}:{i.line} imports sqlite3"


def only_surfaces_print(m: Module) -> Iterator[str]:
    if m.unit in SURFACES:
        return
    # What runs only when a person starts this very file is a surface of its own.
    body = [n for n in m.tree.body if not (isinstance(n, ast.If) and "__name__" in ast.unparse(n.test))]
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.Call) and called(node) in ("print", "input"):
            yield f"{m.name}:{node.lineno} calls {called(node)}"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr", "sys.stdin"):
            yield f"{m.name}:{node.lineno} uses {ast.unparse(node)}"


def values_do_no_input_or_output(m: Module) -> Iterator[str]:
    if m.unit not in PURE:
        return
    for i in imports(m.tree, m.name):
        if foreign(i.name) in {
            "pathlib",
            "io",
            "shutil",
            "tempfile",
            "glob",
            "socket",
            "subprocess",
            "sqlite3",
        }:
            yield f"{m.name}:{i.line} imports {i.name}"
    for node in ast.walk(m.tree):
        if isinstance(node, ast.Call) and called(node) in (
            "open",
            "os.open",
            "os.stat",
            "os.getenv",
            "os.listdir",
        ):
            yield f"{m.name}:{node.lineno} calls {called(node)}"
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ":
            yield f"{m.name}:{node.lineno} reads the environment"


def names_say_what_is_inside(m: Module) -> Iterator[str]:
    for part in m.name.split(".")[1:]:
        if VAGUE_NAMES & set(part.strip("_").split("_")):
            yield f"{m.name}: the name {part} says nothing"


def an_operation_is_one_read(m: Module) -> Iterator[str]:
    if m.unit == "operations" and m.lines > MAX_OPERATION_LINES:
        yield f"{m.name}: {m.lines} lines, more than {MAX_OPERATION_LINES}"


RULES: tuple[Callable[[Module], Iterator[str]], ...] = (
    imports_go_down,
    every_unit_has_a_rank,
    only_the_command_line_knows_the_hooks,
    an_operation_imports_no_operation,
    only_git_imports_pygit2,
    only_git_starts_git,
    only_the_index_imports_sqlite3,
    only_surfaces_print,
    values_do_no_input_or_output,
    names_say_what_is_inside,
    an_operation_is_one_read,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_the_package_keeps_the_rule(rule):
    assert [broken for m in modules() for broken in rule(m)] == []


# --- the hot path ---


def hot_modules(all_modules: list[Module]) -> dict[str, str]:
    """Modules that are loaded before a search has begun, each with the one that pulls it in."""
    by_name = {m.name: m for m in all_modules}
    hot: dict[str, str] = {}
    queue = [(root, "") for root in HOT_ROOTS if root in by_name]
    while queue:
        name, because = queue.pop()
        if name in hot:
            continue
        hot[name] = because
        parts = name.split(".")
        queue += [(".".join(parts[:n]), name) for n in range(1, len(parts))]  # packages run their __init__
        for i in imports(by_name[name].tree, name):
            if i.when == "import":
                inner = i.name if i.name in by_name else i.name.rpartition(".")[0]
                if inner in by_name:
                    queue.append((inner, name))
    return hot


def hot_path_is_light(all_modules: list[Module]) -> Iterator[str]:
    by_name = {m.name: m for m in all_modules}
    for name, because in hot_modules(all_modules).items():
        for i in imports(by_name[name].tree, name):
            outside = foreign(i.name)
            if i.when == "import" and outside is not None and outside not in HOT_IMPORTS:
                pulled = f" (hot because of {because})" if because else ""
                yield f"{name}:{i.line} imports {outside} before it is needed{pulled}"


def test_the_hot_path_imports_nothing_heavy():
    assert list(hot_path_is_light(modules())) == []


def test_foreign_modules_are_declared_dependencies():
    import tomllib

    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = {word.split(">")[0].split("=")[0].strip().lower() for word in declared}
    provided_by = {"yaml": "pyyaml", "frontmatter": "python-frontmatter", "Stemmer": "pystemmer"}
    seen = {foreign(i.name) for m in modules() for i in imports(m.tree, m.name)} - {None}
    outside = {top for top in seen if top not in sys.stdlib_module_names}
    assert {provided_by.get(top, top).lower() for top in outside} <= names


# --- each rule can fail ---

BREAKS = [
    (imports_go_down, "openmemex.memory.x", "from openmemex.git.light import Site"),
    (imports_go_down, "openmemex.git.x", "def f():\n    import openmemex.store.files"),
    (imports_go_down, "openmemex.index.x", "from ..store import files"),
    (imports_go_down, "openmemex.settings", "from openmemex import paths"),
    (every_unit_has_a_rank, "openmemex.novelty.x", ""),
    (only_the_command_line_knows_the_hooks, "openmemex.git.x", "from openmemex_hooks import merge_driver"),
    (
        an_operation_imports_no_operation,
        "openmemex.operations.add",
        "from openmemex.operations import search",
    ),
    (an_operation_imports_no_operation, "openmemex.operations.add", "from .search import run"),
    (only_git_imports_pygit2, "openmemex.store.x", "def f():\n    from pygit2 import Repository"),
    (only_git_starts_git, "openmemex.operations.x", "import subprocess"),
    (only_git_starts_git, "openmemex.cli.x", "subprocess.run(['git', 'log'])"),
    (only_git_starts_git, "openmemex.cli.x", "os.system('git log')"),
    (only_git_starts_git, "openmemex.cli.x", "os.execvp('/usr/bin/git', args)"),
    (only_the_index_imports_sqlite3, "openmemex.workspace", "import sqlite3"),
    (only_surfaces_print, "openmemex.operations.x", "print('x')"),
    (only_surfaces_print, "openmemex.store.x", "import sys\nsys.stderr.write('x')"),
    (values_do_no_input_or_output, "openmemex.memory.x", "open('x')"),
    (values_do_no_input_or_output, "openmemex.trust.x", "import os\nos.environ.get('X')"),
    (names_say_what_is_inside, "openmemex.git.path_utils", ""),
    (an_operation_is_one_read, "openmemex.operations.x", "\n" * 301),
]


@pytest.mark.parametrize(("rule", "name", "source"), BREAKS)
def test_the_rule_sees_a_source_that_breaks_it(rule, name, source):
    assert len(list(rule(module(name, source)))) == 1


def test_the_hot_path_follows_imports_downwards():
    made = [
        module("openmemex", ""),
        module("openmemex.cli", ""),
        module("openmemex.cli.fast", "from openmemex.far import thing\ndef f():\n    import json"),
        module(
            "openmemex.far",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import logging\nimport yaml",
        ),
    ]
    assert list(hot_path_is_light(made)) == [
        "openmemex.far:4 imports yaml before it is needed (hot because of openmemex.cli.fast)"
    ]

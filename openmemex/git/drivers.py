"""This clone's configuration for merging and showing memories (git-config(1), "merge.<driver>.*"), kept safe.

git takes what a driver leaves for the merged file, whatever became of the driver: one that is missing, broken
or killed leaves our side alone, and the next `git add` loses the other. So the command that git is given
merges the lines with git itself wherever OpenMemex did not come to an end, and says "conflict" then.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from typing import Final, NamedTuple

from openmemex import faults
from openmemex.errors import Refused
from openmemex.git import attributes
from openmemex.git.attributes import Edit
from openmemex.git.process import Done
from openmemex.git.repository import Repository

DRIVER: Final = "merge.openmemex.driver"
TEXTCONV: Final = "diff.openmemex.textconv"
_NAMES: Final = ("open-memex", "openmemex")

# The exit codes 3 and 4 are the driver's own, see openmemex_hooks.merge_driver: 3, conflict and markers are
# in %A; 4, no memory, so git's own merge of lines is the right one. Every other one but 0: it never came to
# an end, and %A is ours as it was. `git merge-file` gives the number of conflicts, above 127 for what it
# can't merge (a NUL byte), 127 when there is no git: then both sides go into the file whole.
_MERGE: Final = (
    " merge-driver %O %A %B %P --from-config %L %S %X %Y || { s=$?; rm -f %A.openmemex; "
    "[ $s -eq 3 ] && exit 1; "
    '[ $s -eq 4 ] || echo "open-memex did not run, so lines are merged instead of fields:" %P >&2; '
    "git merge-file -q -L ours -L base -L theirs --marker-size=%L %A %O %B; m=$?; "
    "[ $m -lt 127 ] || { { printf '<<<<<<< ours\\n'; cat %A; printf '\\n=======\\n'; cat %B; "
    "printf '\\n>>>>>>> theirs\\n'; } >%A.openmemex && mv -f %A.openmemex %A; }; "
    "[ $s -eq 4 ] && [ $m -eq 0 ] && exit 0; exit 1; }"
)
# git puts ` "$@"` behind it. A diff must never fail because of how it is shown: then the file itself is.
_SHOW: Final = ' textconv "$1" 2>/dev/null || cat "$1"; :'
_FIXED: Final = {
    "merge.openmemex.name": "OpenMemex: merge memories field by field",
    "diff.openmemex.xfuncname": "^(#{1,6}[ \\t].*)$",
}

# Adjacent lines on both sides: git's merge of lines is a conflict, the merge of fields is none.
_TRIAL: Final = {
    "base": ("fact", "normal"),
    "ours": ("gotcha", "normal"),
    "theirs": ("fact", "high"),
}


class Value(NamedTuple):
    """What becomes of one key of the clone's own configuration. `action` as in attributes.Edit."""

    key: str
    action: str
    value: str


class Plan(NamedTuple):
    """Everything that a setup or its removal does, decided before any of it is done."""

    edit: Edit
    values: tuple[Value, ...]
    notices: tuple[str, ...]
    committed: bool
    """Whether HEAD has the attributes file as it will be."""


class Health(NamedTuple):
    """How the merging of memories stands in this clone: `fix` is what mends it, or sets it up."""

    ok: bool
    text: str
    fix: str = ""


def program(environ: Mapping[str, str] = os.environ) -> str:
    """How a shell starts this program: by its name where it is on the PATH, else by its absolute path."""
    if shutil.which(_NAMES[0], path=environ.get("PATH")):
        return _NAMES[0]
    ending = ".exe" if os.name == "nt" else ""
    started = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    near = os.path.join(sysconfig.get_path("scripts"), _NAMES[0] + ending)
    for path in (started, near):
        named = os.path.basename(path).removesuffix(".exe") in _NAMES
        if named and os.path.isfile(path) and os.access(path, os.X_OK):
            return quoted(path)
    # -P: a folder `openmemex` of the repository that git works in is not this program.
    return f"{quoted(sys.executable)} -P -m openmemex"


def commands(named: str) -> dict[str, str]:
    """Every key of the configuration with its value, for the program that a shell starts as `named`."""
    return {
        "merge.openmemex.name": _FIXED["merge.openmemex.name"],
        # git fills in what stands behind a percent sign.
        DRIVER: named.replace("%", "%%") + _MERGE,
        TEXTCONV: named + _SHOW,
        "diff.openmemex.xfuncname": _FIXED["diff.openmemex.xfuncname"],
    }


def plan_setup(repository: Repository, folder: str, *, force: bool) -> Plan:
    """What has to be done so that memories in `folder` (from the top) merge by field in this clone.

    Raises Refused for a bare repository, and where the attributes file can't be written or taken by git.
    """
    _refuse_bare(repository)
    edit = attributes.with_line(repository, folder, force=force)
    local = _local(repository)
    values, notices = [], []
    for key, wanted in commands(program(repository.environ)).items():
        held = local.get(key, [])
        if held == [wanted]:
            action = "unchanged"
        elif not held:
            action = "added"
        elif force or all(_is_ours(key, value) for value in held):
            action = "changed"
        else:
            action = "kept"
            notices.append(f"{key} was set by hand and stays as it is; --force sets it anew")
        values.append(Value(key, action, held[-1] if action == "kept" else wanted))
    if edit.action == "kept":
        notices.append(f"the line in {edit.path} was changed by hand and stays; --force writes it anew")
    notices += _overruled(repository, folder, {value.key: value.value for value in values})
    return Plan(edit, tuple(values), tuple(notices), _committed(repository, edit))


def plan_removal(repository: Repository, folder: str, *, force: bool) -> Plan:
    """What takes a setup out of this clone and its attributes file again, and nothing else.

    Raises Refused for a bare repository and an attributes file that is none.
    """
    _refuse_bare(repository)
    edit = attributes.without_line(repository, folder, force=force)
    local = _local(repository)
    values, notices = [], []
    for key in commands(""):
        held = local.get(key, [])
        if not held:
            values.append(Value(key, "absent", ""))
        elif force or all(_is_ours(key, value) for value in held):
            values.append(Value(key, "removed", held[-1]))
        else:
            values.append(Value(key, "kept", held[-1]))
            notices.append(f"{key} was set by hand and stays as it is; --force removes it")
    if edit.action == "kept":
        notices.append(f"the line in {edit.path} was changed by hand and stays; --force removes it")
    return Plan(edit, tuple(values), tuple(notices), _committed(repository, edit))


def carry_out(repository: Repository, plan: Plan) -> None:
    """Do what the plan says: first the clone's configuration, which harms nobody alone, then the file.

    Taking out goes the other way round: no attribute may ask for a driver that is not there any more.
    """
    removing = any(value.action == "removed" for value in plan.values) or plan.edit.action == "removed"
    if removing:
        attributes.carry_out(repository, plan.edit)
    for value in plan.values:
        if value.action in ("added", "changed"):
            repository.git.run("config", "--local", "--replace-all", value.key, value.value, writes=True)
        elif value.action == "removed":
            repository.git.run("config", "--local", "--unset-all", value.key, allow=(0, 5), writes=True)
        faults.reached("drivers.configured")
    if not removing:
        attributes.carry_out(repository, plan.edit)


def commit_commands(root: str, path: str, message: str, cwd: str) -> tuple[str, ...]:
    """The commands that commit `path` (from the top `root`) alone, as they work in the folder `cwd`."""
    here = os.path.realpath(cwd)
    if here == root or here.startswith(root.rstrip(os.sep) + os.sep):
        git, named = "git", os.path.relpath(os.path.join(root, path), here).replace(os.sep, "/")
    else:
        git, named = f"git -C {shlex.quote(root)}", path
    if named.startswith(":") or any(char in named for char in "*?[\\"):
        named = f":(top,literal){path}"  # no pattern for git to match other files with
    named = shlex.quote(named)
    return f"{git} add -- {named}", f"{git} commit -m {shlex.quote(message)} -- {named}"


def health(repository: Repository, folder: str) -> Health:
    """Whether concurrent edits of memories in `folder` (from the top) merge by field in this clone."""
    merge = attributes.effective(repository, folder)["merge"]
    here, there = attributes.promised(repository, folder)
    command = repository.config.get(DRIVER)
    path = f"{folder}/{attributes.NAME}"
    if merge == "union":
        return Health(
            False,
            f"git joins memories line by line (merge=union{_where(repository, folder)}), doubling fields",
            f"take it out; `git check-attr merge -- {shlex.quote(folder)}/x.md` shows whether it is gone",
        )
    if merge != "openmemex" and here:
        return Health(
            False,
            f"memories should merge by field, but git takes merge={merge}{_where(repository, folder)}",
            f"take that rule out; `git check-attr merge -- {shlex.quote(folder)}/x.md` then says openmemex",
        )
    if merge != "openmemex" and not there:
        shown = "" if merge == "unspecified" else f" (merge={merge})"
        told = f"memories merge as plain text here{shown}; `open-memex init --git` lets them merge by field"
        return Health(True, told, "open-memex init --git")
    if not command:
        return Health(
            False,
            "memories ask for the merge driver, but this clone has not set it up: they merge as plain text",
            "open-memex init --git",
        )
    if merge != "openmemex":
        return Health(
            False,
            f"{path} is in HEAD, but not in this work tree: memories merge as plain text here",
            f"bring it back (git restore -- {shlex.quote(path)}), or commit that it is gone or moved",
        )
    wrong = _try(repository, command)
    if wrong:
        again = "open-memex init --git" + ("" if _is_ours(DRIVER, command) else " --force")
        return Health(False, f"the merge driver does not work: {wrong}", again)
    for name, value in attributes.own_rules(repository, folder).items():
        return Health(
            False,
            f"git stores or shows memories otherwise here: .git/info/attributes says {name}={value}",
            "take that rule out of .git/info/attributes",
        )
    return Health(True, "memories merge field by field")


def _try(repository: Repository, command: str) -> str:
    """What is wrong with the driver, found out by letting git's own shell run it on three small files."""
    with tempfile.TemporaryDirectory(prefix="open-memex-") as folder:
        for side, (kind, importance) in _TRIAL.items():
            text = (
                f"---\nid: {attributes.SAMPLE[:-3]}\ntype: {kind}\nimportance: {importance}\n---\nA trial.\n"
            )
            with open(os.path.join(folder, side), "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        filled = {"O": "base", "A": "ours", "B": "theirs", "P": attributes.SAMPLE, "L": "7", "%": "%"}
        line = re.sub("%(.)", lambda found: filled.get(found[1], found[0]), command)
        done = _in_shell(repository, f"cd {quoted(folder)} && {line}")
        with open(os.path.join(folder, "ours"), encoding="utf-8", errors="replace") as file:
            merged = file.read()
    if done.code == 0 and "type: gotcha\nimportance: high\n" in merged:
        return ""
    named = command.partition(" merge-driver ")[0]
    missing = not shutil.which(shlex.split(named)[0]) if _parts(named) else False
    if missing:
        return f"{named} can't be found or started"
    return f"{named} did not merge two changes of different fields (exit code {done.code})"


def _in_shell(repository: Repository, line: str) -> Done:
    """Run `line` in the shell, and with the PATH, that git gives to drivers: as an alias (git-config(1))."""
    return repository.git.run(
        *("-c", f"alias.openmemex-trial=!{line}", "openmemex-trial"), check=False, writes=True
    )


def _parts(text: str) -> bool:
    try:
        return bool(shlex.split(text))
    except ValueError:
        return False


def _where(repository: Repository, folder: str) -> str:
    """Where the rule stands that wins, as far as can be told."""
    if "merge" in attributes.own_rules(repository, folder):
        return ", as .git/info/attributes says"
    return f", as a later line of {folder}/{attributes.NAME} or another file says"


def _overruled(repository: Repository, folder: str, planned: Mapping[str, str]) -> list[str]:
    """What would still win over the setup: rules of this clone alone, values of another level."""
    told = [
        f".git/info/attributes says {name}={value} for memories, which wins; take it out there"
        for name, value in attributes.own_rules(repository, folder).items()
    ]
    if not repository.config.flag("extensions.worktreeconfig"):
        return told
    for key in (DRIVER, TEXTCONV):
        here = repository.git.run("config", "--worktree", "--get", key, check=False)
        if here.code == 0 and here.text.removesuffix("\n") != planned[key]:
            told.append(f"{key} is set for this work tree alone (git config --worktree), which wins")
    return told


def _local(repository: Repository) -> dict[str, list[str]]:
    """The clone's own configuration, which all its work trees share: key to values."""
    # Of a repository that it does not trust `git config` would say that it is none.
    repository.git.run("rev-parse", "--git-dir")
    found: dict[str, list[str]] = {}
    for entry in repository.git.run("config", "--local", "--list", "-z", "--no-includes").fields:
        key, _, value = entry.partition("\n")
        found.setdefault(key, []).append(value)
    return found


def _is_ours(key: str, value: str) -> bool:
    """Whether a value was written here, for whatever place the program was in."""
    if key in _FIXED:
        return value == _FIXED[key]
    tail = _MERGE if key == DRIVER else _SHOW
    return value.endswith(tail) and _program_alone(value.removesuffix(tail))


def _program_alone(text: str) -> bool:
    return text == _NAMES[0] or text.startswith("'")


def _committed(repository: Repository, edit: Edit) -> bool:
    """Whether HEAD holds the file as it will be; its blob has bare line feeds."""
    head = attributes.in_head(repository, edit.path)
    return _plain(head) == _plain(edit.after)


def _plain(text: bytes | None) -> bytes | None:
    return None if text is None else text.replace(b"\r\n", b"\n")


def quoted(path: str) -> str:
    """`path` for a shell, always in quotes."""
    return "'" + path.replace("'", "'\\''") + "'"


def _refuse_bare(repository: Repository) -> None:
    if repository.site.bare:
        raise Refused(
            f"{repository.site.git_dir} is a bare repository: there is no work tree to set up",
            "Run this in a clone, or in a linked work tree (`git worktree add`).",
        )

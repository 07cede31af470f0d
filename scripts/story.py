"""Watch OpenMemex do its main job: what one developer learned is found by another, through git.

    python3 scripts/story.py            makes an environment, tells the story, removes its folder
    python3 scripts/story.py --keep     leaves the story's folder to look around in

Two people, two clones of one bare remote that is made from this project's own history, real text: the
project's own decision records. Every command is the installed `open-memex` or `git`; after each, the story
shows what changed on disk and in git, and checks that it is what it should be. The first thing that is not
ends the story with exit code 1.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import environment

WIDTH = 100
MEMORY_FOLDER = ".ai/open-memex"
# A word that is nowhere else: this file's own text is in the history that the story is played on.
MARK = "heron" + "".join(random.choices("abcdefghijklmnop", k=10))
PERSONAL = f"My own habit, for nobody else: reviews before nine, and nobody moves my {MARK} mug."
PERSONAL_QUERY = f"who moved the {MARK} mug?"
REF_FORMAT = "%(if)%(symref)%(then)%(else)%(refname) %(objectname:short)%(end)"
# SQLite's and the locks' own doings, not what a command was asked to do.
UNTOLD = (".db-wal", ".db-shm", ".lock")


class NotAsTold(Exception):
    """Something is not as the story says it is."""


def expect(true: bool, text: str) -> None:
    """Say that `text` holds, or end the story."""
    if not true:
        raise NotAsTold(text)
    _print_wrapped(text, "  checked  ", "           ")


class State:
    """What a command may change: files, refs, and what git says of the work tree."""

    def __init__(self, files: dict[Path, bytes], refs: dict[str, str], status: list[str]) -> None:
        self.files = files
        self.refs = refs
        self.status = status


class Stage:
    """The folder that the story plays in, and the program that it is about."""

    def __init__(self, folder: Path, ready: environment.Environment) -> None:
        self.folder = folder
        self.commands = ready.commands
        self.program = ready.command("open-memex")
        self.remote = folder / "open-memex.git"

    def short(self, text: str) -> str:
        """`text` with the long name of the story's folder cut down to STORY."""
        return text.replace(str(self.folder), "STORY")


class Person:
    """Somebody with a home, a git identity, a data root and a clone, all of their own."""

    def __init__(self, name: str, stage: Stage) -> None:
        self.name = name
        self.stage = stage
        self.home = stage.folder / name.lower()
        self.clone = self.home / "project"
        self.data = self.home / "data"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(
            f"[user]\n\tname = {name}\n\temail = {name.lower()}@example.org\n"
            "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[advice]\n\tdetachedHead = false\n"
            # The checkout may belong to somebody else than the one who runs the story.
            f"[safe]\n\tdirectory = {environment.CHECKOUT}\n\tdirectory = {environment.CHECKOUT / '.git'}\n",
            encoding="utf-8",
        )

    @property
    def environ(self) -> dict[str, str]:
        """Variables that let this person's processes see this person's things only."""
        kept = {
            name: value
            for name, value in environment.clean_environ().items()
            if not re.match(
                r"GIT_|OPEN_MEMEX_|MY_O_MEMORY_|XDG_|LC_|LANG|EDITOR|VISUAL|.*_PROJECT_DIR$", name
            )
        }
        return {
            **kept,
            "PATH": f"{self.stage.commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "OPEN_MEMEX_HOME": str(self.data),
            "OPEN_MEMEX_CONFIG": str(self.home / "config.jsonc"),
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER": "cat",
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": str(WIDTH - 4),
        }

    def quietly(self, *command: str, cwd: Path | None = None) -> str:
        """Run a command that only looks, and give back its output; it must succeed."""
        done = self._run(command, cwd)
        if done.returncode:
            raise NotAsTold(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def does(self, *command: str) -> str:
        """Run a command of the story; show it, its output and what it changed. It must succeed."""
        before = self._state()
        done = self._run(command, None)
        shown = " ".join(f'"{word}"' if re.search(r"[\s*]", word) else word for word in command)
        _print_wrapped(self.stage.short(shown), f"{self.name}$ ", "      ", file_like=True)
        for line in (done.stdout + done.stderr).splitlines():
            _print_quoted(self.stage.short(line))
        if done.returncode:
            raise NotAsTold(f"the command ended with exit code {done.returncode}")
        self._tell_changes(before, self._state())
        return done.stdout

    def finds(self, query: str) -> dict[str, dict[str, object]]:
        """What a search finds for this person, by id, from the answer for machines."""
        answer = json.loads(self.quietly("open-memex", "search", query, "--json", "--limit", "20"))
        return {str(hit["id"]): hit for hit in answer["hits"]}

    def _run(self, command: tuple[str, ...], cwd: Path | None) -> subprocess.CompletedProcess[str]:
        program = str(self.stage.program) if command[0] == "open-memex" else command[0]
        return subprocess.run(
            [program, *command[1:]],
            cwd=cwd or self.clone,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=300,
        )

    def _state(self) -> State:
        return State(
            files={**_files(self.data), **_files(self.clone / MEMORY_FOLDER)},
            refs=dict(line.split() for line in self._git_lines("for-each-ref", f"--format={REF_FORMAT}")),
            status=self._git_lines("status", "--short", "--untracked-files=all"),
        )

    def _git_lines(self, *words: str) -> list[str]:
        return [line for line in self.quietly("git", *words).splitlines() if line]

    def _tell_changes(self, before: State, after: State) -> None:
        told = []
        for path in sorted({*before.files, *after.files}):
            old, new = before.files.get(path), after.files.get(path)
            if old != new:
                sign = "+" if old is None else "-" if new is None else "~"
                size = f"  {len(new):,} bytes" if new is not None else ""
                told.append(("disk", f"{sign} {path.relative_to(self.home)}{size}"))
        for ref in sorted({*before.refs, *after.refs}):
            was, now = before.refs.get(ref, "nothing"), after.refs.get(ref, "nothing")
            if was != now:
                told.append(("git", f"{ref}: {was} -> {now}"))
        if before.status != after.status:
            told.append(("git", "status before: " + (" ; ".join(before.status) or "clean")))
            told.append(("git", "status now: " + (" ; ".join(after.status) or "clean")))
        for kind, text in told or [("disk", "nothing changed, neither on disk nor in git")]:
            print(_fit(f"  {kind:<4} {text}", WIDTH))


def _files(folder: Path) -> dict[Path, bytes]:
    if not folder.is_dir():
        return {}
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.endswith(UNTOLD)
    }


def _fit(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."


def _print_quoted(line: str) -> None:
    indent = "  | " + line[: len(line) - len(line.lstrip())]
    hanging = indent + ("   " if re.match(r"\s*\d+\. ", line) else "")
    lines = textwrap.wrap(
        line.strip(), WIDTH, initial_indent=indent, subsequent_indent=hanging, break_on_hyphens=False
    )
    print("\n".join(lines) or "  |")


def _print_wrapped(text: str, first: str, rest: str, *, file_like: bool = False) -> None:
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=not file_like,
        break_on_hyphens=False,
    )
    print("\n".join(lines), flush=True)


def _chapter(number: int, title: str, text: str) -> None:
    print(f"\n{number}. {title}\n" + "-" * (len(title) + 3))
    _print_wrapped(text, "", "")
    print(flush=True)


def _make_remote(stage: Stage, person: Person) -> None:
    """A bare remote from this checkout's history, or from its files when it has none."""
    checkout = environment.CHECKOUT
    try:
        head = person.quietly("git", "rev-parse", "HEAD", cwd=checkout).strip()
        top = Path(person.quietly("git", "rev-parse", "--show-toplevel", cwd=checkout).strip())
        has_history = top.resolve() == checkout
    except NotAsTold:
        has_history = False
    if has_history:
        source = str(checkout)
    else:
        print("This copy of the project has no git history, so the story makes one from its files.")
        made = stage.folder / "made"
        ignored = shutil.ignore_patterns(".venv*", "__pycache__", ".git", ".*_cache", "build", "*.egg-info")
        shutil.copytree(checkout, made, ignore=ignored, symlinks=True)
        for words in (
            ("init", "-q", "-b", "main"),
            ("add", "-A"),
            ("commit", "-q", "-m", "The whole project"),
        ):
            person.quietly("git", *words, cwd=made)
        head = person.quietly("git", "rev-parse", "HEAD", cwd=made).strip()
        source = str(made)
    person.quietly("git", "clone", "-q", "--bare", "--no-local", source, str(stage.remote), cwd=stage.folder)
    # Whatever the checkout has checked out (a branch, or none in CI), the team of the story works on main.
    person.quietly("git", "update-ref", "refs/heads/main", head, cwd=stage.remote)
    person.quietly("git", "symbolic-ref", "HEAD", "refs/heads/main", cwd=stage.remote)
    count = person.quietly("git", "rev-list", "--count", "main", cwd=stage.remote).strip()
    print(f"Remote: STORY/open-memex.git, a bare repository with {count} commits of this project on main.")


def _clone(person: Person, remote: Path) -> None:
    person.quietly("git", "clone", "-q", str(remote), str(person.clone), cwd=person.home)
    print(f"{person.name}: STORY/{person.home.name}, with the clone in project/ and the data root in data/")


def _records(clone: Path) -> list[tuple[Path, str]]:
    """The decision records: path in the clone, and the title that each begins with."""
    found = []
    for path in sorted((clone / "docs" / "adr").glob("[0-9]*.md")):
        title = re.search(r"^# +(?:\d+[.:]? +)?(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if title:
            found.append((path, title[1].strip()))
    return found


def _to_remember(person: Person, records: list[tuple[Path, str]]) -> list[tuple[str, str, str]]:
    """Two records that the repository does not remember yet: file to read, place in the repository, title.

    A repository that remembers them all gets two with a line of the person's own on top: the same text twice
    would not be written.
    """
    known = [raw.decode("utf-8") for raw in _files(person.clone / MEMORY_FOLDER).values()]
    chosen: list[tuple[str, str, str]] = []
    for new_only in (True, False):
        for record, title in records:
            text = record.read_text(encoding="utf-8")
            place = record.relative_to(person.clone).as_posix()
            is_known = any(text.strip() in memory for memory in known)
            if len(chosen) == 2 or is_known == new_only:
                continue
            file = place
            if is_known:
                own = person.home / record.name
                own.write_text(
                    f"{person.name} says it again, on the day of this story.\n\n{text}", encoding="utf-8"
                )
                file = f"../{own.name}"
            chosen.append((file, place, title))
    return chosen


def _show_file(path: Path) -> None:
    front, fence, body = path.read_text(encoding="utf-8").partition("\n---\n")
    print("  The file:")
    for line in [*(front + fence).splitlines(), *body.splitlines()[:3], "..."]:
        _print_quoted(line)


def _new_memory(person: Person, before: set[Path]) -> str:
    made = {path.stem for path in _files(person.data) if path.suffix == ".md"} - {p.stem for p in before}
    if len(made) != 1:
        raise NotAsTold(f"one new memory file was expected, {len(made)} came: {sorted(made)}")
    return made.pop()


def _holds(repository: Path, text: str, person: Person) -> bool:
    """Whether any object of a repository holds `text`, whether or not anything still points to it."""
    needle = text.encode()
    done = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"],
        cwd=repository,
        env=person.environ,
        capture_output=True,
    )
    if done.returncode or not done.stdout:
        raise NotAsTold(f"the objects of {repository} can't be read: {done.stderr.decode(errors='replace')}")
    return needle in done.stdout


def tell(stage: Stage) -> None:
    """The story, from top to bottom. Raises NotAsTold."""
    mina, jonas = Person("Mina", stage), Person("Jonas", stage)

    _chapter(1, "The stage", "A remote, two people, two clones. STORY stands for the folder they live in:")
    print(f"STORY = {stage.folder}")
    _make_remote(stage, mina)
    for person in (mina, jonas):
        _clone(person, stage.remote)
    records = _records(mina.clone)
    expect(len(records) >= 2, f"the project brings {len(records)} decision records to remember")

    _chapter(
        2,
        "Mina remembers",
        "She saves two of the project's decision records, and one thing that is hers alone. Each is one "
        "Markdown file on her computer; git knows nothing of them yet.",
    )
    told: list[tuple[str, str]] = []
    for text_file, place, title in _to_remember(mina, records):
        before = set(_files(mina.data))
        mina.does("open-memex", "add", "--file", text_file, "--type", "decision", "--ref", place)
        memory_id = _new_memory(mina, before)
        if not told:
            _show_file(next(path for path in _files(mina.data) if path.stem == memory_id))
        told.append((memory_id, title))
        print()
    before = set(_files(mina.data))
    mina.does("open-memex", "add", PERSONAL, "--scope", "personal")
    personal_id = _new_memory(mina, before)
    holders = [
        path for path, raw in _files(mina.home).items() if MARK.encode() in raw and path.suffix == ".md"
    ]
    expect(
        [path.stem for path in holders] == [personal_id], "one file of hers holds that text, in her data root"
    )
    expect(not mina.quietly("git", "status", "--short"), "git sees no change in Mina's clone")

    _chapter(
        3, "Mina finds it", "A search reads the files that are new and asks the index. No server, no network."
    )
    for memory_id, title in told:
        mina.does("open-memex", "search", title)
        expect(memory_id in list(mina.finds(title))[:3], f"{memory_id} is among the first three hits")
        print()
    expect(personal_id in mina.finds(PERSONAL_QUERY), "she finds what is hers alone as well")
    mina.does("open-memex", "status")
    expect(
        not set(dict(told)) & set(jonas.finds(told[0][1])),
        "Jonas does not find it: it never left her computer",
    )

    _chapter(
        4,
        "Mina submits the two records",
        "She has other work under way: one staged change and one that is not. The commit holds the two "
        "memories and nothing else; her own changes stay exactly as they are.",
    )
    with (mina.clone / "README.md").open("a", encoding="utf-8") as readme:
        readme.write("\nA change that Mina has staged.\n")
    mina.quietly("git", "add", "README.md")
    (mina.clone / "notes.txt").write_text("Not for any commit.\n", encoding="utf-8")
    staged = mina.quietly("git", "diff", "--cached", "--binary")
    mina.does("open-memex", "submit", *dict(told))
    mina.does("git", "show", "--stat", "--format=%h %an <%ae>%n%n%B", "HEAD")
    named = mina.quietly("git", "show", "--name-only", "--format=", "HEAD").split()
    wanted = sorted(f"{MEMORY_FOLDER}/{memory_id}.md" for memory_id, _ in told)
    expect(sorted(named) == wanted, "the commit names the two memory files and no other file")
    expect(mina.quietly("git", "diff", "--cached", "--binary") == staged, "her staged change is as it was")
    status = mina.quietly("git", "status", "--short").splitlines()
    expect(status == ["M  README.md", "?? notes.txt"], "git status shows her two changes and nothing else")

    _chapter(5, "Mina pushes", "OpenMemex never pushes by itself: this is Mina's own git push.")
    mina.does("git", "push", "--quiet", "origin", "main")
    tip = mina.quietly("git", "rev-parse", "HEAD").strip()
    there = mina.quietly("git", "rev-parse", "main", cwd=stage.remote).strip()
    expect(there == tip, "the remote's main is Mina's commit")
    expect(_holds(stage.remote, told[0][0], mina), f"the remote holds {told[0][0]}")
    expect(
        not _holds(stage.remote, MARK, mina), "no object of the remote holds anything of the personal memory"
    )
    expect(not _holds(mina.clone, MARK, mina), "no object of Mina's clone does either")

    _chapter(6, "Jonas pulls", "Fetch and fast-forward, with a receipt of what came.")
    jonas.does("open-memex", "pull")
    jonas.does("git", "log", "-1", "--stat", "--format=%h %an: %s")
    expect(jonas.quietly("git", "rev-parse", "HEAD").strip() == tip, "Jonas stands on Mina's commit")

    _chapter(7, "Jonas finds it", "The same words, another person, another clone.")
    for memory_id, title in told:
        jonas.does("open-memex", "search", title)
        expect(
            memory_id in list(jonas.finds(title))[:3], f"{memory_id}, Mina's, is among the first three hits"
        )
        print()
    jonas.does("open-memex", "show", told[0][0])
    expect(personal_id not in jonas.finds(PERSONAL_QUERY), "what was Mina's alone, Jonas does not find")
    expect(personal_id in mina.finds(PERSONAL_QUERY), "Mina still does")


def main(arguments: list[str]) -> int:
    """Make the environment and tell the story. Returns the exit code."""
    parser = argparse.ArgumentParser(description="OpenMemex's main job, as a story one can watch.")
    parser.add_argument("--keep", action="store_true", help="leave the story's folder where it is")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="memex-story-")).resolve()
    try:
        ready = environment.ensure()
        tell(Stage(folder, ready))
    except environment.Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    except NotAsTold as failure:
        print(f"\nNOT AS TOLD: {str(failure).replace(str(folder), 'STORY')}", file=sys.stderr)
        return 1
    else:
        print("\nThe story went as told: remembered, found, committed, pushed, pulled, found by a teammate.")
        return 0
    finally:
        if options.keep:
            print(f"Kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

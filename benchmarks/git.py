"""What git work costs beside plain git: `python benchmarks/git.py FOLDER --files 1000 50000`.

In FOLDER it makes, once for each size, a repository by `git fast-import`: so many files, a history in which
one commit in twenty changes one of 1,000 memories. Then each round runs ours and the plain git commands that
do the same, one after the other, as whole processes; the medians are printed as Markdown tables, in CPU time
(with all children) and on the clock. From ours the product's own start-up is taken off: that of a process
that loads the modules which this very command loads, and the command line's definition, and then ends.

Ratios are ours / theirs. On a busy machine believe the CPU time.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from openmemex.git.provider import GitProvider  # noqa: E402
from openmemex.memory import frontmatter  # noqa: E402
from openmemex.memory.ids import new_id  # noqa: E402
from openmemex.memory.model import Memory, now_text  # noqa: E402
from openmemex.store import homes  # noqa: E402

MEMORY_DIR = ".ai/open-memex"
MEMORIES = 1000
CONFLICTS = 100
ORIGIN = "https://example.org/team/benchmark.git"
PRODUCT = (sys.executable, "-m", "openmemex")
# What the rows do that ask the provider itself; argv: mode, folder, revision.
ASK = f"""
import sys
from openmemex.git.provider import GitProvider
mode, folder, rev = sys.argv[1:]
if mode != "status":
    import pygit2
if mode == "read":
    here = GitProvider.open(folder)
    size = sum(len(raw) for _, raw in here.blobs(here.entries(rev, "{MEMORY_DIR}").values()))
    assert size > 1000
elif mode == "status":
    print(len(GitProvider.open(folder).folder_status("{MEMORY_DIR}")))
"""


# What a start-up is: every module that the names on stdin mean, and the definition of the command line.
LOAD = """
import importlib, sys
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name)
    except ImportError:
        pass
if "openmemex.cli.app" in sys.modules:
    import typer.main
    typer.main.get_command(sys.modules["openmemex.cli.app"].app)
"""


class Cost(NamedTuple):
    """Seconds of CPU time, children included, and on the clock."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """One comparison: the medians of ours (whole), of its start-up, and of theirs."""

    name: str
    whole: Cost
    off: Cost
    theirs: Cost


class Place:
    """One repository with its own home and data root, and how processes run in it."""

    def __init__(self, folder: Path, files: int, commits: int) -> None:
        self.repo = folder / f"files-{files}-commits-{commits}"
        self.data = folder / "data"
        home = folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        (home / ".gitconfig").write_text(
            "[user]\n\tname = Bench\n\temail = bench@example.org\n[gc]\n\tauto = 0\n"
            "[maintenance]\n\tauto = false\n[advice]\n\tmergeConflict = false\n",
            encoding="utf-8",
        )
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
        self.env = {
            **kept,
            "HOME": str(home),
            "OPEN_MEMEX_HOME": str(self.data),
            "OPEN_MEMEX_CONFIG": str(home / "config.jsonc"),
            "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            # Compiled as an installed program is, whatever the surroundings say.
            "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
        }
        if not (self.repo / ".git" / "made").exists():
            shutil.rmtree(self.repo, ignore_errors=True)
            make(self, files, commits)
        self.ids = (self.repo / ".git" / "made").read_text(encoding="utf-8").split()
        # What an earlier run committed would make the memory folder larger each time.
        self.git("reset", "-q", "--hard", "made")
        shutil.rmtree(self.data, ignore_errors=True)

    def run(self, *words: str, stdin: bytes = b"", allow: Sequence[int] = (0,)) -> bytes:
        """Run one process in the repository; its output. Fails loudly on any other exit code."""
        done = subprocess.run(words, cwd=self.repo, env=self.env, input=stdin, capture_output=True)
        if done.returncode not in allow:
            told = done.stderr.decode("utf-8", "replace")
            raise SystemExit(f"{' '.join(words[:6])}: exit {done.returncode}\n{told}")
        return done.stdout

    def git(self, *words: str, stdin: bytes = b"", allow: Sequence[int] = (0,)) -> str:
        """Run git; its output as text."""
        return self.run("git", *words, stdin=stdin, allow=allow).decode("utf-8", "replace").strip()

    def cost(self, *commands: Sequence[str], stdin: bytes = b"", allow: Sequence[int] = (0,)) -> Cost:
        """What it costs to run these processes one after the other."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        for words in commands:
            self.run(*words, stdin=stdin, allow=allow)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)

    def starting(self, *command: str, allow: Sequence[int] = (0,)) -> Callable[[], Cost]:
        """What measures a process that loads the modules which `command` loads, and ends.

        The command is run once for that, with what it does.
        """
        traced = (command[0], "-X", "importtime", *command[1:])
        done = subprocess.run(traced, cwd=self.repo, env=self.env, capture_output=True, text=True)
        if done.returncode not in allow:
            raise SystemExit(f"{' '.join(command[:6])}: exit {done.returncode}\n{done.stderr[-2000:]}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        names = [line.rpartition("|")[2].strip() for line in lines]
        given = "\n".join(names).encode()
        return lambda: self.cost((command[0], "-c", LOAD), stdin=given)


def text_of(memory_id: str, chance: random.Random, **fields: str) -> bytes:
    """A memory of 60 words."""
    words = (f"word{chance.randrange(3000)}" for _ in range(60))
    made = Memory(
        memory_id,
        " ".join(words) + "\n",
        scope="project",
        scope_key="project__benchmark__0123456789ab",
        visibility="internal",
        created_at="2025-01-01T00:00:00Z",
        updated_at="2025-01-01T00:00:00Z",
    )
    return frontmatter.render(made)


def make(place: Place, files: int, commits: int) -> None:
    """Make the repository. `.git/made` holds the ids of its memories, and says that it is whole."""
    chance = random.Random(7)
    ids = [new_id(1_700_000_000_000 + number) for number in range(MEMORIES)]
    names = [f"src/d{number % 50}/e{number // 50 % 40}/f{number}.txt" for number in range(files)]
    place.repo.mkdir(parents=True)
    place.git("init", "-q", "-b", "main")
    place.git("remote", "add", "origin", ORIGIN)

    def file(path: str, raw: bytes) -> bytes:
        return b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(raw), raw)

    def stream() -> Iterator[bytes]:
        for number in range(commits):
            moment = 1_735_689_600 + number * 60
            yield b"commit refs/heads/main\ncommitter Bench <bench@example.org> %d +0000\n" % moment
            yield b"data 6\nchange\n"
            if number == 0:
                for name in names:
                    yield file(name, name.encode() + b"\n")
                for memory_id in ids:
                    yield file(f"{MEMORY_DIR}/{memory_id}.md", text_of(memory_id, chance))
            elif number % 20 == 0:
                # The first memory is the one whose history is asked for.
                memory_id = ids[0] if number % 1000 == 0 else chance.choice(ids)
                yield file(f"{MEMORY_DIR}/{memory_id}.md", text_of(memory_id, chance))
            else:
                name = chance.choice(names)
                yield file(name, b"%s %d\n" % (name.encode(), number))

    place.git("fast-import", "--quiet", stdin=b"".join(stream()))
    place.git("reset", "-q", "--hard")
    place.git("tag", "made")
    (place.repo / ".git" / "made").write_text("\n".join(ids), encoding="utf-8")


def compared(
    name: str,
    rounds: int,
    ours: Callable[[], Cost],
    theirs: Callable[[], Cost],
    off: Callable[[], Cost],
) -> Row:
    """Both in turns, and the start-up of ours; medians."""
    mine, starts, others = [], [], []
    for _ in range(rounds):
        mine.append(ours())
        starts.append(off())
        others.append(theirs())
    return Row(name, median(mine), median(starts), median(others))


def nothing() -> Cost:
    """The start-up of what is measured with it, or without any."""
    return Cost(0, 0)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each."""
    return Cost(statistics.median(c.cpu for c in costs), statistics.median(c.wall for c in costs))


def submits(place: Place, rounds: int, count: int) -> Row:
    """Drafts to a commit on the current branch, against files written by hand, `git add` and `git commit`."""
    chance = random.Random()
    provider = GitProvider.open(str(place.repo), place.env)
    assert provider is not None
    outbox = Path(homes.outbox_home(str(place.data), provider.identity().keys[0]).folder)
    outbox.mkdir(parents=True, exist_ok=True)

    def command() -> tuple[str, ...]:
        ids = [new_id() for _ in range(count)]
        for memory_id in ids:
            (outbox / f"{memory_id}.md").write_bytes(text_of(memory_id, chance))
        place.run(*PRODUCT, "search", "nothing")  # the index is in step, as it is in use
        return (*PRODUCT, "submit", *ids, "-m", "Share")

    def ours() -> Cost:
        return place.cost(command())

    def theirs() -> Cost:
        paths = [f"{MEMORY_DIR}/{new_id()}.md" for _ in range(count)]
        for path in paths:
            (place.repo / path).write_bytes(text_of(path[-29:-3], chance))
        return place.cost(("git", "add", "--", *paths), ("git", "commit", "-q", "-m", "Share"))

    row = compared(f"submit of {count}", rounds, ours, theirs, place.starting(*command()))
    place.git("reset", "-q", "--hard", "made")
    place.run(*PRODUCT, "search", "nothing")
    return row


def asking(place: Place, words: Sequence[str]) -> Callable[[], Cost]:
    """What measures one command that can be run again and again."""
    return lambda: place.cost(words)


def statuses(place: Place, rounds: int) -> Iterator[Row]:
    """The state of the memory folder with ten files changed."""
    for memory_id in place.ids[10:20]:
        with (place.repo / MEMORY_DIR / f"{memory_id}.md").open("ab") as file:
            file.write(b"changed\n")
    plain = ("git", "status", "--porcelain", "--", MEMORY_DIR)
    asked = (sys.executable, "-c", ASK, "status", str(place.repo), "HEAD")
    for name, words in (
        ("status of the folder", asked),
        ("the same: `sync-status`", (*PRODUCT, "sync-status")),
    ):
        place.run(*words)
        yield compared(name, rounds, asking(place, words), lambda: place.cost(plain), place.starting(*words))
    place.git("checkout", "-q", "--", MEMORY_DIR)


def reads(place: Place, rounds: int) -> Iterator[Row]:
    """The bytes of 1,000 memories at a revision."""
    rev = "HEAD~500"
    listed = place.git("ls-tree", rev, MEMORY_DIR + "/").splitlines()
    oids = [line.split()[2] for line in listed]
    asked = "".join(f"{oid}\n" for oid in oids).encode()
    process = (sys.executable, "-c", ASK, "read", str(place.repo), rev)
    batch = ("git", "cat-file", "--batch")
    yield compared(
        "read of 1,000 at a revision",
        rounds,
        lambda: place.cost(process),
        lambda: place.cost(batch, stdin=asked),
        place.starting(*process),
    )

    # Read by git itself, as in the kinds of repository that libgit2 does not serve.
    place.git("config", "core.sharedRepository", "group")
    yield compared(
        "the same, read by the git engine",
        rounds,
        lambda: place.cost(process),
        lambda: place.cost(batch, stdin=asked),
        place.starting(*process),
    )
    place.git("config", "--unset", "core.sharedRepository")

    def inside() -> Cost:
        provider = GitProvider.open(str(place.repo), place.env)
        assert provider is not None
        provider.head()
        cpu, start = time.process_time(), time.perf_counter()
        for _ in provider.blobs(oids):
            pass
        return Cost(time.process_time() - cpu, time.perf_counter() - start)

    inside()
    yield compared(
        "the same in a running process, blobs alone",
        rounds,
        inside,
        lambda: place.cost(batch, stdin=asked),
        nothing,
    )
    yield compared(
        "the same against one question at a time",
        rounds,
        inside,
        lambda: dialogue(place, oids),
        nothing,
    )


def dialogue(place: Place, oids: Sequence[str]) -> Cost:
    """`git cat-file --batch` as a program uses it that learns the next id from the last answer."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(
        ("git", "cat-file", "--batch"),
        cwd=place.repo,
        env=place.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for oid in oids:
            process.stdin.write(f"{oid}\n".encode())
            process.stdin.flush()
            process.stdout.read(int(process.stdout.readline().split()[2]) + 1)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def histories(place: Place, rounds: int) -> Iterator[Row]:
    """The life of one memory against `git log -- path`, without and with the filters of a commit-graph."""
    path = f"{MEMORY_DIR}/{place.ids[0]}.md"
    info = place.repo / ".git" / "objects" / "info"
    for name, filters in (("history of one memory", False), ("the same, commit-graph with paths", True)):
        shutil.rmtree(info / "commit-graphs", ignore_errors=True)
        (info / "commit-graph").unlink(missing_ok=True)
        if filters:
            place.git("commit-graph", "write", "--reachable", "--changed-paths")
        yield compared(
            name,
            rounds,
            lambda: place.cost((*PRODUCT, "history", place.ids[0])),
            lambda: place.cost(("git", "log", "--", path)),
            place.starting(*PRODUCT, "history", place.ids[0]),
        )
    (info / "commit-graph").unlink(missing_ok=True)


def looks_back(place: Place, rounds: int) -> Iterator[Row]:
    """`search --at` against `git grep` in the same folder of the same revision."""
    word = "word1234"
    place.run(*PRODUCT, "search", word)
    revisions = iter(range(100, 100_000, 7))

    def first(empty: bool) -> tuple[Callable[[], Cost], Callable[[], Cost]]:
        asked = ["HEAD"]

        def ours() -> Cost:
            asked[0] = f"HEAD~{next(revisions)}"
            if empty:
                shutil.rmtree(place.data)
            return place.cost((*PRODUCT, "search", word, "--at", asked[0]))

        def theirs() -> Cost:
            return grep(asked[0])

        return ours, theirs

    def grep(rev: str) -> Cost:
        return place.cost(("git", "grep", "-l", word, rev, "--", MEMORY_DIR), allow=(0, 1))

    start = place.starting(*PRODUCT, "search", word, "--at", "HEAD~50")
    yield compared("`search --at`, first of all (empty index)", min(rounds, 3), *first(True), start)
    place.run(*PRODUCT, "search", word)
    yield compared("`search --at`, a new revision", rounds, *first(False), start)
    place.run(*PRODUCT, "search", word, "--at", "HEAD~100")
    yield compared(
        "`search --at`, again",
        rounds,
        lambda: place.cost((*PRODUCT, "search", word, "--at", "HEAD~100")),
        lambda: grep("HEAD~100"),
        place.starting(*PRODUCT, "search", word, "--at", "HEAD~100"),
    )


def resolves(place: Place, rounds: int) -> Row:
    """100 memories whose texts both sides changed, settled by one side."""
    chance = random.Random(3)
    ids = place.ids[100 : 100 + CONFLICTS]
    start = place.git("rev-parse", "HEAD")
    place.git("branch", "-f", "theirs")
    for branch in ("theirs", "main"):
        place.git("checkout", "-q", branch)
        for memory_id in ids:
            (place.repo / MEMORY_DIR / f"{memory_id}.md").write_bytes(text_of(memory_id, chance))
        place.git("commit", "-q", "-a", "-m", f"Change on {branch}")

    def conflict() -> None:
        place.git("merge", "-q", "theirs", allow=(1,))

    def ours() -> Cost:
        conflict()
        spent = place.cost((*PRODUCT, "resolve", "--all", "--take-body", "theirs"))
        assert not place.git("ls-files", "-u")
        place.git("reset", "-q", "--hard")
        return spent

    def theirs() -> Cost:
        conflict()
        spent = place.cost(
            ("git", "checkout", "--theirs", "--", MEMORY_DIR), ("git", "add", "--", MEMORY_DIR)
        )
        assert not place.git("ls-files", "-u")
        place.git("reset", "-q", "--hard")
        return spent

    conflict()
    start_up = place.starting(*PRODUCT, "resolve", "--all", "--take-body", "theirs")
    place.git("reset", "-q", "--hard")
    row = compared(f"resolve of {CONFLICTS} conflicts", rounds, ours, theirs, start_up)
    place.git("reset", "-q", "--hard", start)
    place.git("branch", "-q", "-D", "theirs")
    return row


def drivers(place: Place, rounds: int, folder: Path) -> Row:
    """The merge driver against `git merge-file`, a process for each of 100 files that conflict."""
    chance = random.Random(5)
    work = folder / "driver"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    sides = ("base", "ours", "theirs")
    for number in range(CONFLICTS):
        memory_id = place.ids[number]
        for side in sides:
            (work / f"{number}.{side}").write_bytes(text_of(memory_id, chance))

    def ours() -> Cost:
        commands = []
        for number in range(CONFLICTS):
            shutil.copy(work / f"{number}.ours", work / f"{number}.now")
            path = f"{MEMORY_DIR}/{place.ids[number]}.md"
            files = [str(work / f"{number}.{side}") for side in ("base", "now", "theirs")]
            commands.append((*PRODUCT, "merge-driver", *files, path))
        return place.cost(*commands, allow=(1,))

    def theirs() -> Cost:
        order = ("ours", "base", "theirs")
        commands = [
            ("git", "merge-file", "-p", *(str(work / f"{number}.{side}") for side in order))
            for number in range(CONFLICTS)
        ]
        return place.cost(*commands, allow=(1,))

    return compared(f"merge driver, {CONFLICTS} files, start-up included", rounds, ours, theirs, nothing)


def report(files: int, rows: Sequence[Row]) -> None:
    """The tables of one size."""
    for name, number in (("CPU time", 0), ("on the clock", 1)):
        print(f"\n{files:,} files, {name}\n")
        print("| | ours, whole | its start-up | ours without | git | ratio |")
        print("|---|---|---|---|---|---|")
        for row in rows:
            whole, off, other = row.whole[number], row.off[number], row.theirs[number]
            cells = [f"{1000 * cost:.0f} ms" for cost in (whole, off, whole - off, other)]
            print(
                f"| {row.name} | {' | '.join(cells)} | {(whole - off) / max(other, 1e-4):.2f} |", flush=True
            )


def measure(folder: Path, files: int, commits: int, rounds: int, only: str) -> list[Row]:
    """All rows for one size; those whose name holds `only`."""
    place = Place(folder, files, commits)
    place.run(*PRODUCT, "list")
    engine = GitProvider.open(str(place.repo), place.env)
    assert engine is not None
    print(f"engine that reads: {engine.reading_engine}")
    steps: tuple[tuple[str, Callable[[], Iterator[Row]]], ...] = (
        ("submit", lambda: iter([submits(place, rounds, 1), submits(place, rounds, 100)])),
        ("status", lambda: statuses(place, rounds)),
        ("read", lambda: reads(place, rounds)),
        ("history", lambda: histories(place, rounds)),
        ("at", lambda: looks_back(place, rounds)),
        ("resolve", lambda: iter([resolves(place, rounds)])),
        ("driver", lambda: iter([drivers(place, min(rounds, 3), folder)])),
    )
    return [row for name, step in steps if only in ("", name) for row in step()]


def main() -> None:
    """Read the options, measure each size, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where repositories are made and kept for the next run")
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 50_000])
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="submit, status, read, history, at, resolve or driver")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["git", "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{now_text()}, Python {sys.version.split()[0]}, {version}, {options.rounds} rounds, medians")
    for files in options.files:
        rows = measure(options.folder.resolve(), files, options.commits, options.rounds, options.only)
        report(files, rows)


if __name__ == "__main__":
    main()

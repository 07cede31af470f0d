"""How the memory index behaves at size: `python benchmarks/scale.py 10000`.

Makes N varied memories as files of a git repository, then measures, in CPU time of one process and through
the product's own interfaces: the first index, its size and memory, searches of 1, 3 and 8 words, a refresh
after no change and after 10, and one after `git switch` to a branch that changes 10. With `--process`, also a
whole `search` command against `python -c pass`.

Wall time is left out: on a shared machine it says more about the neighbours.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import os
import platform
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from openmemex.index.memory_index import MemoryIndex  # noqa: E402
from openmemex.index.rows import Filters, Freshness  # noqa: E402
from openmemex.memory import frontmatter  # noqa: E402
from openmemex.memory.ids import new_id  # noqa: E402
from openmemex.memory.model import IMPORTANCES, REVIEW_STATES, SOURCES, TYPES, Memory, now_text  # noqa: E402
from openmemex.store import homes  # noqa: E402

MEMORY_DIR = ".ai/open-memex"
SCOPE_KEY = "project__scale__0123456789ab"
CHANGED = 10
# As many of the most frequent words as English has of no matter: a question does not ask for them.
GRAMMAR_WORDS = 100


class Words:
    """Made words whose frequencies follow Zipf's law, as those of natural text do."""

    def __init__(self, size: int, chance: random.Random) -> None:
        self._chance = chance
        seen: dict[str, None] = {}
        while len(seen) < size:
            syllables = chance.choices(range(75), k=chance.choice((1, 2, 2, 3, 3, 4)))
            seen["".join("bcdfghklmnprstv"[s // 5] + "aeiou"[s % 5] for s in syllables)] = None
        self.all = list(seen)
        self._sums = list(itertools.accumulate(1.0 / (rank + 2.7) for rank in range(size)))

    def text(self, count: int) -> list[str]:
        """`count` words, frequent ones more often."""
        top = self._sums[-1]
        return [self.all[bisect.bisect(self._sums, self._chance.random() * top)] for _ in range(count)]


def make(folder: Path, count: int, options: argparse.Namespace) -> None:
    """Write `count` memories into `folder`: one in twelve is superseded by a later one, some have ended."""
    chance = random.Random(options.seed)
    words = Words(options.vocabulary, chance)
    start = datetime(2025, 1, 1, tzinfo=UTC)
    folder.mkdir(parents=True, exist_ok=True)
    previous = ""
    for number in range(count):
        body = words.text(chance.randint(options.shortest, options.longest))
        for at in range(0, len(body), 9):
            body[at] = body[at].capitalize() if at == 0 else body[at] + chance.choice((".", ",", ":", ""))
        created = start + timedelta(minutes=number)
        supersedes = previous if previous and number % 12 == 11 else None
        memory = Memory(
            id=new_id(int(created.timestamp() * 1000)),
            body=" ".join(body) + "\n",
            scope="project",
            scope_key=SCOPE_KEY,
            visibility="internal",
            project_name="scale",
            type=chance.choice(TYPES),
            importance=chance.choices(IMPORTANCES, (1, 8, 1))[0],
            status=chance.choices(("active", "deprecated", "archived"), (97, 2, 1))[0],
            tags=tuple(dict.fromkeys(words.text(3))),
            source=chance.choice(SOURCES),
            created_at=now_text(created),
            updated_at=now_text(created),
            supersedes=supersedes,
            review_state=chance.choice(REVIEW_STATES),
            paths=(f"src/{chance.choice(words.all)}/**",) if number % 5 == 0 else (),
            expires_at=now_text(start) if number % 100 == 99 else None,
        )
        previous = memory.id
        (folder / f"{memory.id}.md").write_bytes(frontmatter.render(memory))


def git(*args: str, cwd: Path) -> None:
    """Run git on the benchmark's repository, untouched by anybody's configuration."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=Scale", "-c", "user.email=scale@example.org", "-c", "gc.auto=0"]
    subprocess.run(["git", *who, *args], cwd=cwd, check=True, env={**os.environ, **own}, capture_output=True)


def change(folder: Path, name: str) -> None:
    """Add a sentence to the memory file `name`, as an editor does: a new file in place of the old one."""
    path = folder / name
    new = path.with_suffix(".new")
    new.write_bytes(path.read_bytes() + b"A sentence was added here.\n")
    new.replace(path)


def cpu(action: Callable[[], object]) -> float:
    """CPU seconds (user and system) of this process for one call."""
    before = time.process_time()
    action()
    return time.process_time() - before


def spread(seconds: Sequence[float]) -> str:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return f"p50 {_ms(ordered[len(ordered) // 2])}  p95 {_ms(ordered[int(len(ordered) * 0.95)])}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def queries(folder: Path, words: int, options: argparse.Namespace) -> list[str]:
    """Questions made of `words` words of one memory each, the grammar's words left out."""
    chance = random.Random(options.seed + words)
    grammar = set(Words(options.vocabulary, random.Random(options.seed)).all[:GRAMMAR_WORDS])
    names = sorted(os.listdir(folder))
    found: list[str] = []
    while len(found) < options.queries:
        body = frontmatter.parse((folder / chance.choice(names)).read_bytes()).memory.body
        own = sorted({word.strip(".,:").lower() for word in body.split()} - grammar)
        if len(own) >= words:
            found.append(" ".join(chance.sample(own, words)))
    return found


def measure(count: int, place: Path, options: argparse.Namespace) -> None:
    """Make everything below `place` and print what it costs."""
    repo, data = place / "repo", place / "data"
    folder = repo / MEMORY_DIR
    repo.mkdir(parents=True)
    print(f"scale {count} memories of {options.shortest}-{options.longest} words, seed {options.seed}")
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    print(f"on {machine}, {versions}, {datetime.now(UTC):%Y-%m-%d}")
    git("init", "-q", "-b", "main", cwd=repo)
    # In a process of its own, so that what making them needs is not taken for what the index needs.
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "--only-make", str(folder)], check=True)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "Memories", cwd=repo)
    names = sorted(os.listdir(folder))
    git("switch", "-q", "-c", "topic", cwd=repo)
    for name in names[:: max(1, count // CHANGED)][:CHANGED]:
        change(folder, name)
    git("commit", "-q", "-a", "-m", "Changes", cwd=repo)
    git("switch", "-q", "main", cwd=repo)

    index = MemoryIndex.open(str(data / "index.db"))
    here = [homes.personal_home(str(data)), homes.repository_home(str(repo), MEMORY_DIR, SCOPE_KEY)]
    looks: list[Freshness] = []

    def refresh() -> float:
        return cpu(lambda: looks.append(index.reconcile(here)))

    built = refresh()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"first index: {count / built:,.0f} memories per CPU second ({built:.2f} s)")
    size = sum(path.stat().st_size for path in data.glob("index.db*"))
    print(f"size: {size / 1e6:.1f} MB, {size / count:.0f} bytes a memory; peak memory {peak / 1e6:.0f} MB")
    while looks[-1].read:  # files that are younger than their stamps are sure
        time.sleep(0.2)
        refresh()
    print(f"refresh, nothing changed: {spread([refresh() for _ in range(options.repeat)])}")

    changes = []
    for at in range(options.repeat):
        for name in names[at::7][:CHANGED]:
            change(folder, name)
        changes.append(refresh())
        assert looks[-1].changed == min(CHANGED, len(names[at::7])), looks[-1]
    print(f"refresh, {CHANGED} changed: {spread(changes)}")
    git("checkout", "-q", "--", ".", cwd=repo)
    time.sleep(0.2)
    refresh()
    time.sleep(0.2)
    refresh()

    first: list[float] = []
    again: list[float] = []
    for at in range(options.repeat):
        git("switch", "-q", "main" if at % 2 else "topic", cwd=repo)
        (again if at > 1 else first).append(refresh())
        assert looks[-1].changed == min(CHANGED, count), looks[-1]
    print(f"branch switch, {CHANGED} differ: {spread(first)}; back and forth: {spread(again)}")
    git("switch", "-q", "main", cwd=repo)
    refresh()

    whole = [cpu(lambda: index.list(here, Filters(), 20)) for _ in range(options.repeat)]
    print(f"list of 20: {spread(whole)}")
    for length in (1, 3, 8):
        asked = queries(folder, length, options)
        index.search(asked[0], here)
        times = [cpu(lambda query=query: index.search(query, here)) for query in asked]  # type: ignore[misc]
        found = sum(index.search(query, here).total for query in asked[:20]) / 20
        print(
            f"search, {length} word{'s' * (length > 1)}: {spread(times)}  ({found:,.0f} matches on average)"
        )
    index.close()
    if options.process:
        whole_process(repo, data, queries(folder, 3, options)[: options.repeat])


def whole_process(repo: Path, data: Path, asked: Sequence[str]) -> None:
    """CPU of a whole `search` command, less that of an empty Python."""
    env = {**os.environ, "OPEN_MEMEX_HOME": str(data), "PYTHONPATH": str(ROOT)}
    # As where it is installed: compiled once.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["PYTHONPYCACHEPREFIX"] = str(data / "compiled")

    def children(arguments: Sequence[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], cwd=repo, env=env, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    children(["-m", "openmemex", "search", asked[0]])
    # The empty one each time anew: what else runs on the machine changes both alike.
    less = sorted(children(["-m", "openmemex", "search", one]) - children(["-c", "pass"]) for one in asked)
    print(f"whole search command, more than python -c pass: {spread(less)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran through."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "count", type=int, metavar="N", help="how many memories (10000 and 100000 are reported)"
    )
    parser.add_argument("--queries", type=int, default=200, help="searches of each length (default 200)")
    parser.add_argument("--repeat", type=int, default=12, help="refreshes of each kind (default 12)")
    parser.add_argument("--shortest", type=int, default=40, help="words in the shortest memory (default 40)")
    parser.add_argument("--longest", type=int, default=80, help="words in the longest memory (default 80)")
    parser.add_argument("--vocabulary", type=int, default=200_000, help="different words (default 200000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--process", action="store_true", help="also measure whole search commands")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="make everything below DIR and leave it there"
    )
    parser.add_argument("--only-make", type=Path, metavar="DIR", help="write the memories into DIR and end")
    options = parser.parse_args(argv)
    if options.count < CHANGED:
        parser.error(f"N must be at least {CHANGED}")
    if options.only_make:
        make(options.only_make, options.count, options)
        return 0
    place = Path(tempfile.mkdtemp(prefix="memex-scale-")) if options.keep is None else options.keep
    try:
        measure(options.count, place, options)
    finally:
        if options.keep is None:
            shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

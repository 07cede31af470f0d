"""How well searches find: `python benchmarks/retrieval.py CORPUS QUERIES RUN [--conversation]`.

CORPUS is a JSONL file of memories ({"id", "text"}, and "tags", "aliases", "created_at" where there are any),
QUERIES one of {"id", "text", "gold": [memory ids], "category"}. Each memory is written as a file, the files
are indexed, each query is searched for, all by the product's own code, and RUN gets {query id: [memory ids,
best first]}.

With `--conversation` each query searches only the memories whose id has the same part before the first "/" as
the query's own id. What the sets are and what came out: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from openmemex.index.rows import Filters  # noqa: E402
from openmemex.memory import frontmatter  # noqa: E402
from openmemex.memory.ids import new_id  # noqa: E402
from openmemex.memory.model import Memory, now_text, parse_time  # noqa: E402
from openmemex.operations.search import search  # noqa: E402
from openmemex.workspace import Workspace  # noqa: E402

LIMIT = 10


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def conversation(row_id: str) -> str:
    """What comes before the first "/" of an id."""
    return row_id.partition("/")[0]


class Places:
    """The memories of a set as one person has them: each conversation a project of its own, or all in one."""

    def __init__(self, folder: Path, *, apart: bool) -> None:
        self.folder = folder
        self.apart = apart
        self.names: dict[str, str] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._environ = {
            "HOME": str(folder / "home"),
            "OPEN_MEMEX_HOME": str(folder / "data"),
            "OPEN_MEMEX_CONFIG": str(folder / "config.jsonc"),
        }

    def known(self, row_id: str) -> Workspace | None:
        """Where the memories lie that a query with this id may find."""
        return self._workspaces.get(self._key(row_id))

    def place(self, row_id: str) -> Workspace:
        """Where the memory with this id belongs."""
        key = self._key(row_id)
        if key not in self._workspaces:
            project = self.folder / "projects" / str(len(self._workspaces))
            project.mkdir(parents=True)
            self._workspaces[key] = Workspace.open(project=str(project), environ=self._environ)
        return self._workspaces[key]

    def every(self) -> list[Workspace]:
        """All of them."""
        return list(self._workspaces.values())

    def _key(self, row_id: str) -> str:
        return conversation(row_id) if self.apart else ""

    def write(self, corpus: list[dict[str, Any]]) -> None:
        """Write the memory files, as drafts of their projects."""
        start = int(time.time() * 1000) - len(corpus)
        for number, row in enumerate(corpus):
            home = self.place(row["id"]).outbox_home()
            created = now_text(parse_time(row.get("created_at")))
            memory = Memory(
                id=new_id(start + number),
                body=row["text"] + "\n",
                scope=home.scope,
                scope_key=home.scope_key,
                visibility="internal",
                tags=tuple(row.get("tags") or ()),
                aliases=tuple(row.get("aliases") or ()),
                created_at=created,
                updated_at=created,
            )
            path = Path(home.path_of(memory.id))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(frontmatter.render(memory))
            self.names[memory.id] = row["id"]


def search_all(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], folder: Path, *, apart: bool
) -> dict[str, list[str]]:
    """The run of `queries` over `corpus`; what it costs is printed. Each search reconciles first."""
    places = Places(folder, apart=apart)
    places.write(corpus)
    before = time.process_time()
    added = sum(workspace.reconcile().added for workspace in places.every())
    spent = time.process_time() - before
    print(f"{added} of {len(corpus)} memories indexed, {len(corpus) / spent:,.0f} per CPU second")
    run: dict[str, list[str]] = {}
    costs: list[float] = []
    for query in queries:
        workspace = places.known(query["id"])
        before = time.process_time()
        if workspace is None or not query["text"].strip():
            run[query["id"]] = []
            continue
        found = search(workspace, query["text"], filters=Filters(), limit=LIMIT)
        costs.append(time.process_time() - before)
        run[query["id"]] = [places.names[hit.row.id] for hit in found.hits]
    for workspace in places.every():
        workspace.close()
    costs.sort()
    middle, late = costs[len(costs) // 2], costs[int(len(costs) * 0.95)]
    print(f"{len(queries)} searches: CPU p50 {middle * 1000:.2f} ms, p95 {late * 1000:.2f} ms")
    return run


def score(gold: list[str], ranked: list[str]) -> tuple[float, float, float]:
    """Hit at 1, recall at 5, and nDCG at 10 with gains of 0 or 1 (Järvelin and Kekäläinen, 2002)."""
    right = [row_id in gold for row_id in ranked[:LIMIT]]
    gain = sum(1 / math.log2(place + 2) for place, found in enumerate(right) if found)
    best = sum(1 / math.log2(place + 2) for place in range(min(LIMIT, len(gold))))
    return float(right[:1] == [True]), sum(right[:5]) / len(gold), gain / best


def report(queries: list[dict[str, Any]], run: dict[str, list[str]]) -> None:
    """Print the means, of all queries and of each category."""
    groups: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for query in queries:
        one = score(query["gold"], run[query["id"]])
        groups["all"].append(one)
        groups[query.get("category") or "all"].append(one)
    print(f"{'category':<18}{'n':>6}{'H@1':>8}{'R@5':>8}{'nDCG@10':>9}")
    for name, rows in sorted(groups.items()):
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        print(f"{name:<18}{len(rows):>6}{means[0]:>8.4f}{means[1]:>8.4f}{means[2]:>9.4f}")


def main() -> None:
    """Run one set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--conversation", action="store_true", help="search the query's own conversation only"
    )
    options = parser.parse_args()
    queries = read(options.queries)
    with tempfile.TemporaryDirectory(prefix="retrieval-") as folder:
        run = search_all(read(options.corpus), queries, Path(folder), apart=options.conversation)
    options.run.write_text(json.dumps(run, ensure_ascii=False), encoding="utf-8")
    report(queries, run)


if __name__ == "__main__":
    main()

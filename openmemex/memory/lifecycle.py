"""How a memory's status may change, and what the supersede pointers of many memories mean together.

Everything here is a pure function over plain values; nothing recurses, so a chain may be as long as it likes
and a loop ends. The rules: docs/protocol.md, "Lifecycle".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from openmemex.errors import Refused
from openmemex.memory.model import STATUSES

# What a person may set by hand. `superseded` is reached by superseding alone, and `retracted` is one-way.
TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "active": frozenset({"deprecated", "retracted", "archived"}),
    "deprecated": frozenset({"active", "archived", "retracted"}),
    "archived": frozenset({"active", "retracted"}),
    "superseded": frozenset({"retracted"}),
    "retracted": frozenset(),
}
SUPERSEDABLE: Final = frozenset({"active", "deprecated", "archived"})


def check_transition(old_status: str, new_status: str) -> None:
    """Pass when a person may set `new_status` on a memory of `old_status`; setting the same again is no
    change.

    Raises Refused, with the way out as its hint.
    """
    if new_status not in TRANSITIONS:
        raise Refused(f"there is no status {new_status}", f"Allowed: {', '.join(STATUSES)}.")
    if old_status == new_status or new_status in TRANSITIONS[old_status]:
        return
    if new_status == "superseded":
        raise Refused(
            "a memory becomes superseded only by the one that replaces it",
            "Use: open-memex supersede ID NEW-TEXT",
        )
    if old_status == "retracted":
        raise Refused(
            "a retracted memory stays retracted",
            "Save its text again as a new memory: open-memex add TEXT",
        )
    if old_status == "superseded":
        raise Refused(
            "a superseded memory has a newer one in its place",
            "Change the newer one, or supersede it in turn.",
        )
    allowed = " or ".join(sorted(TRANSITIONS[old_status]))
    raise Refused(f"a memory can't go from {old_status} to {new_status}", f"From {old_status}: {allowed}.")


def check_supersedable(status: str) -> None:
    """Pass when a memory of this status may be replaced by a new one. Raises Refused."""
    if status in SUPERSEDABLE:
        return
    if status == "superseded":
        raise Refused("that memory is superseded already", "Supersede the newest of its chain instead.")
    raise Refused(
        f"a {status} memory can't be superseded", "Save the text as a new memory: open-memex add TEXT"
    )


class Pointers(NamedTuple):
    """What one memory says of its place in a chain."""

    supersedes: str | None
    superseded_by: str | None
    status: str


class ChainFault(NamedTuple):
    """Something in the pointers that a person should look at.

    `kind`: `fork` (several memories replace one), `loop`, `self` (a memory points at itself), `dangling`
    (points at no memory that is here), `half` (only one of the two says so), `uneven` (the two name
    different partners), `orphan` (superseded, but by nothing). `ids`: the memories concerned, in order.
    """

    kind: str
    ids: tuple[str, ...]
    text: str


class Chains:
    """The supersede pointers of all memories of some places, read together.

    An edge from an old memory to the new one exists when either side says so and both are here: half a pair
    counts, in this result only. A memory that should not count (rejected, of another place) is left out of
    `entries` by the caller. Forks and loops hide nothing.
    """

    def __init__(self, entries: Mapping[str, Pointers]) -> None:
        self._entries = entries
        successors: dict[str, dict[str, None]] = {}
        predecessors: dict[str, dict[str, None]] = {}
        for memory_id, pointers in entries.items():
            for old, new in ((memory_id, pointers.superseded_by), (pointers.supersedes, memory_id)):
                if old is not None and new is not None and old != new and old in entries and new in entries:
                    successors.setdefault(old, {})[new] = None
                    predecessors.setdefault(new, {})[old] = None
        self._successors = {old: tuple(sorted(news)) for old, news in successors.items()}
        self._predecessors = {new: tuple(sorted(olds)) for new, olds in predecessors.items()}
        self._loops = tuple(_loops(self._successors))
        self._looping = self._leading_into(member for loop in self._loops for member in loop)
        self._newest: dict[str, str | None] = {}

    def _leading_into(self, targets: Iterator[str]) -> frozenset[str]:
        seen = set(targets)
        todo = list(seen)
        while todo:
            for old in self._predecessors.get(todo.pop(), ()):
                if old not in seen:
                    seen.add(old)
                    todo.append(old)
        return frozenset(seen)

    def successors(self, memory_id: str) -> tuple[str, ...]:
        """The memories that replace this one directly: none, one, or several where the chain forks."""
        return self._successors.get(memory_id, ())

    def predecessors(self, memory_id: str) -> tuple[str, ...]:
        """The memories that this one replaces directly."""
        return self._predecessors.get(memory_id, ())

    def newest(self, memory_id: str) -> str | None:
        """The newest memory of the chain; None when it forks or loops, so that there is no one newest."""
        known = self._newest
        if memory_id in known:
            return known[memory_id]
        path: list[str] = []
        at = memory_id
        result: str | None = None
        while at not in self._looping:
            if at in known:
                result = known[at]
                break
            path.append(at)
            following = self._successors.get(at, ())
            if len(following) != 1:
                result = None if following else at
                break
            at = following[0]
        for passed in path:
            known[passed] = result
        return result

    def loop(self, memory_id: str) -> tuple[str, ...]:
        """The memories that replace each other in a loop with this one, itself included; () when it is in
        none.
        """
        return next((loop for loop in self._loops if memory_id in loop), ())

    def heads(self, memory_id: str) -> tuple[str, ...]:
        """Every end of the chain that can be reached from this memory: one, or several after a fork.

        A loop has no end: its own members are then the heads.
        """
        seen = {memory_id}
        todo = [memory_id]
        ends = []
        looping = {member for loop in self._loops for member in loop}
        while todo:
            at = todo.pop()
            following = self._successors.get(at, ())
            if not following or at in looping:
                ends.append(at)
            for new in following:
                if new not in seen:
                    seen.add(new)
                    todo.append(new)
        return tuple(sorted(ends))

    def line(self, memory_id: str) -> tuple[str, ...]:
        """The chain around a memory, oldest first, as far as it is one line: up to a fork, a join or a
        loop.
        """
        if memory_id in self._looping:
            return (memory_id,)
        older: list[str] = []
        at = memory_id
        while len(before := self._predecessors.get(at, ())) == 1:
            at = before[0]
            older.append(at)
        newer: list[str] = []
        at = memory_id
        while len(after := self._successors.get(at, ())) == 1:
            at = after[0]
            newer.append(at)
        return (*reversed(older), memory_id, *newer)

    def status(self, memory_id: str) -> str:
        """The status that counts: as written, but `superseded` exactly where one newer memory is here.

        Where the chain forks, loops or points at nothing, neither the pointers nor the word `superseded`
        hide the memory: it counts as active. `superseded` without any pointer stays as it was written.
        """
        pointers = self._entries[memory_id]
        if pointers.status not in ("active", "superseded"):
            return pointers.status
        following = self._successors.get(memory_id, ())
        if memory_id in self._looping or len(following) > 1:
            return "active"
        if following:
            return "superseded"
        return "active" if pointers.superseded_by is not None else pointers.status

    def completed(self, memory_id: str) -> Pointers:
        """The memory's pointers with the missing half of a pair filled in; what is written is never replaced.

        Nothing is completed at a fork or on the way into a loop.
        """
        pointers = self._entries[memory_id]
        status = self.status(memory_id)
        if memory_id in self._looping:
            return pointers._replace(status=status)
        following = self._successors.get(memory_id, ())
        before = self._predecessors.get(memory_id, ())
        superseded_by, supersedes = pointers.superseded_by, pointers.supersedes
        if superseded_by is None and len(following) == 1:
            superseded_by = following[0]
        if supersedes is None and len(before) == 1 and len(self._successors[before[0]]) == 1:
            supersedes = before[0]
        return Pointers(supersedes, superseded_by, status)

    def faults(self) -> list[ChainFault]:
        """Everything wrong with the pointers, by kind and id, each once."""
        found = [
            ChainFault("loop", loop, f"replace each other in a loop: {_some(loop)}") for loop in self._loops
        ]
        for memory_id, pointers in self._entries.items():
            found += self._faults_of(memory_id, pointers)
        return sorted(found)

    def _faults_of(self, memory_id: str, pointers: Pointers) -> Iterator[ChainFault]:
        following = self._successors.get(memory_id, ())
        if len(following) > 1:
            yield ChainFault(
                "fork",
                (memory_id, *following),
                f"{memory_id} is replaced by several memories: {_some(following)}",
            )
        if memory_id in (pointers.supersedes, pointers.superseded_by):
            yield ChainFault("self", (memory_id,), f"{memory_id} points at itself")
        for name, target in (("supersedes", pointers.supersedes), ("superseded_by", pointers.superseded_by)):
            if target is None or target == memory_id:
                continue
            other = self._entries.get(target)
            if other is None:
                text = f"{memory_id} says {name} {target}, which is not here"
                yield ChainFault("dangling", (memory_id, target), text)
                continue
            back = other.superseded_by if name == "supersedes" else other.supersedes
            if back is None:
                text = f"{memory_id} says {name} {target}, which does not say so itself"
                yield ChainFault("half", (memory_id, target), text)
            elif back not in (memory_id, target):
                text = f"{memory_id} says {name} {target}, which names {back} instead"
                yield ChainFault("uneven", (memory_id, target, back), text)
        if pointers.status == "superseded" and pointers.superseded_by is None and not following:
            yield ChainFault("orphan", (memory_id,), f"{memory_id} is superseded, but nothing replaces it")


def _some(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _loops(successors: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The loops of the graph: its strongly connected parts of more than one memory.

    Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972) with its own stack.
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    for root in successors:
        if root in number:
            continue
        work: list[tuple[str, int]] = [(root, 0)]
        while work:
            at, child = work.pop()
            if child == 0:
                number[at] = low[at] = len(number)
                stack.append(at)
                on_stack.add(at)
            following = successors.get(at, ())
            if child:
                low[at] = min(low[at], low[following[child - 1]])
            descended = False
            while child < len(following):
                new = following[child]
                child += 1
                if new not in number:
                    work.append((at, child))
                    work.append((new, 0))
                    descended = True
                    break
                if new in on_stack:
                    low[at] = min(low[at], number[new])
            if descended:
                continue
            if low[at] == number[at]:
                part = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    part.append(member)
                    if member == at:
                        break
                if len(part) > 1:
                    yield tuple(sorted(part))

"""Status changes, and chains of superseding memories: forks, loops, half pairs, long ones."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.errors import Refused
from openmemex.memory.lifecycle import Chains, Pointers, check_supersedable, check_transition
from openmemex.memory.model import STATUSES

ALLOWED = {
    ("active", "deprecated"),
    ("active", "retracted"),
    ("active", "archived"),
    ("deprecated", "active"),
    ("deprecated", "archived"),
    ("deprecated", "retracted"),
    ("archived", "active"),
    ("archived", "retracted"),
    ("superseded", "retracted"),
}


@pytest.mark.parametrize(("old", "new"), list(itertools.product(STATUSES, STATUSES)))
def test_the_whole_table_of_status_changes(old: str, new: str) -> None:
    if old == new or (old, new) in ALLOWED:
        check_transition(old, new)
        return
    with pytest.raises(Refused) as caught:
        check_transition(old, new)
    assert caught.value.hint


def test_a_status_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(Refused) as caught:
        check_transition("active", "gone")
    assert all(status in caught.value.hint for status in STATUSES)


def test_what_may_be_superseded() -> None:
    for status in STATUSES:
        if status in ("active", "deprecated", "archived"):
            check_supersedable(status)
        else:
            with pytest.raises(Refused):
                check_supersedable(status)


def chains(**entries: tuple[str | None, str | None, str] | tuple[str | None, str | None]) -> Chains:
    """`A=(supersedes, superseded_by)`; active unless a third says otherwise."""
    return Chains(
        {name: Pointers(e[0], e[1], e[2] if len(e) > 2 else "active") for name, e in entries.items()}
    )


def kinds(given: Chains) -> list[tuple[str, tuple[str, ...]]]:
    return [(fault.kind, fault.ids) for fault in given.faults()]


def test_a_whole_pair_has_one_newest_and_no_fault() -> None:
    pair = chains(A=(None, "B", "superseded"), B=("A", None))
    assert (pair.newest("A"), pair.newest("B")) == ("B", "B")
    assert (pair.status("A"), pair.status("B")) == ("superseded", "active")
    assert pair.line("A") == pair.line("B") == ("A", "B")
    assert pair.successors("A") == ("B",)
    assert pair.predecessors("B") == ("A",)
    assert kinds(pair) == []


@pytest.mark.parametrize(
    ("half", "fault"),
    [
        (chains(A=(None, None), B=("A", None)), ("half", ("B", "A"))),
        (chains(A=(None, "B"), B=(None, None)), ("half", ("A", "B"))),
        (chains(A=(None, "B", "superseded"), B=(None, None)), ("half", ("A", "B"))),
    ],
)
def test_half_a_pair_counts_and_is_completed_in_the_result(
    half: Chains, fault: tuple[str, tuple[str, ...]]
) -> None:
    assert half.newest("A") == "B"
    assert half.status("A") == "superseded"
    assert half.completed("A") == Pointers(None, "B", "superseded")
    assert half.completed("B") == Pointers("A", None, "active")
    assert kinds(half) == [fault]


@pytest.mark.parametrize("status", ["deprecated", "retracted", "archived"])
def test_a_status_set_by_a_person_outranks_the_chain(status: str) -> None:
    assert chains(A=(None, "B", status), B=("A", None)).status("A") == status


def test_a_fork_hides_nothing_and_is_reported() -> None:
    for a in [(None, "B", "superseded"), (None, None, "active"), (None, "C", "superseded")]:
        fork = chains(A=a, B=("A", None), C=("A", None), Z=(None, "A", "superseded"))
        assert [fork.status(i) for i in "ABC"] == ["active", "active", "active"]
        assert fork.newest("A") is fork.newest("Z") is None
        assert fork.newest("B") == "B"
        assert fork.heads("Z") == ("B", "C")
        assert ("fork", ("A", "B", "C")) in kinds(fork)
        assert fork.completed("B") == Pointers("A", None, "active")
        assert fork.completed("A").superseded_by == a[1]


def test_two_successors_each_named_by_one_side_are_a_fork() -> None:
    fork = chains(A=(None, "B", "superseded"), B=(None, None), C=("A", None))
    assert fork.successors("A") == ("B", "C")
    assert fork.status("A") == "active"
    assert fork.completed("B").supersedes is None
    assert ("fork", ("A", "B", "C")) in kinds(fork)


@pytest.mark.parametrize("status", ["active", "superseded"])
def test_a_loop_ends_hides_nothing_and_is_reported_with_its_ids(status: str) -> None:
    loop = chains(A=(None, "B", status), B=(None, "A", status), Z=(None, "A", status))
    assert [loop.status(i) for i in "ABZ"] == ["active", "active", "active"]
    assert loop.newest("A") is loop.newest("B") is loop.newest("Z") is None
    assert loop.heads("Z") == ("A", "B")
    assert loop.line("A") == ("A",)
    assert ("loop", ("A", "B")) in kinds(loop)
    # Nothing is completed into it.
    assert loop.completed("A")[:2] == (None, "B")
    assert loop.completed("B")[:2] == (None, "A")


def test_a_half_pair_is_not_completed_into_a_loop() -> None:
    loop = chains(A=("B", None), B=("A", None))
    assert loop.completed("A") == Pointers("B", None, "active")
    assert loop.completed("B") == Pointers("A", None, "active")
    assert ("loop", ("A", "B")) in kinds(loop)


def test_pointing_at_itself_and_at_nothing_is_reported_and_hides_nothing() -> None:
    odd = chains(A=("A", "A", "superseded"), B=("gone", None), C=(None, "gone", "superseded"))
    assert [odd.status(i) for i in "ABC"] == ["active", "active", "active"]
    assert [odd.newest(i) for i in "ABC"] == ["A", "B", "C"]
    assert kinds(odd) == [("dangling", ("B", "gone")), ("dangling", ("C", "gone")), ("self", ("A",))]


def test_superseded_by_nothing_stays_as_it_was_written() -> None:
    orphan = chains(A=(None, None, "superseded"))
    assert orphan.status("A") == "superseded"
    assert kinds(orphan) == [("orphan", ("A",))]


def test_partners_that_name_different_ones_are_reported() -> None:
    uneven = chains(A=(None, "C", "superseded"), B=(None, "C", "superseded"), C=("B", None))
    assert ("uneven", ("A", "C", "B")) in kinds(uneven)
    assert uneven.newest("A") == uneven.newest("B") == "C"
    assert uneven.predecessors("C") == ("A", "B")
    assert uneven.completed("C").supersedes == "B"


def test_the_newest_may_itself_be_out_of_use() -> None:
    assert chains(A=(None, "B", "superseded"), B=("A", None, "retracted")).newest("A") == "B"


@pytest.mark.parametrize("written", ["both", "old", "new"])
def test_a_chain_of_five_thousand_has_its_newest_without_recursion(written: str) -> None:
    n = 5000
    names = [f"{i:05}" for i in range(n)]
    entries = {
        name: Pointers(
            names[i - 1] if i and written != "old" else None,
            names[i + 1] if i + 1 < n and written != "new" else None,
            "active",
        )
        for i, name in enumerate(names)
    }
    long = Chains(entries)
    assert {long.newest(name) for name in names} == {names[-1]}
    assert [long.status(name) for name in names].count("active") == 1
    assert long.line(names[2500]) == tuple(names)
    assert long.heads(names[0]) == (names[-1],)
    ring = Chains(entries | {names[-1]: Pointers(names[-2], names[0], "active")})
    assert {ring.newest(name) for name in names} == {None}
    assert {ring.status(name) for name in names} == {"active"}
    [loop] = [fault for fault in ring.faults() if fault.kind == "loop"]
    assert loop.ids == tuple(names)
    assert len(loop.text) < 200


few = st.sampled_from(["A", "B", "C", "D", "E"])
pointers = st.builds(
    Pointers, st.none() | few, st.none() | few, st.sampled_from(["active", "superseded", "retracted"])
)


@given(st.dictionaries(few, pointers))
def test_whatever_the_pointers_say_somebody_of_each_chain_stays_found(entries: dict[str, Pointers]) -> None:
    given_chains = Chains(entries)
    completed = {name: given_chains.completed(name) for name in entries}
    for name, written in entries.items():
        heads = given_chains.heads(name)
        assert heads
        newest = given_chains.newest(name)
        if newest is not None:
            assert heads == (newest,)
            assert given_chains.successors(newest) == ()
        # A memory is hidden by its chain only if a newer one is here that is not hidden by the chain in turn.
        if given_chains.status(name) == "superseded" and written.superseded_by is not None:
            [after] = given_chains.successors(name)
            while given_chains.status(after) == "superseded" and given_chains.successors(after):
                [after] = given_chains.successors(after)
        # Completing adds, it never takes away or turns round.
        for before, now in zip(written[:2], completed[name][:2], strict=True):
            assert now == before if before is not None else now is None or now in entries
    # Reading the completed pointers again finds no edge that was not there, so no new loop or fork.
    again = Chains(completed)
    assert all(again.successors(name) == given_chains.successors(name) for name in entries)
    assert [f for f in again.faults() if f.kind in ("loop", "fork")] == [
        f for f in given_chains.faults() if f.kind in ("loop", "fork")
    ]

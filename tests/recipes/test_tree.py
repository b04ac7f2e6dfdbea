"""The steps of a tree lock, in every interleaving: conflicting operations never meet, and no wait goes in a circle.

A small world is explored, state by state: some operations, each a list of steps; resources with a capacity and a queue,
first come, first served, as in rules/locks. An operation that holds everything may stay or leave.
"""

from __future__ import annotations

import itertools

import pytest

from fairlock.recipes import path_tree_locks_base
from fairlock.recipes.path_tree_locks_base import ALL, MANY, NO_WRITERS, Mode, Step, steps
from fairlock.rules.locks import EXCLUSIVE

Operation = tuple[str, Mode]
Program = tuple[Step, ...]
# Per operation: the number of its next step, and whether it waits in a queue for it; -1: it holds everything; -2: over.
State = tuple[tuple[tuple[int, bool], ...], tuple[tuple[str, tuple[int, ...]], ...]]

NODES = ["a", "a/b", "a/c", "a/b/d", "a/b/e"]
OPERATIONS: list[Operation] = [(path, mode) for path in NODES for mode in ("read", "write")]


def related(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def conflict(one: Operation, other: Operation) -> bool:
    return related(one[0], other[0]) and "write" in (one[1], other[1])


def size(step: Step) -> tuple[int, int]:
    """Return the weight of a step and the capacity of its resource."""
    if step.kind == "subtree":
        return step.weight, ALL
    return (1 if step.kind == "read" else EXCLUSIVE), EXCLUSIVE


def used(programs: list[Program], at: tuple[tuple[int, bool], ...], resource: str) -> int:
    """Return how much of a resource is held."""
    total = 0
    for program, (place, _) in zip(programs, at, strict=True):
        held = 0
        for step in program[: len(program) if place == -1 else 0 if place == -2 else place]:
            if step.resource == resource:
                held = 0 if step.kind == "release" else size(step)[0]
        total += held
    return total


def moves(programs: list[Program], state: State) -> list[State]:
    """Return the states after one step of one operation."""
    at, queues = state
    waiting = dict(queues)
    found = []
    for who, (place, queued) in enumerate(at):
        if place == -2:
            continue

        def after(place: int, queued: bool, lines: dict[str, tuple[int, ...]], who: int = who) -> State:
            new = tuple((place, queued) if i == who else each for i, each in enumerate(at))
            return new, tuple(sorted((name, line) for name, line in lines.items() if line))

        if place == -1:
            found.append(after(-2, False, waiting))
            continue
        step = programs[who][place]
        follows = place + 1 if place + 1 < len(programs[who]) else -1
        if step.kind == "release":
            found.append(after(follows, False, waiting))
            continue
        line = waiting.get(step.resource, ())
        weight, capacity = size(step)
        first = not line or line[0] == who
        if first and used(programs, at, step.resource) + weight <= capacity:
            rest = waiting | {step.resource: tuple(each for each in line if each != who)}
            found.append(after(follows, False, rest))
        elif not queued:
            found.append(after(place, True, waiting | {step.resource: (*line, who)}))
    return found


def problems(operations: tuple[Operation, ...]) -> list[str]:
    """Explore all states; return what must not be."""
    programs = [tuple(path_tree_locks_base.steps(*each)) for each in operations]
    start: State = (tuple((0, False) for _ in operations), ())
    seen, new = {start}, [start]
    found = []
    while new:
        state = new.pop()
        inside = [operations[i] for i, (place, _) in enumerate(state[0]) if place == -1]
        found += [f"{one} and {two} meet" for one, two in itertools.combinations(inside, 2) if conflict(one, two)]
        after = moves(programs, state)
        if not after and any(place != -2 for place, _ in state[0]):
            found.append(f"{operations} wait for each other: {state}")
        for each in after:
            if each not in seen:
                seen.add(each)
                new.append(each)
    return found


def test_two_of_all_kinds_never_meet_and_never_wait_for_each_other() -> None:
    assert [each for pair in itertools.product(OPERATIONS, repeat=2) for each in problems(pair)] == []


def test_two_that_do_not_conflict_can_be_inside_together() -> None:
    for one, two in itertools.product(OPERATIONS, repeat=2):
        programs = [tuple(steps(*one)), tuple(steps(*two))]
        state: State = (((-1, False), (0, False)), ())
        while state[0][1][0] != -1:
            after = [each for each in moves(programs, state) if each[0][0] == (-1, False) and not each[0][1][1]]
            if not after:
                break
            (state,) = after
        assert (state[0][1][0] == -1) != conflict(one, two), f"{one} and {two}"


def of_all_kinds(number: int) -> list[tuple[Operation, ...]]:
    return list(itertools.combinations_with_replacement(OPERATIONS, number))


def test_all_three_at_a_time() -> None:
    assert [each for three in of_all_kinds(3) for each in problems(three)] == []


@pytest.mark.soak
def test_all_four_at_a_time() -> None:
    assert [each for four in of_all_kinds(4) for each in problems(four)] == []


def test_a_writer_that_does_not_wait_for_readers_above_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(path: str, mode: Mode) -> list[Step]:
        target = f"tree:{path}"
        return [each for each in steps(path, mode) if mode == "read" or each.resource in (target, f"{target}/")
                or each.kind == "subtree"]

    monkeypatch.setattr(path_tree_locks_base, "steps", without)
    assert problems((("a", "read"), ("a/b", "write"))) != []


def test_a_reader_that_does_not_wait_for_writers_below_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(path: str, mode: Mode) -> list[Step]:
        moment = ("release", NO_WRITERS) if mode == "read" else ()
        return [each for each in steps(path, mode) if each.kind not in moment and each.weight not in moment]

    monkeypatch.setattr(path_tree_locks_base, "steps", without)
    assert problems((("a", "read"), ("a/b", "write"))) != []


def test_another_order_is_noticed_as_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_below(path: str, mode: Mode) -> list[Step]:
        kept = [each for each in steps(path, mode) if each.kind != "release"]
        return kept[::-1] if "/" in path else kept

    monkeypatch.setattr(path_tree_locks_base, "steps", from_below)
    assert any("wait for each other" in each for each in problems((("a", "write"), ("a/b", "write"))))


def test_the_weights_leave_room_for_many() -> None:
    assert ALL // MANY == 2047
    assert NO_WRITERS + MANY > ALL
    assert NO_WRITERS + (MANY - 1) <= ALL, "a million readers below do not keep a reader out"

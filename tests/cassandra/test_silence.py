"""A sign of life distinguishes a node that is slow to answer from one that hangs. No server and no time is needed."""

from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import OperationTimedOut

from fairlock.engine.run_sync import run
from fairlock.stores import cassandra
from fairlock.stores.base import OutcomeUnknown
from fairlock.stores.cassandra import url
from fairlock.stores.cassandra.statement_sender import ALIVE, GRACE, QUIET, DriverSession
from fairlock.stores.shared_connections import Share
from fairlock.sync.runtime import ThreadRuntime
from tests.mutate_source import rebuild


class Patient(ThreadRuntime):
    """A runtime that never sleeps: it records how long it would have waited, and runs what happens meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []
        self.later: list[Any] = []

    def event(self) -> Any:
        runtime = self

        class Event:
            happened = False

            def set(self) -> None:
                self.happened = True

            async def wait(self, seconds: float) -> bool:
                if not self.happened:
                    runtime.waited.append(seconds)
                    if runtime.later:
                        runtime.later.pop(0)()
                return self.happened

        return Event()


class Nodes:
    """A session with one node. `signs`: whether it gives a sign of life; `answers`: whether it answers in the end."""

    def __init__(self, runtime: Patient, signs: bool, answers: bool) -> None:
        self.runtime, self.signs, self.answers = runtime, signs, answers
        self.asked_for_a_sign: list[Any] = []

    def execute_async(self, statement: Any, timeout: float, host: Any = None) -> Any:
        future = SimpleNamespace(_current_host=SimpleNamespace(endpoint="h1"), has_more_pages=False)
        if host is not None:
            self.asked_for_a_sign.append(host.endpoint)
            future.add_callbacks = lambda came, failed: came([1]) if self.signs else failed(OperationTimedOut())
        else:
            row = SimpleNamespace(_asdict=lambda: {"applied": True})
            later = [lambda: None, *([lambda: self.came([row])] if self.answers else [])]
            self.runtime.later = later

            def wait(came: Any, failed: Any) -> None:
                self.came = came

            future.add_callbacks = wait
        return future


def asked(signs: bool, answers: bool, **options: float) -> tuple[Any, Patient, Nodes, Any]:
    runtime = Patient()
    found = url.read("cassandra://h1/k", options)
    driver = DriverSession(found)
    sender = cassandra.StatementSender(Share(runtime, ("test", object()), lambda: driver), runtime)
    nodes = Nodes(runtime, signs, answers)
    driver.session = nodes
    driver.prepared = {"UPDATE": SimpleNamespace(bind=lambda values: SimpleNamespace())}
    try:
        return run(sender.transact("UPDATE", ())), runtime, nodes, found.route
    except OutcomeUnknown as doubt:
        return doubt, runtime, nodes, found.route


def test_one_that_is_slow_and_lives_is_waited_for() -> None:
    told, runtime, nodes, route = asked(signs=True, answers=True)
    assert told == {"applied": True}
    assert nodes.asked_for_a_sign == ["h1"]
    assert runtime.waited == [QUIET, 3.0 - QUIET + GRACE]
    assert not route._suspects


def test_one_that_lives_and_never_answers_is_an_unknown_outcome_after_the_timeout() -> None:
    told, runtime, _, route = asked(signs=True, answers=False)
    assert isinstance(told, OutcomeUnknown)
    assert runtime.waited == [QUIET, 3.0 - QUIET + GRACE]
    assert list(route._suspects) == ["h1"]


def test_one_that_gives_no_sign_of_life_is_not_waited_for() -> None:
    told, runtime, nodes, route = asked(signs=False, answers=True)
    assert isinstance(told, OutcomeUnknown), "what was sent may yet be done"
    assert nodes.asked_for_a_sign == ["h1"]
    assert sum(runtime.waited) <= QUIET + ALIVE, "less than a grant lasts that was only seen"
    assert list(route._suspects) == ["h1"], "others are asked first"


def test_whose_patience_is_short_asks_for_no_sign() -> None:
    _, runtime, nodes, _ = asked(signs=False, answers=False, timeout=1.0)
    assert nodes.asked_for_a_sign == []
    assert runtime.waited == [QUIET, 1.0 - QUIET + GRACE]


@pytest.mark.parametrize(
    ("test", "words"),
    [(test_one_that_gives_no_sign_of_life_is_not_waited_for, "True"),
     (test_one_that_is_slow_and_lives_is_waited_for, "False")],
)  # fmt: skip
def test_the_mistake_is_noticed(test: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild(monkeypatch, ("stores/cassandra/statement_sender.py", "await self._lives(future._current_host)", words))
    with pytest.raises(AssertionError):
        test()

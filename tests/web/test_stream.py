"""The stream of a page: what is new after each look, catching up, a store that is down, and the application as a part
of another one."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

import fairlock
import fairlock.aio
import fairlock.web
from fairlock.web import event_journal_file
from fairlock.web.snapshot_poller import Poller, Reader
from tests.web.conftest import UI, until


def test_a_reader_gets_all_rows_once_and_then_what_changed(ui: UI) -> None:
    with ui.locks.lock("steady", lease=300):
        stream = ui.stream()
        for first, _ in stream:
            if any(row["name"] == "steady" for row in first["rows"]):
                break
        for _ in range(2):
            later, number = next(stream)
            assert not later["whole"]
            assert [row["name"] for row in later["rows"]] == []
        with ui.locks.lock("passing"):
            until(lambda: "passing" in [row["name"] for row in next(stream)[0]["rows"]])
        until(lambda: "passing" in next(stream)[0]["gone"])
        stream.close()  # type: ignore[attr-defined]
        # It missed that `passing` came and went. It catches up by the last id that it has.
        missed, _ = next(ui.stream(last_id=number))
        assert not missed["whole"]
        assert "passing" in missed["gone"]
        assert "steady" not in [row["name"] for row in missed["rows"]]
        assert {event["kind"] for event in missed["events"] if event["name"] == "passing"} == {"acquired", "released"}


@pytest.mark.parametrize("last_id", ["", "x", "..", "deadbeef.1.1", "a.b.c", "-1.-1.-1", "1.99999999999999999999.1"])
def test_an_id_that_is_not_ours_gets_all_rows(ui: UI, last_id: str) -> None:
    with ui.locks.lock("always"):
        state, _ = next(ui.stream(last_id=last_id))
    assert state["whole"]


def test_a_row_has_the_seconds_of_now(ui: UI) -> None:
    with ui.locks.lock("timed", lease=100):
        time.sleep(1)
        for state, _ in ui.stream():
            for row in state["rows"]:
                if row["name"] == "timed":
                    (one,) = row["holders"]
                    assert 0.9 < one["held_for"] + state["age"] < 5
                    assert 60 < one["expires_in"] <= 100
                    assert one["lease"] <= 100
                    return


# Without a server: the poller and the routes by themselves


class Store:
    """Stands for a client whose store fails on demand."""

    store = "test://"

    def __init__(self) -> None:
        self.locks = fairlock.connect("memory://")
        self.session = self.locks.session
        self.down = False

    def snapshot(self, *, namespaces: bool = False) -> fairlock.Snapshot:
        if self.down:
            raise fairlock.StoreError("The store does not reply.")
        return self.locks.snapshot()

    def audit(self, name: str) -> tuple[fairlock.AuditLine, ...]:
        return self.locks.audit(name)


async def state_of(poller: Poller, reader: Reader) -> tuple[Reader, dict[str, Any]]:
    reached, state = await poller.state_since(reader)
    return reached, json.loads(state)


def test_a_store_that_is_down_is_shown_and_the_rows_stay() -> None:
    async def scene() -> None:
        store = Store()
        poller = Poller(store, event_journal_file.Journal())  # type: ignore[arg-type]
        store.locks.lock("x").acquire()
        await poller._look()
        reader, first = await state_of(poller, Reader())
        assert [row["name"] for row in first["rows"]] == ["x"]
        store.down = True
        await poller._look()
        reader, second = await state_of(poller, reader)
        assert second["error"] == "The store does not reply."
        assert second["gone"] == []
        assert [event["kind"] for event in second["events"]] == ["store_down"]
        store.down = False
        await poller._look()
        _, third = await state_of(poller, reader)
        assert (third["error"], [event["kind"] for event in third["events"]]) == ("", ["store_up"])
        await poller.stop()
        poller.journal.close()
        store.locks.close()

    asyncio.run(scene())


@pytest.mark.parametrize("broken", ["snapshot", "audit"])
def test_a_defect_of_a_look_is_shown_and_the_next_look_follows(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before, the poller ended silently, and the page showed nothing new for as long as its server ran."""

    async def scene() -> None:
        monkeypatch.setattr("fairlock.web.snapshot_poller.EVERY", 0.02)
        store = Store()
        poller = Poller(store, event_journal_file.Journal())  # type: ignore[arg-type]
        poller.readers = 1
        lease = store.locks.lock("x").acquire()
        poller.start()

        async def until_shown(text: str) -> None:
            async with asyncio.timeout(30):
                while text not in poller.view.error or not (text or poller.view.snapshot):
                    await poller.next_look.wait()

        await until_shown("")
        await poller.next_look.wait()
        with monkeypatch.context() as patch:
            patch.setattr(Store, broken, None)
            lease.release()  # so that the look asks for audit lines
            await until_shown("The last snapshot failed (TypeError: ")
            _, state = await state_of(poller, Reader())
            assert "is tried again" in state["error"]
        async with asyncio.timeout(30):
            while poller.view.error or poller.view.rows:
                await poller.next_look.wait()
        assert [one.levelname for one in caplog.records] == ["ERROR"], "it is logged once, with its traceback"
        await poller.stop()
        poller.journal.close()
        store.locks.close()

    asyncio.run(scene())


def test_a_journal_that_fails_is_shown_and_the_table_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        store = Store()
        poller = Poller(store, event_journal_file.Journal(tmp_path / "journal.db"))  # type: ignore[arg-type]
        (tmp_path / "journal.db-lock").mkdir()  # nor can the lock of its writer be made
        with store.locks.lock("x"):
            await poller._look()
            reader, first = await state_of(poller, Reader())
            assert [row["name"] for row in first["rows"]] == ["x"]
        poller.journal._db.execute("DROP TABLE events")
        poller.journal._db.execute("CREATE VIEW events AS SELECT 1 AS id, 2 AS at")
        await poller._look()
        _, second = await state_of(poller, reader)
        assert second["error"].startswith("The journal cannot be ")
        assert second["gone"] == ["x"]
        await poller.stop()
        poller.journal.close()
        store.locks.close()

    asyncio.run(scene())


def test_a_slow_store_is_looked_at_less_often_and_one_that_is_down_as_often_as_before() -> None:
    async def scene() -> None:
        store = Store()
        poller = Poller(store, event_journal_file.Journal())  # type: ignore[arg-type]
        inner = store.snapshot

        def slow(**options: Any) -> Any:
            time.sleep(0.2)
            return inner(**options)

        store.snapshot = slow  # type: ignore[method-assign]
        assert await poller._look() >= 0.2, "nine times as long is the pause"
        store.down = True
        assert await poller._look() == 0.0, "its timeout has been pause enough"
        poller.journal.close()
        store.locks.close()

    asyncio.run(scene())


def test_it_looks_less_often_when_nobody_reads_and_at_once_when_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        monkeypatch.setattr("fairlock.web.snapshot_poller.EVERY", 0.05)
        store = Store()
        poller = Poller(store, event_journal_file.Journal())  # type: ignore[arg-type]
        poller.start()
        await asyncio.sleep(0.6)
        assert poller.view.look == 1
        poller.readers = 1
        poller.hurry()
        await asyncio.sleep(0.6)
        assert 4 <= poller.view.look <= 14
        await poller.stop()
        poller.journal.close()
        store.locks.close()

    asyncio.run(scene())


def test_two_pages_with_one_journal_write_each_event_once(tmp_path: Path) -> None:
    async def scene() -> None:
        store = Store()
        files = [event_journal_file.Journal(tmp_path / "journal.db") for _ in range(2)]
        pollers = [Poller(store, file) for file in files]  # type: ignore[arg-type]
        with store.locks.lock("x"):
            for poller in pollers:
                await poller._look()
        for poller in pollers:
            await poller._look()
        for poller in pollers:
            _, state = await state_of(poller, Reader())
            assert [event["kind"] for event in state["events"]] == ["acquired", "released"]
        for poller in pollers:
            await poller.stop()
            poller.journal.close()
        store.locks.close()

    asyncio.run(scene())


async def ask(app: Any, path: str, headers: dict[str, str] | None = None) -> Any:
    """Send one request to an ASGI application and return status and body."""
    given = {"host": "ops.example", **(headers or {})}
    path, _, query = path.partition("?")
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()], "root_path": "",
        "scheme": "https", "http_version": "1.1", "client": ("127.0.0.1", 1), "server": ("ops.example", 443),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


def user_of(request: Request) -> str | None:
    return request.headers.get("x-user")


async def user_of_async(request: Request) -> str | None:
    return request.headers.get("x-user")


@pytest.mark.parametrize("who", [user_of, user_of_async])
@pytest.mark.parametrize("connect", [fairlock.connect, fairlock.aio.connect])
def test_in_another_application_its_own_login_decides(
    who: Callable[[Request], str | Awaitable[str | None] | None], connect: Callable[..., Any]
) -> None:
    def may(user: str, action: str, name: str) -> bool:
        return user == "root" or (user == "alice" and action == "look") or (user == "bob" and name != "theirs")

    async def scene() -> None:
        locks = connect("memory://")
        page = fairlock.web.app(locks, who=who, may=may, hosts=["ops.example"])
        app = Starlette(routes=[Mount("/locks", page)])
        assert (await ask(app, "/locks/"))[0] == 200
        assert (await ask(app, "/locks/", {"host": "evil.example"}))[0] == 421
        assert (await ask(app, "/locks/api/name?name=x"))[0] == 401
        assert (await ask(app, "/locks/api/name?name=x", {"x-user": "mallory"}))[0] == 403
        for user, name, allowed in (("alice", "x", False), ("bob", "x", True), ("bob", "theirs", False)):
            status, body = await ask(app, f"/locks/api/name?name={name}", {"x-user": user})
            assert status == 200
            assert json.loads(body)["evict"] is allowed
        closed = locks.close()
        if closed is not None:
            await closed

    asyncio.run(scene())


def test_bad_options_are_sentences() -> None:
    with fairlock.connect("memory://") as locks, pytest.raises(fairlock.ConfigError, match="list of names"):
        fairlock.web.app(locks, who=user_of, hosts="ops.example")

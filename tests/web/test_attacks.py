"""Attacks on the server of the page: foreign hosts and sites, missing tokens, paths that lead out, slow readers."""

import re
import socket
import time
from contextlib import ExitStack, suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fairlock
import fairlock.web
from tests.web.conftest import UI

DATA = ["/api/stream", "/api/name?name=x", "/api/history?from=0&to=9", "/metrics"]
FILES = ["/", "/static/app.js", "/static/vendor/preact.js", "/static/style.css"]
STATIC = Path(fairlock.web.__file__).with_name("static")


@pytest.mark.parametrize("path", [*DATA, *FILES, "/api/ask", "/api/evict", "/nothing-here"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:7070", "127.0.0.1.evil.example", "", "x@127.0.0.1"])
def test_a_name_that_was_rebound_to_this_machine_gets_no_reply(ui: UI, path: str, host: str) -> None:
    reply = ui.ask(path, Host=host)
    assert reply.status in (400, 421)
    assert b"token" not in reply.body.lower().replace(b"--allow-host", b"")


def test_every_name_of_this_machine_and_any_port_of_it_is_a_host(ui: UI) -> None:
    for host in ("127.0.0.1:1234", "localhost", "LOCALHOST:80", "[::1]:7070"):
        assert ui.ask("/", Host=host).status == 200


@pytest.mark.parametrize("path", DATA)
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic abc", "Bearer for-prometheus-not"])
def test_without_the_token_nothing_is_shown(ui: UI, path: str, header: str | None) -> None:
    with ui.locks.lock("a-secret-name"):
        reply = ui.ask(path, Authorization=header)
        assert reply.status == 401
        body = reply.body
    assert b"secret" not in body
    assert b"`fairlock ui` printed" in body


def test_a_token_in_the_query_is_not_accepted(ui: UI) -> None:
    assert ui.ask(f"/api/name?name=x&token={ui.token}", Authorization=None).status == 401


def test_the_files_of_the_page_contain_no_token_and_no_data(ui: UI) -> None:
    with ui.locks.lock("another-secret"):
        for path in FILES:
            body = ui.ask(path, Authorization=None).body
            assert ui.token.encode() not in body
            assert b"another-secret" not in body


def test_the_token_of_the_metrics_opens_only_the_metrics(ui: UI) -> None:
    for path in DATA:
        reply = ui.ask(path, Authorization="Bearer for-prometheus")
        assert reply.status == (200 if path == "/metrics" else 401)
    assert ui.post(EVICT, Authorization="Bearer for-prometheus").status == 401
    assert ui.post(ASK, "/api/ask", Authorization="Bearer for-prometheus").status == 401


EVICT = {"name": "x", "ticket": "abc", "reason": "a test", "at_once": False}
ASK = {"name": "x", "ticket": "abc", "reason": "a test"}


@pytest.mark.parametrize("headers, status", [
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": None}, 403),
    ({"Origin": "file://127.0.0.1"}, 403),
    ({"Origin": "http://127.0.0.1:1"}, 403),
    ({"Sec_Fetch_Site": "cross-site"}, 403),
    ({"Sec_Fetch_Site": "same-site"}, 403),
    ({"X_Fairlock_CSRF": None}, 403),
    ({"X_Fairlock_CSRF": "0" * 64}, 403),
    ({"Content_Type": "text/plain"}, 415),
    ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ({"Authorization": None}, 401),
    ({}, 200),
])  # fmt: skip
def test_a_post_from_another_site_is_refused(ui: UI, headers: dict[str, str | None], status: int) -> None:
    with suppress(fairlock.LeaseLost), ui.locks.lock("x"):
        body = {**EVICT, "ticket": ui.holders("x")[0].ticket, "at_once": True, "typed": "x"}
        assert ui.post(body, **headers).status == status
        assert bool(ui.holders("x")) == (status != 200)
    with ui.locks.lock("x"):
        (holder,) = ui.holders("x")
        assert ui.post({**ASK, "ticket": holder.ticket}, "/api/ask", **headers).status == status
        assert (ui.holders("x")[0].asked is not None) == (status == 200)


@pytest.mark.parametrize("body, status", [
    (b"not json", 400), (b"[" * 9000, 400), (b'"' + b"x" * 20_000 + b'"', 400), ([], 400), ({"name": "x"}, 400),
    ({**EVICT, "at_once": "yes"}, 400), ({**EVICT, "ticket": ""}, 400), ({**EVICT, "reason": "  "}, 400),
    ({**EVICT, "reason": "x" * 5000}, 400), ({**EVICT, "name": "\x00"}, 400),
    ({**EVICT, "at_once": True}, 400), ({**EVICT, "at_once": True, "typed": "X"}, 400),
])  # fmt: skip
def test_a_bad_eviction_is_a_sentence_and_changes_nothing(ui: UI, body: object, status: int) -> None:
    with ui.locks.lock("x"):
        reply = ui.post(body)
        assert reply.status == status
        assert reply.body.decode().rstrip().endswith(".")
        assert ui.holders("x")[0].expires_in > 20


@pytest.mark.parametrize("body", [
    b"not json", [], {"name": "x"}, {**ASK, "ticket": ""}, {**ASK, "ticket": 5}, {**ASK, "reason": " "},
    {**ASK, "reason": "x" * 300}, {**ASK, "reason": "a\x1bb"}, {**ASK, "at_once": True, "typed": "x"},
])  # fmt: skip
def test_a_bad_request_to_release_is_a_sentence_and_asks_nobody(ui: UI, body: object) -> None:
    with ui.locks.lock("x"):
        if isinstance(body, dict) and body.get("ticket") == "abc":
            body = {**body, "ticket": ui.holders("x")[0].ticket}
        reply = ui.post(body, "/api/ask")
        assert reply.status == 400
        assert reply.body.decode().rstrip().endswith(".")
        assert ui.holders("x")[0].asked is None


def test_a_page_that_is_read_only_refuses_to_ask_and_to_evict(read_only: UI) -> None:
    with read_only.locks.lock("x"):
        ticket = read_only.holders("x")[0].ticket
        assert read_only.post({**ASK, "ticket": ticket}, "/api/ask").status == 403
        assert read_only.holders("x")[0].asked is None
        reply = read_only.post({**EVICT, "ticket": read_only.holders("x")[0].ticket})
        assert reply.status == 403
        assert b"--admin" in reply.body
        assert read_only.holders("x")


@pytest.mark.parametrize("path", [
    "/static/../asgi_app.py", "/static/..%2fasgi_app.py", "/static/%2e%2e/asgi_app.py", "/static//etc/passwd",
    "/static/vendor/../../asgi_app.py", "/static/....//asgi_app.py", "/static/..\\asgi_app.py", "//etc/passwd",
    "/static/", "/static/vendor", "/../../../../etc/passwd", "/static/%00", "/static/app.js%00.css",
])  # fmt: skip
def test_no_path_leads_out_of_the_files_of_the_page(ui: UI, path: str) -> None:
    reply = ui.ask(path)
    assert reply.status in (400, 404)
    assert b"import" not in reply.body


@pytest.mark.parametrize("path", [*FILES, *DATA, "/nothing-here"])
def test_every_reply_keeps_foreign_code_out(ui: UI, path: str) -> None:
    headers = ui.ask(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "uvicorn" not in str(headers)
    assert "Access-Control-Allow-Origin" not in headers


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    """The policy would stop them; this finds one before a browser does."""

    class Look(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag != "style"
            names = dict(attributes)
            assert tag != "script" or names.get("src", "").startswith("./static/")  # type: ignore[union-attr]
            assert not [name for name in names if name.startswith("on") or name == "style"]

    Look().feed((STATIC / "index.html").read_text())
    for path in STATIC.glob("*.js"):
        for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
            assert word not in path.read_text(), path.name


def test_a_hundred_readers_that_do_not_read_harm_nobody(ui: UI) -> None:
    """Each has a small buffer, and what it does not read is not kept for it."""
    names = [f"many:{number}" for number in range(150)]
    with ui.locks.lock_all(*names), ExitStack() as stack:
        next(ui.stream())
        before = memory_of(ui.process.pid)
        for _ in range(100):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", int(ui.netloc.split(":")[1]))))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"GET /api/stream HTTP/1.1\r\nHost: {ui.netloc}\r\nAuthorization: Bearer {ui.token}\r\n\r\n"
            slow.sendall(head.encode())
        time.sleep(3)
        began = time.monotonic()
        fast = ui.stream()
        first, _ = next(fast)
        assert {row["name"] for row in first["rows"]} >= set(names)
        with ui.locks.lock("seen-beside-slow-ones"):
            while not any(row["name"] == "seen-beside-slow-ones" for row in next(fast)[0]["rows"]):
                assert time.monotonic() - began < 5
        assert memory_of(ui.process.pid) - before < 40_000
    assert ui.ask("/").status == 200


def memory_of(pid: int) -> int:
    """Return the resident memory in kB."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])


def test_json_of_a_name_cannot_end_a_message(ui: UI) -> None:
    """A name may contain what would begin a new event in the stream; JSON escapes it."""
    name = "a\u2028b</script>"
    with ui.locks.lock(name, note="data: {}"):
        for _, (state, _) in zip(range(5), ui.stream(), strict=False):
            if name in [row["name"] for row in state["rows"]]:
                return
    pytest.fail("the name was not shown")

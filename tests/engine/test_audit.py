"""Audit lines: how they are kept, and that they never stand in the way of the command."""

import logging

import pytest

import fairlock
from fairlock import AuditLine, ReleaseRequest
from fairlock.errors import StoreError
from fairlock.rules.locks import audit_lines
from fairlock.stores.base import OutcomeUnknown
from fairlock.stores.keys import SEPARATOR, audit_key, is_audit, is_queue, queue_key

LINE = AuditLine(1_700_000_000.123456, "evicted", "öps", 'a "reason"\u2028, [with] commas', "worker", "abc-1")


def test_lines_survive_the_wire_and_the_oldest_goes() -> None:
    lines: list[AuditLine] = []
    for number in range(audit_lines.NEWEST + 5):
        lines = audit_lines.add(lines, LINE._replace(reason=str(number)))
        assert audit_lines.decode(audit_lines.encode(lines)) == lines
    assert (len(lines), lines[0].reason, lines[-1].reason) == (audit_lines.NEWEST, "104", "5")
    at = 1_700_000_000_123_456
    assert audit_lines.decode_line(at, audit_lines.encode_line(LINE)) == LINE


@pytest.mark.parametrize("text", [None, "", "[]", "null", "{}", '["audit",1,[1,2]]', '["audit",9,5]', "[1", "\x00"])
def test_what_cannot_be_read_is_no_line(text: str | None) -> None:
    assert audit_lines.decode(text) == []


def test_a_damaged_line_costs_all_of_them_and_nothing_else() -> None:
    text = audit_lines.encode([LINE])
    assert audit_lines.decode(text.replace("worker", "wörker")) == []


def test_no_other_key_is_one_of_audit_lines() -> None:
    for name in ("x", f"space{SEPARATOR}x"):
        key = audit_key(name)
        assert is_audit(key) and not is_queue(key)
        for other in (name, queue_key(name), queue_key(name) + SEPARATOR + "item"):
            assert not is_audit(other)
            assert is_queue(other) == (other == queue_key(name))


@pytest.mark.parametrize("error", [StoreError("The disk is full."), OutcomeUnknown("no reply")], ids=type)
def test_an_audit_line_that_cannot_be_written_is_only_a_warning(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with fairlock.connect("memory://", owner="ops") as locks, locks.lock("x") as lease:
        backend = locks.session.backend

        async def fail(name: str, line: AuditLine) -> None:
            raise error

        backend.add_audit = fail  # type: ignore[method-assign]
        with caplog.at_level(logging.WARNING, logger="fairlock"):
            assert locks.ask("x", reason="test") == (lease.ticket,)
        assert f"'x' was asked, but the audit line about it may not have been written: {error}" in caplog.text
        lease.renew()
        assert lease.asked_to_release == ReleaseRequest("ops", "test")
        assert locks.audit("x") == ()

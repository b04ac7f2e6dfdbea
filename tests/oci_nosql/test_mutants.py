"""What guards a lock in OCI NoSQL is broken on purpose, on a fake of the service: each time a test fails."""

import time

import pytest

import fairlock
from fairlock.engine.run_sync import run
from fairlock.errors import ConfigError, StoreError
from fairlock.rules.locks import EXCLUSIVE, Acquire, Granted, Queued
from fairlock.stores.base import Row, RowSnapshot, Written
from tests.mutate_source import Mutant, put_to_the_test, rebuild
from tests.oci_nosql import test_clock as clocks
from tests.oci_nosql import test_errors as trouble
from tests.oci_nosql import test_names as names
from tests.oci_nosql import test_store as store
from tests.servers.fake_nosql import FakeNosql

TABLE, STORE, CLOCK, ROWS, ITEM_STORE, TROUBLE, ADDRESS = (
    f"stores/oci_nosql/{name}.py"
    for name in ("table_requests", "store", "clock", "row_format", "pool_items", "errors", "url")
)


def enter(ticket: str, lease: int = 5_000_000) -> Acquire:
    return Acquire(ticket, EXCLUSIVE, EXCLUSIVE, lease, True, True, 1, "", "somebody", "")


def test_nobody_is_dropped_by_a_guess_from_what_is_remembered(fake_nosql: FakeNosql) -> None:
    """The client that wrote last remembers the row, and would write it again without a read."""
    with fairlock.connect(fake_nosql.url()) as locks:
        backend = locks._session.backend
        assert isinstance(run(backend.call("x", enter("a"))).reply, Granted)
        assert isinstance(run(backend.call("x", enter("b"))).reply, Queued)
        ahead = int(time.time() * 1e6) + 60_000_000
        backend.store.clock._server._last = (ahead, *[backend.runtime.clock()] * 2)  # type: ignore[attr-defined]
        assert isinstance(run(backend.call("x", enter("b"))).reply, Queued)


def test_what_is_remembered_is_worth_nothing_once_others_have_written(fake_nosql: FakeNosql) -> None:
    with fairlock.connect(fake_nosql.url()) as one, fairlock.connect(fake_nosql.url()) as other:
        one.lock("x").acquire().release()
        assert other.lock("x").acquire(blocking=False)
        assert one.lock("x").acquire(blocking=False) is None


def test_of_two_who_make_a_row_one_has_made_it(fake_nosql: FakeNosql) -> None:
    with fairlock.connect(fake_nosql.url()) as locks:
        rows = locks._session.backend.store  # type: ignore[attr-defined]
        assert isinstance(run(rows.write(Row("x", 1, "me", "[1]"), None, 0, ())), Written)
        shown = run(rows.write(Row("x", 2, "you", "[2]"), None, 0, ()))
        assert isinstance(shown, RowSnapshot) and shown.row is not None and shown.row.body == "[1]"


def test_what_is_read_is_what_was_written_last(fake_nosql: FakeNosql) -> None:
    """The service keeps copies, and without an option to the contrary it returns one that may be old."""
    with fairlock.connect(fake_nosql.url()) as locks:
        for number in range(2):
            with locks.lock("x"):
                assert any(one.holders for one in locks.snapshot("x*").resources), "by a query"
                assert locks.lock("x").locked(), "by its key"
            assert not any(one.holders for one in locks.snapshot("x*", idle=True).resources)
            assert not locks.lock("x").locked(), number


def believing(_: FakeNosql) -> None:
    clocks.test_one_slow_reply_is_not_believed_but_a_slow_network_is()


MUTANTS = [
    Mutant("who remembers trusts a guess of the time", test_nobody_is_dropped_by_a_guess_from_what_is_remembered,
           ((STORE, "checks_time = False", "checks_time = True"),)),
    Mutant("who reads trusts a guess of the time", trouble.test_no_entry_is_dropped_by_an_estimated_time,
           ((STORE, "if sample is None or rests_on_it(each[0], sample[0]):", "if sample is None:"),)),
    Mutant("the etag is not named", test_what_is_remembered_is_worth_nothing_once_others_have_written,
           ((TABLE, 'more = {"if_match": etag} if etag else {}', "more = {}"),)),
    Mutant("a row is made although there is one", test_of_two_who_make_a_row_one_has_made_it,
           ((TABLE, 'option=None if etag else "IF_ABSENT"', "option=None"),)),
    Mutant("any copy of a row will do", test_what_is_read_is_what_was_written_last,
           ((TABLE, '{"consistency": "ABSOLUTE",', '{"consistency": "EVENTUAL",'),)),
    Mutant("any copy of all rows will do", test_what_is_read_is_what_was_written_last,
           ((TABLE, 'consistency="ABSOLUTE",\n', 'consistency="EVENTUAL",\n'),), raises=(StoreError,)),
    Mutant("a fault of the service is taken for a no", trouble.test_a_write_without_a_reply_is_repeated,
           ((TROUBLE, "        if writes:\n            return OutcomeUnknown(code + request)\n", ""),), (500,),
           raises=(StoreError,)),
    Mutant("no answer is taken for a no", trouble.test_a_write_without_a_reply_is_repeated,
           ((TROUBLE, "return OutcomeUnknown(what) if writes else gone(where, what)", "return gone(where, what)"),),
           ("lost",), raises=(StoreError,)),
    Mutant("too many requests are taken for a no", trouble.test_too_many_requests_are_waited_out,
           ((TABLE, "return RETRY_FOR if status == 429 else 0.0", "return 0.0"),), raises=(StoreError,)),
    Mutant("another etag is an error", test_what_is_remembered_is_worth_nothing_once_others_have_written,
           ((TABLE, "if error.status == 412:", "if error.status == 0:"),), raises=(StoreError,)),
    Mutant("the SDK tries again by itself", store.test_somebody_elses_client_is_used_without_its_retries,
           ((ADDRESS, "retry_strategy=oci.retry.NoneRetryStrategy(),", "retry_strategy=None,"),)),
    Mutant("control characters are not allowed", store.test_names_with_separators_come_back_intact,
           ((ADDRESS, "allow_control_chars=True", "allow_control_chars=False"),), raises=(TypeError,)),
    Mutant("only a reply within 20 ms gives the time", store.test_a_cycle_is_two_puts_however_slow_the_network_is,
           ((CLOCK, "VAGUE = 0.5", "VAGUE = 0.02"),), (0.05,)),
    Mutant("one slow reply is believed", believing,
           ((CLOCK, "OUTLIER = 3", "OUTLIER = 1000"),)),
    Mutant("a slow network is never believed", believing,
           ((CLOCK, "self._usual * 1.5", "self._usual"),)),
    Mutant("a table by OCID is looked for in the root", store.test_a_table_by_its_ocid_is_looked_up_once,
           ((TABLE, "self.compartment, self.name = found.compartment_id, found.name", "self.name = found.name"),),
           raises=(ConfigError,)),
    Mutant("a new table is reported as missing", store.test_a_new_table_is_used_by_what_schema_prints,
           ((TABLE, "if status == 404 and self._new:", "if False:"),), raises=(ConfigError,)),
    Mutant("a query asks for a sorted answer", store.test_items_come_in_the_order_of_adding,
           ((ITEM_STORE, "AND t.score <= $until", "AND t.score <= $until ORDER BY t.score"),), raises=(ConfigError,)),
    Mutant("items are taken as they come", store.test_items_come_in_the_order_of_adding,
           ((ITEM_STORE, "return sorted(rows, key=lambda row: (row.score, row.key))", "return rows"),)),
    Mutant("only the first page counts", store.test_items_come_in_the_order_of_adding,
           ((TABLE, "if not token or", "if True or"),)),
    Mutant("what is holders the service is shown", trouble.test_a_fault_of_the_service_hides_its_internals,
           ((TROUBLE, 'code = f"{error.status} {error.code}"', 'code = f"{error.status} {error.message}"'),)),
    Mutant("long keys are sent as they are", names.test_long_names_work_and_are_listed,
           ((ROWS, "if size > room:", "if False:"),), ("",), raises=(ConfigError,)),
    Mutant("a row is not asked for its name", names.test_two_names_with_one_digest_are_refused_and_not_mixed_up,
           ((ROWS, "if asked is not None and key != asked:\n            raise", "if False:\n            raise"),
            (ROWS, "if asked is not None and key != asked:\n        key,", "if False:\n        key,"))),
    Mutant("a namespace ends where halves of characters begin", names.test_a_namespace_is_listed_whole,
           ((ROWS, "low[: -len(SEPARATOR)] + NEXT", 'low + "\\U0010ffff"'),)),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.what for mutant in MUTANTS])
def test_the_mistake_is_noticed(mutant: Mutant, fake_nosql: FakeNosql, monkeypatch: pytest.MonkeyPatch) -> None:
    put_to_the_test(mutant, fake_nosql, monkeypatch)


def test_a_mutant_whose_words_have_drifted_away_fails_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LookupError, match="0 times"):
        rebuild(monkeypatch, (TABLE, "words that nobody would write", ""))

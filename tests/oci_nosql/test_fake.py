"""The fake of OCI's NoSQL service is as strict as the real data plane was seen to be: one test for each observation.

They ask through the real SDK, and by raw HTTP where the SDK cannot ask.
"""

import base64
import http.client
import json
import time
from typing import Any

import pytest

from fairlock.stores.oci_nosql import table_requests as ours
from tests.servers.fake_nosql import FakeNosql, FakeTable
from tests.servers.nosql_sql import Column

oci = pytest.importorskip("oci")
from oci.nosql.models import CreateTableDetails, QueryDetails, TableLimits, UpdateRowDetails  # noqa: E402

ROW = {"key": "a", "score": 1, "owner": "me", "body": [1]}


class Plane:
    """The service, asked through a client that allows everything that a client can."""

    def __init__(self, fake: FakeNosql) -> None:
        self.fake = fake
        self.client = fake.client(retry_strategy=oci.retry.NoneRetryStrategy(), allow_control_chars=True)

    def put(self, value: dict[str, Any], table: str = "locks", if_match: str = "", **how: Any) -> Any:
        details = UpdateRowDetails(**{"compartment_id": self.fake.compartment, "value": value, **how})
        return self.client.update_row(table, details, **({"if_match": if_match} if if_match else {}))

    def get(self, key: str, table: str = "locks") -> Any:
        return self.client.get_row(table, [f"key:{key}"], compartment_id=self.fake.compartment, consistency="ABSOLUTE")

    def query(self, statement: str, variables: dict[str, Any] | None = None, **how: Any) -> Any:
        details = {"compartment_id": self.fake.compartment, "statement": statement, "consistency": "ABSOLUTE"}
        return self.client.query(QueryDetails(**details, variables=variables), **how)

    def create(self, ddl: str, name: str = "made") -> Any:
        limits = TableLimits(max_read_units=50, max_write_units=50, max_storage_in_g_bs=1)
        place = {"name": name, "compartment_id": self.fake.compartment}
        return self.client.create_table(CreateTableDetails(**place, ddl_statement=ddl, table_limits=limits))

    def raw(self, method: str, path: str, body: Any = None, authorization: str = "Signature x") -> tuple[int, Any]:
        """By HTTP itself: the status and what came, as bytes if it is no JSON."""
        connection = http.client.HTTPConnection(self.fake.endpoint.removeprefix("http://"), timeout=20)
        head = {"authorization": authorization} if authorization else {}
        connection.request(method, f"/20190828{path}", None if body is None else json.dumps(body), head)
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        try:
            return reply.status, json.loads(text)
        except ValueError:
            return reply.status, text


@pytest.fixture
def plane(fake_nosql: FakeNosql) -> Plane:
    return Plane(fake_nosql)


def refused(status: int, code: str, message: str | None = None) -> Any:
    return pytest.raises(oci.exceptions.ServiceError, check=lambda no: (no.status, no.code) == (status, code),
                         match=message)  # fmt: skip


# -- queries


@pytest.mark.parametrize("name", ["$key", "$value", "$element", "$pos"])
def test_some_names_of_variables_are_reserved(plane: Plane, name: str) -> None:
    with refused(400, "InvalidParameter", "reserved"):
        plane.query(f"DECLARE {name} STRING; SELECT t.score FROM locks t WHERE t.key = {name}", {name: "a"})


@pytest.mark.parametrize("more", ["LIMIT 1", "OFFSET 1", "ORDER BY t.key", "ORDER BY t.score"])
def test_no_query_sorts_or_counts(plane: Plane, more: str) -> None:
    with refused(400, "InvalidParameter", "complex query"):
        plane.query(f"SELECT t.key FROM locks t {more}")
    with refused(400, "InvalidParameter", "complex query"):
        plane.query("SELECT count(*) FROM locks t")


def test_the_limit_of_the_request_is_kept_and_leads_to_a_next_page(plane: Plane) -> None:
    for number in range(5):
        plane.put({**ROW, "key": f"k{number}"})
    found, page = [], {}
    while True:
        reply = plane.query("SELECT t.key FROM locks t", limit=2, **page)
        assert len(reply.data.items) <= 2
        found += [each["key"] for each in reply.data.items]
        if not reply.headers.get("opc-next-page"):
            break
        page = {"page": reply.headers["opc-next-page"]}
    assert sorted(found) == [f"k{number}" for number in range(5)]


@pytest.mark.parametrize("name", ['"locks"', "OCID", "no-name", "_locks"])
def test_a_query_names_the_table_and_nothing_else(plane: Plane, name: str) -> None:
    with refused(400, "InvalidParameter"):
        plane.query(f"SELECT t.key FROM {plane.fake.ocid('locks') if name == 'OCID' else name} t")


def test_a_query_names_the_compartment(plane: Plane) -> None:
    assert plane.raw("POST", "/query", {"statement": "SELECT t.key FROM locks t"})[0] == 400
    with refused(404, "TableNotFound"):
        details = QueryDetails(compartment_id=plane.fake.tenancy, statement="SELECT t.key FROM locks t")
        plane.client.query(details)


@pytest.mark.parametrize(
    "statement, variables",
    [("DECLARE $a STRING; SELECT t.key FROM locks t WHERE t.key = $a", {}),
     ("DECLARE $a STRING; SELECT t.key FROM locks t WHERE t.key = $a", {"$a": 1}),
     ("DECLARE $a LONG; SELECT t.key FROM locks t WHERE t.score = $a", {"$a": "1"}),
     ("DECLARE $a LONG; SELECT t.key FROM locks t WHERE t.score = $a", {"$a": 1, "$b": 1}),
     ("SELECT t.key FROM locks t WHERE t.key = $a", {"$a": "x"}),
     ("SELECT t.key FROM locks t WHERE t.runtime = 1", {}),
     ("SELECT t.runtime FROM locks t", {}),
     ("SELECT t.key FROM locks t;", {}),
     ("SELECT t.key FROM locks t -- no comment", {})],
)  # fmt: skip
def test_a_query_that_makes_no_sense_is_refused(plane: Plane, statement: str, variables: dict[str, Any]) -> None:
    with refused(400, "InvalidParameter"):
        plane.query(statement, variables)


@pytest.mark.parametrize("how", [{"page": "bad"}, {"page": "YmFk"}, {"limit": 0}])
def test_a_page_that_makes_no_sense_is_refused(plane: Plane, how: dict[str, Any]) -> None:
    with refused(400, "InvalidParameter"):
        plane.query("SELECT t.key FROM locks t", **how)


def test_a_scan_comes_by_partition_and_not_by_key(plane: Plane) -> None:
    keys = [f"k{number}" for number in range(20)]
    for key in keys:
        plane.put({**ROW, "key": key})
    found = [each["key"] for each in plane.query("SELECT t.key FROM locks t").data.items]
    assert found != keys and sorted(found) == sorted(keys)


def test_a_query_tells_the_time_in_milliseconds(plane: Plane) -> None:
    plane.put(ROW)
    (shown,) = plane.query("SELECT current_time() AS now FROM locks t", limit=1).data.items
    assert len(shown["now"]) == len("2026-11-16T04:47:10.123Z") and shown["now"].endswith("Z")


# -- rows


def test_a_row_without_its_compartment_is_looked_for_in_the_root(plane: Plane) -> None:
    for table in ("locks", plane.fake.ocid("locks")):
        with refused(404, "TableNotFound"):
            plane.client.get_row(table, ["key:a"])
        with refused(404, "TableNotFound"):
            plane.client.delete_row(table, ["key:a"])
        with refused(404, "TableNotFound"):
            plane.put(ROW, table, compartment_id=None)


def test_control_characters_come_raw_and_the_sdk_stumbles_unless_it_is_told_to_allow_them(plane: Plane) -> None:
    keys = ["a\x1fb", "\x1f", "\x01\x02", 'q"q', "b\\u001f", "\n\t", "ü\U0001f600", "\x7f"]
    for key in keys:
        plane.put({**ROW, "key": key})
        assert plane.get(key).data.value["key"] == key
    place = {"compartment_id": plane.fake.compartment, "consistency": "ABSOLUTE"}
    path = f"/tables/locks/rows?key=key:%1f&compartmentId={plane.fake.compartment}&consistency=ABSOLUTE"
    assert b"\x1f" in plane.raw("GET", path)[1]
    with pytest.raises(TypeError):
        plane.fake.client().get_row("locks", ["key:\x1f"], **place)


@pytest.mark.parametrize("size", [65, 200])
def test_a_key_has_at_most_64_bytes(plane: Plane, size: int) -> None:
    plane.put({**ROW, "key": "k" * 64})
    for key in ("k" * size, "ü" * (size // 2 + 1)):
        with refused(400, "KeySizeLimitExceeded"):
            plane.put({**ROW, "key": key})
        with refused(400, "KeySizeLimitExceeded"):
            plane.get(key)


def test_a_row_and_a_request_have_a_limit(plane: Plane) -> None:
    with refused(400, "RowSizeLimitExceeded"):
        plane.put({**ROW, "body": "x" * 600_000})
    with refused(400, "RequestSizeLimitExceeded"):
        plane.put({**ROW, "body": "x" * 2_200_000})


def test_an_etag_that_is_no_version_is_refused_and_an_old_one_does_not_match(plane: Plane) -> None:
    old = plane.put(ROW).headers["etag"]
    plane.put(ROW)
    for etag in ("no base64!", base64.b64encode(b"no version").decode()):
        with refused(400, "InvalidParameter"):
            plane.put(ROW, if_match=etag)
    with refused(412, "ETagMismatch"):
        plane.put(ROW, if_match=old)
    with refused(412, "ETagMismatch"):
        plane.put({**ROW, "key": "nobody"}, if_match=old, option="IF_ABSENT")  # if-match counts for more


@pytest.mark.parametrize(
    "value", [{"key": "a", "score": None}, {"key": "a", "score": "1"}, {"score": 1}, {"key": None}, {"key": 1},
              {"key": "a", "owner": 1}],
)  # fmt: skip
def test_a_row_with_values_of_another_type_is_refused(plane: Plane, value: dict[str, Any]) -> None:
    with refused(400, "InvalidParameter"):
        plane.put(value)


def test_an_unknown_option_is_refused(plane: Plane) -> None:
    body = {"compartmentId": plane.fake.compartment, "value": ROW, "option": "IF_SUNNY"}
    assert plane.raw("PUT", "/tables/locks/rows", body)[0] == 400
    assert plane.raw("GET", f"/tables/locks/rows?compartmentId={plane.fake.compartment}")[0] == 400  # no key
    assert plane.raw("GET", f"/tables/locks/rows?key=a&compartmentId={plane.fake.compartment}")[0] == 400
    assert plane.raw("PUT", "/tables/locks/rows", {"compartmentId": plane.fake.compartment})[0] == 400


def test_unknown_columns_are_refused_only_where_all_must_match(plane: Plane) -> None:
    plane.put({**ROW, "runtime": "red"})
    for value in ({**ROW, "runtime": "red"}, {"key": "a", "score": 1}):
        with refused(400, "InvalidParameter"):
            plane.put(value, is_exact_match=True)


def test_a_missing_column_gets_its_default(plane: Plane) -> None:
    plane.put({"key": "a"})
    assert plane.get("a").data.value == {"key": "a", "score": 0, "owner": None, "body": None}


def test_the_version_of_a_row_is_in_the_header_alone(plane: Plane) -> None:
    etag = plane.put(ROW).data.version
    reply = plane.get("a")
    assert reply.headers["etag"] == etag and not hasattr(reply.data, "version")
    path = f"/tables/locks/rows?key=key:a&compartmentId={plane.fake.compartment}"
    assert set(plane.raw("GET", path)[1]) == {"value"}


def test_an_absent_row_is_no_error_and_a_present_one_is_shown_on_request(plane: Plane) -> None:
    reply = plane.get("a")
    assert reply.status == 200 and reply.data.value is None and "etag" not in reply.headers
    assert plane.put(ROW, option="IF_PRESENT").data.version is None
    etag = plane.put(ROW, option="IF_ABSENT").data.version
    shown = plane.put({**ROW, "score": 2}, option="IF_ABSENT", is_get_return_row=True).data
    assert (shown.version, shown.existing_version, shown.existing_value) == (None, etag, ROW)
    assert plane.put({**ROW, "score": 2**62}, option="IF_PRESENT").data.version
    assert plane.get("a").data.value["score"] == 2**62


def test_a_delete_tells_whether_there_was_a_row(plane: Plane) -> None:
    place = {"compartment_id": plane.fake.compartment}
    old = plane.put(ROW).headers["etag"]
    plane.put(ROW)
    with refused(412, "ETagMismatch"):
        plane.client.delete_row("locks", ["key:a"], if_match=old, **place)
    assert plane.client.delete_row("locks", ["key:a"], **place).data.is_success is True
    assert plane.client.delete_row("locks", ["key:a"], **place).data.is_success is False


# -- tables


def test_a_column_that_is_not_null_needs_a_default(plane: Plane) -> None:
    with refused(400, "InvalidParameter", "DEFAULT"):
        plane.create("CREATE TABLE made (key STRING, score NUMBER NOT NULL, PRIMARY KEY (SHARD (key)))")
    for wrong in (";", " -- no comment"):
        with refused(400, "InvalidParameter"):
            plane.create(f"CREATE TABLE made ({ours.COLUMNS}){wrong}")
    plane.create(f"# a comment\nCREATE TABLE made ({ours.COLUMNS})")


def test_a_table_is_not_found_for_a_moment_after_it_was_made(plane: Plane) -> None:
    plane.create(f"CREATE TABLE made ({ours.COLUMNS})")
    with refused(404, "TableNotFound"):
        plane.get("a", "made")
    time.sleep(plane.fake.settles_in)
    assert plane.get("a", "made").data.value is None


def test_id_name_and_compartment_of_a_table_differ(plane: Plane) -> None:
    ocid = plane.fake.ocid("locks")
    by_id = plane.client.get_table(ocid).data
    by_name = plane.client.get_table("locks", compartment_id=plane.fake.compartment).data
    for told in (by_id, by_name):
        assert (told.id, told.name, told.compartment_id) == (ocid, "locks", plane.fake.compartment)
        assert [column.name for column in told.schema.columns] == ["key", "score", "owner", "body"]
    assert len({ocid, "locks", plane.fake.compartment}) == 3
    with refused(404, "TableNotFound"):
        plane.client.get_table("locks")  # in the root
    with refused(404, "TableNotFound"):
        plane.client.get_table("ocid1.nosqltable.oc1..nowhere")


def test_the_case_of_a_tables_name_does_not_matter(plane: Plane) -> None:
    plane.fake.tables["People"] = FakeTable((Column("key", "STRING", nullable=False),))
    plane.put({"key": "a"}, "PEOPLE")
    assert plane.get("a", "people").data.value == {"key": "a"}
    assert plane.query("SELECT t.key FROM pEOPLE t").data.items == [{"key": "a"}]


# -- the service as a whole


def test_a_store_that_is_down_behind_the_service_is_told_late_and_with_internals(plane: Plane) -> None:
    plane.fake.store_down = 0.3  # on the real one: five seconds
    begun = time.monotonic()
    with refused(500, "InternalServerError", "Remote stack trace"):
        plane.get("a")
    assert time.monotonic() - begun >= 0.3


def test_an_unknown_path_and_one_without_authorization_are_refused(plane: Plane) -> None:
    status, told = plane.raw("GET", "/nowhere")
    assert (status, told["code"]) == (400, "InvalidParameter")
    status, told = plane.raw("GET", "/tables/locks", authorization="")
    assert (status, told["code"]) == (401, "InvalidAuthorization")


def test_too_many_requests_are_refused_without_a_word_on_when_to_come_back(plane: Plane) -> None:
    plane.fake.faults["GET"].append(429)
    with pytest.raises(oci.exceptions.ServiceError) as no:
        plane.get("a")
    assert (no.value.status, no.value.code) == (429, "TooManyRequests") and "retry-after" not in no.value.headers


# -- where the tests run on a real table


@pytest.mark.parametrize("by", ["name", "OCID"])
def test_a_table_that_is_named_by_a_url_is_emptied(plane: Plane, by: str) -> None:
    from tests.servers.nosql_table import empty

    for number in range(7):
        plane.put({**ROW, "key": f"\x1fk{number}"})
    plane.fake.page_size = 2
    empty(plane.fake.url("locks" if by == "name" else plane.fake.ocid("locks")))
    assert plane.fake.tables["locks"].rows == {}

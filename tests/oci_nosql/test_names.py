"""Keys of OCI's NoSQL service end at 64 bytes, names at 200: long ones work, are listed, and are found by searches."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlock
from fairlock import StoreError
from fairlock.stores.base import Row
from fairlock.stores.keys import SEPARATOR, queue_key
from fairlock.stores.oci_nosql import row_format
from tests.servers.fake_nosql import FakeNosql

LONG = "orders/" + "x" * 193
UMLAUTS = "ü" * 100
LENGTHS = [1, 20, 21, 42, 43, 44, 63, 64, 65, 200]


def connect(fake: FakeNosql, namespace: str = "") -> fairlock.Locks:
    return fairlock.connect(fake.url(), namespace=namespace, owner="web-3")


@pytest.mark.parametrize("namespace", ["", "prod", "n" * 200])
def test_long_names_work_and_are_listed(fake_nosql: FakeNosql, namespace: str) -> None:
    names = [LONG, LONG[:-1] + "y", UMLAUTS, *("k" * length for length in LENGTHS)]
    with connect(fake_nosql, namespace) as locks, connect(fake_nosql, namespace) as others:
        leases = [locks.lock(name).acquire(blocking=False) for name in names]
        assert all(leases), "each is a lock of its own"
        assert others.lock(LONG).acquire(blocking=False) is None
        assert [each.name for each in others.snapshot().resources] == sorted(names)
        assert [each.name for each in others.snapshot("orders*").resources] == sorted(names[:2])
        for lease in leases:
            assert lease is not None
            lease.release()
        with others.lock(LONG).hold(timeout=5) as again:
            assert leases[0] is not None and again.fence > leases[0].fence
    with connect(fake_nosql, "another") as apart:
        assert apart.snapshot().resources == ()


@pytest.mark.parametrize("namespace", ["", "n" * 200])
@pytest.mark.parametrize("pool", ["jobs", "p" * 200])
def test_pools_and_items_with_long_names_work(fake_nosql: FakeNosql, namespace: str, pool: str) -> None:
    keys = ["k" * length for length in LENGTHS] + [UMLAUTS]
    with connect(fake_nosql, namespace) as locks:
        jobs, beside = locks.pool(pool), locks.pool(pool[:-1] + "z")
        assert jobs.add_many([(key, key) for key in keys]) == len(keys)
        assert beside.add("apart")
        assert sorted(each.key for each in jobs.items()) == sorted(keys)
        taken = [jobs.acquire(blocking=False) for _ in keys]
        assert [(item.key, item.body) for item in taken if item is not None] == [(key, key) for key in keys]
        assert jobs.acquire(blocking=False) is None
        for item in taken:
            assert item is not None
            item.done()
        assert (jobs.counts().done, beside.counts().free) == (len(keys), 1)
        assert jobs.remove(keys[-1]) and jobs.counts().done == len(keys) - 1


def test_a_row_of_a_long_name_keeps_the_name(fake_nosql: FakeNosql) -> None:
    """A plain SELECT shows an operator whose row it is."""
    with connect(fake_nosql) as locks, locks.lock(LONG):
        (row,) = [row for key, (row, _) in fake_nosql.tables["locks"].rows.items() if key.startswith(row_format.MARK)]
        assert row["body"]["name"] == LONG and row["owner"] == "web-3"


def test_two_names_with_one_digest_are_refused_and_not_mixed_up(fake_nosql: FakeNosql) -> None:
    kept = fake_nosql.tables["locks"].rows
    with connect(fake_nosql) as locks, locks.lock(LONG):
        row, version = kept[row_format.table_key(LONG)]
        key = row_format.table_key(UMLAUTS)
        kept[key] = {**row, "key": key}, version  # as if both had this digest
        with pytest.raises(StoreError, match="Choose another name"):
            locks.lock(UMLAUTS).acquire(blocking=False)


def test_a_namespace_is_listed_whole(fake_nosql: FakeNosql) -> None:
    """The service orders texts by the halves of UTF-16: there U+FB01 comes after every character beyond U+FFFF."""
    names = ["\ufb01n", "a", "\U0001f600", "\U0010fffd"]
    with connect(fake_nosql, "prod") as locks, connect(fake_nosql, "prod2") as others:
        for name in names:
            assert locks.lock(name).acquire(blocking=False)
        assert others.lock("a").acquire(blocking=False)
        assert {each.name for each in locks.snapshot().resources} == set(names)


WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80).filter(
    lambda text: len(text.encode()) <= 200
)


def key_of(parts: tuple[str, str, str, str]) -> str:
    """A lock, the line of a pool, or an item of it, with or without a namespace."""
    kind, namespace, name, item = parts
    whole = f"{namespace}{SEPARATOR}{name}" if "n" in kind else name
    return whole if "l" in kind else queue_key(whole) + (SEPARATOR + item if "i" in kind else "")


KEYS = st.tuples(st.sampled_from(["l", "nl", "p", "np", "pi", "npi"]), WORDS, WORDS, WORDS).map(key_of)


@given(st.lists(KEYS, unique=True, max_size=20))
def test_every_key_fits_is_itself_and_lies_where_it_is_searched_for(keys: list[str]) -> None:
    kept = {row_format.table_key(key): key for key in keys}
    assert len(kept) == len(keys)
    for key, whole in kept.items():
        assert len(key.encode()) <= row_format.LONGEST
        value = json.loads(json.dumps(row_format.to_value(Row(whole, 1, "me", '["item1",1]'))))
        assert row_format.from_value(value, whole) == Row(whole, 1, "me", '["item1",1]')
        ends = [place + 1 for place, character in enumerate(whole) if character == SEPARATOR]
        for end in ends:
            low, high = row_format.key_range(whole[:end])
            for order in ("utf-8", "utf-16-be"):
                assert low.encode(order) <= key.encode(order) < high.encode(order)

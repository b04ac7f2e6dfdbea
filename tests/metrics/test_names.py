"""Names are grouped, so that the number of time series stays bounded."""

import uuid

import pytest

from fairlock.metrics.group_lock_names import OTHER, Groups, group_name


@pytest.mark.parametrize("name, group", [
    ("nightly-report", "nightly-report"),
    ("order:17", "order:{n}"),
    ("order:17:line:3", "order:{n}:line:{n}"),
    ("2026-01-31", "{n}-{n}-{n}"),
    (f"user/{uuid.UUID(int=2**127 + 5)}", "user/{uuid}"),
    (f"user/{uuid.UUID(int=2**127 + 5)}".upper(), "USER/{uuid}"),
    ("blob:da39a3ee5e6b4b0d3255bfef95601890afd80709", "blob:{hex}"),
    ("blob:12345678", "blob:{n}"),
    ("facade", "facade"),
    ("deadbeef", "deadbeef"),  # a word: it has no digit
    ("v2-cafe", "v{n}-cafe"),
    ("größe-4", "größe-{n}"),
])  # fmt: skip
def test_numbers_and_ids_collapse(name: str, group: str) -> None:
    assert group_name(name) == group
    assert group_name(group) == group


def test_the_number_of_groups_is_limited() -> None:
    groups = Groups(lambda name: name, most=3)
    assert [groups[name] for name in "abcdeab"] == ["a", "b", "c", OTHER, OTHER, "a", "b"]


def test_a_million_names_need_no_more_memory() -> None:
    groups = Groups(lambda name: name)
    seen = {groups[f"n{number}"] for number in range(30_000)}
    assert len(seen) == 1001
    assert len(groups._known) <= 10_000


def test_a_group_function_that_raises_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    groups = Groups(lambda name: name.split(":")[1])
    assert groups["a:b"] == "b"
    assert groups["ab"] == OTHER
    assert "group= raised" in caplog.text

"""A timeout is a promise: on a service that hangs, whatever has one is back at most a second after it."""

from tests.hanging_server import LATE, SOME, how_late
from tests.machine_load import within
from tests.servers.fake_nosql import FakeNosql


def test_a_service_that_hangs(fake_nosql: FakeNosql) -> None:
    assert max(how_late(fake_nosql.url(), [fake_nosql], (0, 0.4), SOME)) < within(LATE, below=3)

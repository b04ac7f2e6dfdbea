"""One name whose renewals fail costs that lease, and no other lease of the client."""

import time
from typing import Any

import fairlock
from fairlock.errors import StoreError
from fairlock.rules.locks import Renew


def test_a_name_that_cannot_be_renewed_takes_no_other_lease_with_it() -> None:
    """The keeper stops a round at the first failure. The name that failed is the last one in the next round."""
    with fairlock.connect("memory://", lease=0.9) as locks:
        backend = locks._session.backend
        call = backend.call

        async def failing(name: str, command: Any) -> Any:
            if name.startswith("bad") and isinstance(command, Renew):
                raise StoreError("this name cannot be asked for")
            return await call(name, command)

        backend.call = failing  # type: ignore[method-assign]
        bad = locks.lock("bad before it").acquire()
        good = locks.lock("good").acquire()
        locks.lock("bad behind it").acquire()
        end = time.monotonic() + 5
        while not bad.lost and time.monotonic() < end:
            time.sleep(0.005)
            assert good.held
        assert bad.lost
        time.sleep(0.3)  # past the end of a lease that was not renewed beside it
        assert good.held

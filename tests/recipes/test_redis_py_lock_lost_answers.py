"""RedisPyLock behind a wire that loses replies: no client is refused by its own lock, and nothing is left behind."""

from itertools import cycle

import pytest

from tests.recipes.both import Shop, both
from tests.redis.proxy import Proxy, kind_of


@pytest.mark.parametrize("lost", ["acquire", "release"])
@both
async def test_what_was_done_is_not_refused_for_it(shop: Shop, lost: str) -> None:
    unharmed = shop.client()
    with Proxy(shop.server.port) as proxy:
        client = shop.client(port=proxy.port)
        fates = cycle(["cut", ""])
        proxy.fate = lambda request: next(fates) if kind_of(request) == lost else ""
        for turn in range(20):
            lock = shop.lock(client=client, timeout=20)
            assert await lock.acquire(blocking_timeout=5), turn  # a try has too little time
            await lock.release()
        assert proxy.cuts >= 20
    assert not await shop.lock(client=unharmed).locked()

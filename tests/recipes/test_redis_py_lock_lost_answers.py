"""RedisPyLock behind a wire that loses replies: no client is refused by its own lock, and nothing is left behind."""

from itertools import cycle
from typing import Any

import pytest
from redis import Redis

from fairlock.recipes.redis_py_lock import RedisPyLock
from tests.recipes.both import Shop, both
from tests.redis.proxy import Proxy, kind_of
from tests.servers.server import Server


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


def test_a_ctrl_c_stays_one_although_the_server_hangs(redis_alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire = RedisPyLock._acquire

    with Proxy(redis_alone.port) as proxy, Redis(port=proxy.port, socket_timeout=1) as client:

        async def interrupted(self: RedisPyLock, *arguments: Any) -> bool:
            assert await acquire(self, *arguments)
            proxy.fate = lambda request: "swallow"
            raise KeyboardInterrupt

        monkeypatch.setattr(RedisPyLock, "_acquire", interrupted)
        with pytest.raises(KeyboardInterrupt):
            RedisPyLock(client, "x", timeout=5).acquire()
        proxy.fate = lambda request: ""
        proxy.sever()

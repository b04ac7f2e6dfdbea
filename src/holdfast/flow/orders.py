"""Talking to the pools of a store: one step, said again while its outcome is unknown."""

from __future__ import annotations

from ..backends.contract import Unknown
from ..backends.pool_contract import PoolAnswer, Pools
from ..errors import BackendError, ConfigError
from ..pool import Order, Seek
from .desk import Desk


def pools_of(desk: Desk) -> Pools:
    pools: Pools | None = getattr(desk.backend, "pools", None)
    if pools is None:
        raise ConfigError(f"{desk.backend.where} keeps no pools. All stores that come with holdfast do.")
    return pools


async def order(desk: Desk, pool: str, order: Order, until: float | None = None) -> PoolAnswer:
    """As `Desk.ask` for a doorman. BackendError if saying it again does not help, or not by then."""
    pools = pools_of(desk)
    turn = 0
    while True:
        if desk.closing and (desk.closed or isinstance(order, Seek)):
            raise desk.over()
        try:
            answer = await pools.ask(pool, order)
            break
        except BackendError as error:
            desk.failed(error)
            raise
        except Unknown as doubt:
            turn += 1
            await desk.doubted(doubt, turn, until)
            if isinstance(order, Seek):
                order = order._replace(again=True)
    desk.answered(answer.at)
    return answer if not turn else answer._replace(again=True)

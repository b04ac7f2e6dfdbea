"""What a visitor may do with what it holds besides working: everything else that the flows offer for a hold."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.sim.client import Client
from tests.sim.witness import Stay
from tests.sim.world import Cancelled


async def blindly(client: Client, stay: Stay, seconds: float) -> None:
    """Work without ever looking whether it is still held."""
    await client.colour.sleep(seconds)


async def renewing(client: Client, stay: Stay, seconds: float) -> None:
    """Renew by hand, besides the keeper."""
    for _ in range(3):
        await client.colour.sleep(seconds / 3)
        await client.house.change.renew(client.desk, stay.hold)


async def lowering(client: Client, stay: Stay, seconds: float) -> None:
    """From writer to reader half-way through."""
    await client.work(stay, seconds / 2)
    if stay.capacity == stay.weight == 2**31 - 1:
        await client.house.change.downgrade(client.desk, stay.hold)
    await client.work(stay, seconds / 2)


async def handing_over(client: Client, stay: Stay, seconds: float, others: list[Client], chance: Random) -> None:
    """Detach it and attach it elsewhere, by the ticket; what nobody attaches ends by itself."""
    await client.work(stay, seconds / 2)
    weight = stay.seat.weight
    if len(stay.seat.holds) > 1:
        return  # readers who share a place cannot hand it over
    ticket = await client.house.change.detach(client.desk, stay.hold, 1.0)
    client.witness.gives_back(stay)
    client.world.note(client.process.name, "detaches the fence {}", stay.fence)
    other = chance.choice(others)
    if other.process.runs:
        other.start(attaching(other, stay, ticket, weight, seconds / 2), "heir")


async def attaching(client: Client, before: Stay, ticket: str, weight: int, seconds: float) -> None:
    errors = client.house.errors
    asked = client.world.now
    try:
        hold = await client.house.change.attach(client.desk, before.name, ticket)
    except errors.LockError as error:
        client.world.note(client.process.name, f"cannot attach: {error!r}")
        return
    hold._seat.weight = weight  # a ticket does not tell how heavy it is
    stay = client.witness.got(client, hold, before.capacity, asked, before)
    await client.work(stay, seconds)
    await client.give_back(stay)


async def once_more(client: Client, stay: Stay, seconds: float, wish: Any) -> None:
    """Reentrant: a second hold on the same seat, by the same visitor."""
    await client.work(stay, seconds / 2)
    task = client.process.current
    client.desk.nested[wish.name, task] = stay.hold
    inner = client.desk.hold(client.desk, wish, task)
    had = await client.house.enter._again(client.desk, inner)
    if had:
        try:
            await client.work(stay, seconds / 2)
        except Cancelled:
            pass
        await client.colour.shield(client.house.release.release(client.desk, inner, True))

"""What a visitor may do with what it holds besides working: everything else that the flows offer for a hold."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.simulation.client import Client
from tests.simulation.invariants import Stay
from tests.simulation.world import Cancelled


async def blindly(client: Client, stay: Stay, seconds: float) -> None:
    """Work without ever looking whether it is still held."""
    await client.runtime.sleep(seconds)


async def renewing(client: Client, stay: Stay, seconds: float) -> None:
    """Renew by hand, besides the keeper."""
    for _ in range(3):
        await client.runtime.sleep(seconds / 3)
        await client.engine.lease_ops.renew(client.session, stay.hold)


async def lowering(client: Client, stay: Stay, seconds: float) -> None:
    """From writer to reader half-way through."""
    await client.work(stay, seconds / 2)
    if stay.capacity == stay.weight == 2**31 - 1:
        await client.engine.lease_ops.downgrade(client.session, stay.hold)
    await client.work(stay, seconds / 2)


async def handing_over(client: Client, stay: Stay, seconds: float, others: list[Client], rng: Random) -> None:
    """Detach it and attach it elsewhere, by the ticket; what nobody attaches ends by itself."""
    await client.work(stay, seconds / 2)
    weight = stay.grant.weight
    if len(stay.grant.holds) > 1:
        return  # readers who share a place cannot hand it over
    ticket = await client.engine.lease_ops.detach(client.session, stay.hold, 1.0)
    client.witness.gives_back(stay)
    client.world.note(client.process.name, "detaches the fence {}", stay.fence)
    other = rng.choice(others)
    if other.process.runs:
        other.start(attaching(other, stay, ticket, weight, seconds / 2), "heir")


async def attaching(client: Client, before: Stay, ticket: str, weight: int, seconds: float) -> None:
    errors = client.engine.errors
    asked = client.world.now
    try:
        hold = await client.engine.lease_ops.attach(client.session, before.name, ticket)
    except errors.LockError as error:
        client.world.note(client.process.name, f"cannot attach: {error!r}")
        return
    hold._grant.weight = weight  # a ticket does not tell how heavy it is
    stay = client.witness.got(client, hold, before.capacity, asked, before)
    await client.work(stay, seconds)
    await client.give_back(stay)


async def once_more(client: Client, stay: Stay, seconds: float, request: Any) -> None:
    """Reentrant: a second hold on the same grant, by the same visitor."""
    await client.work(stay, seconds / 2)
    task = client.process.current
    client.session.nested[request.name, task] = stay.hold
    inner = client.session.hold(client.session, request, task)
    had = await client.engine.with_block._again(client.session, inner)
    if had:
        try:
            await client.work(stay, seconds / 2)
        except Cancelled:
            pass
        await client.runtime.shield(client.engine.release.release(client.session, inner, True))

"""Starlette and FastAPI: a request that finds its lock taken is answered by 423 Locked with Retry-After.

    app = Starlette(…, exception_handlers={LockTimeout: locked})        # for locks that an endpoint acquires itself

    @app.post("/orders/{order}/ship")                                   # FastAPI: as a dependency
    async def ship(order: int, lease: Annotated[Lease, Depends(held("order:{order}"))]): ...

The client is `app.state.locks`, of fairlock.aio; the lifespan makes it. The reply names no holder, because it goes to
the outside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fairlock import Seconds, safe_name
from fairlock.aio import Lease

RETRY_AFTER = 1


async def locked(request: Request, error: Exception) -> Response:
    """Answer a LockTimeout: 423 Locked, with Retry-After. Use it in `exception_handlers`."""
    return JSONResponse({"detail": "Locked"}, 423, headers={"Retry-After": str(RETRY_AFTER)})


def held(
    template: str, *, timeout: Seconds = 0, retry_after: int = RETRY_AFTER, **options: Any
) -> Callable[[Request], AsyncIterator[Lease]]:
    """Return a dependency for FastAPI: the lock is held while the request is handled, and the endpoint gets the Lease.

    template: the name, filled from the path parameters: "order:{order}". timeout: how long a request waits before it is
    answered by 423 with Retry-After; by default it does not wait. If the lease is lost, the endpoint is cancelled and
    LeaseLost is raised. Other options as for `lock`.
    """

    async def hold(request: Request) -> AsyncIterator[Lease]:
        lock = request.app.state.locks.lock(safe_name(template.format_map(request.path_params)), **options)
        lease: Lease | None = await lock.acquire(timeout=timeout)
        if lease is None:
            raise HTTPException(423, "Locked", headers={"Retry-After": str(retry_after)})
        async with lease:
            yield lease

    return hold

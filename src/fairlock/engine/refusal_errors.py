"""The exception for an Acquire that is refused finally: a sentence with the cure in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError, LeaseLost
from ..rules.locks import EXCLUSIVE, Mismatch, Revoked

if TYPE_CHECKING:
    from .request import LockRequest


def refusal(request: LockRequest, reply: object) -> Exception:
    if isinstance(reply, Mismatch):
        return _mismatch(request, reply.capacity)
    assert isinstance(reply, Revoked)
    why = reply.why
    error = LeaseLost(
        f"The place in the queue for {request.name!r} was taken away by {why.by or 'the store'}: {why.reason}."
    )
    error.reason = "evicted" if why.kind == "evicted" else "expired"
    return error


def _mismatch(request: LockRequest, capacity: int) -> ConfigError:
    """Return the error for a capacity that is not the one that counts, or for a weight greater than the capacity."""
    name = repr(request.name)
    has = f"{name} has {capacity} slot{'s' if capacity > 1 else ''}"
    fits = max(request.capacity, request.weight)
    resize, in_a_shell = f"Use resize({name}, {fits})", f"Use `fairlock resize {request.name} {fits}`"
    if not capacity:
        what = f"No program has given the number of slots of {name} yet."
        cure, in_a_shell = f"Give it: semaphore({name}, 4).", "Give it: --slots 4."
    elif request.capacity == EXCLUSIVE:  # whatever a lock weighs: this is not a lock
        what = f"{has}, so it is a semaphore; this client asks for a lock."
        cure = f"Use another name, or resize({name}, None) if it was a lock and is idle."
        in_a_shell = f"Use another name, or `fairlock resize {request.name} --program` if it was a lock and is idle."
    elif capacity == EXCLUSIVE:
        what = f"{name} is a lock and is in use; it has no slots."
        cure = in_a_shell = "Use another name."
    elif request.weight > capacity:
        what = f"{has}; a weight of {request.weight} can never fit."
        cure, in_a_shell = f"{resize} or a lower weight.", f"{in_a_shell}."
    else:
        what = f"{has} and is in use; this client asks for {request.capacity}."
        cure, in_a_shell = f"{resize}, or slots=None for the stored number.", f"{in_a_shell}, or --slots stored."
    error = ConfigError(f"{what} {cure}")
    error._in_a_shell = f"{what} {in_a_shell}"
    return error

"""Why an Enter was refused for good, as the exception that the caller gets: a sentence with the cure in it."""

from __future__ import annotations

from ..doorman import ALL, Gone, Mismatch
from ..errors import ConfigError, LeaseLost
from .wish import Wish


def refusal(wish: Wish, reply: object) -> Exception:
    if isinstance(reply, Mismatch):
        return _mismatch(wish, reply.capacity)
    assert isinstance(reply, Gone)
    why = reply.why
    error = LeaseLost(f"The place in line for {wish.name!r} was taken away by {why.by or 'the store'}: {why.reason}.")
    error.reason = "evicted" if why.kind == "evicted" else "expired"
    return error


def _mismatch(wish: Wish, capacity: int) -> ConfigError:
    """The number asked for is not the one that counts, or the weight is more than there is."""
    name = repr(wish.name)
    has = f"{name} has {capacity} slot{'s' if capacity > 1 else ''}"
    fits = max(wish.capacity, wish.weight)
    resize, in_a_shell = f"Use resize({name}, {fits})", f"Use `holdfast resize {wish.name} {fits}`"
    if not capacity:
        what = f"No program has given the number of slots of {name} yet."
        cure, in_a_shell = f"Give it: semaphore({name}, 4).", "Give it: --slots 4."
    elif wish.capacity == ALL:  # whatever a lock weighs: it is none
        what = f"{has}, so it is a semaphore; this client asks for a lock."
        cure = f"Use another name, or resize({name}, None) if it was a lock and is idle."
        in_a_shell = f"Use another name, or `holdfast resize {wish.name} --program` if it was a lock and is idle."
    elif capacity == ALL:
        what = f"{name} is a lock and is in use; it has no slots."
        cure = in_a_shell = "Use another name."
    elif wish.weight > capacity:
        what = f"{has}; a weight of {wish.weight} can never fit."
        cure, in_a_shell = f"{resize} or a lower weight.", f"{in_a_shell}."
    else:
        what = f"{has} and is in use; this client asks for {wish.capacity}."
        cure, in_a_shell = f"{resize}, or slots=None for the stored number.", f"{in_a_shell}, or --slots stored."
    error = ConfigError(f"{what} {cure}")
    error._in_a_shell = f"{what} {in_a_shell}"
    return error

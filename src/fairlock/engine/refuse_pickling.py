"""Clients, locks and leases stay in their process: pickling one is refused with a sentence.

Rejected alternative: a pickled client that connects again by its URL. The pickle would contain the password, and two
processes would renew one lease.
"""

from typing import NoReturn


class NotPickled:
    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"A fairlock {type(self).__name__} cannot be pickled or copied: its connections and leases belong to this "
            "process, and its URL may contain a password. Call fairlock.connect() in the other process; a lease gets "
            "there by the ticket that detach() returns, with attach()."
        )

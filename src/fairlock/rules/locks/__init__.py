"""The rules of locks, as one pure function. Start with the essay at the head of step.py."""

from ..wakeup import Wakeup as Wakeup
from .messages import *  # noqa: F403 - all that can be said to it, and replied
from .state import ASKED as ASKED
from .state import CONFIRM_WINDOW as CONFIRM_WINDOW
from .state import EMPTY as EMPTY
from .state import EXCLUSIVE as EXCLUSIVE
from .state import Entry as Entry
from .state import LockState as LockState
from .state import Tombstone as Tombstone
from .state import Why as Why
from .step import apply as apply

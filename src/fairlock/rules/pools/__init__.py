"""The rules of pools, as pure functions: lease any free item, with its body. Start with the essay in step.py."""

from ..wakeup import Wakeup as Wakeup
from .messages import *  # noqa: F403 - all that can be said to it, and replied
from .state import AGO as AGO
from .state import BROKEN as BROKEN
from .state import CONFIRM_WINDOW as CONFIRM_WINDOW
from .state import DAMAGED as DAMAGED
from .state import DONE as DONE
from .state import NOBODY as NOBODY
from .state import STATES as STATES
from .state import ItemState as ItemState
from .state import Worker as Worker
from .state import WorkerQueue as WorkerQueue
from .state import count_states as count_states
from .step import apply as apply

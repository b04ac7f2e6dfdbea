"""The rules of pools, as pure functions: lease any free item, with its body. Start with the essay in step.py."""

from ..wakeup import Wakeup as Wakeup
from .messages import *  # noqa: F403
from .state import *  # noqa: F403
from .step import apply as apply

"""The rules of locks, as one pure function. Start with the essay at the head of step.py."""

from ..wakeup_message import Wakeup as Wakeup
from .messages import Acquire as Acquire
from .messages import Command as Command
from .messages import Detach as Detach
from .messages import Done as Done
from .messages import Evict as Evict
from .messages import Granted as Granted
from .messages import Mismatch as Mismatch
from .messages import NotHolder as NotHolder
from .messages import Queued as Queued
from .messages import Refused as Refused
from .messages import Release as Release
from .messages import Released as Released
from .messages import Renew as Renew
from .messages import Reply as Reply
from .messages import Resize as Resize
from .messages import Revoked as Revoked
from .state import CONFIRM_WINDOW as CONFIRM_WINDOW
from .state import EMPTY as EMPTY
from .state import EXCLUSIVE as EXCLUSIVE
from .state import Entry as Entry
from .state import LockState as LockState
from .state import Tombstone as Tombstone
from .state import Why as Why
from .step import apply as apply

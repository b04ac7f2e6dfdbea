"""The face for threads."""

from .client import Locks as Locks
from .lease import Lease as Lease
from .lock import Lock as Lock
from .lock import RWLock as RWLock
from .lock import Semaphore as Semaphore

"""The face for threads."""

from .client import Locks as Locks
from .lease import Lease as Lease
from .locks import Lock as Lock
from .locks import RWLock as RWLock
from .locks import Semaphore as Semaphore

"""The matrix: every store of this house, for threads and for tasks. A store that is not in it fails test_matrix.py."""

from holdfast.testing.sites import DictSite, MemorySite, OpenSite
from holdfast.testing.suite import matrix

STORES: dict[str, OpenSite] = {
    "memory": MemorySite,
    "cas": DictSite,
    "sqlite": lambda folder: f"sqlite:///{folder}/locks.db",
}

world = matrix(STORES)

"""SQLite, the embedded default: one file for all processes of a machine."""

from .location import default_path
from .store import SqliteStore

__all__ = ["SqliteStore", "default_path"]

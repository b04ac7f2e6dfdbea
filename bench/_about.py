"""What a run was made with: it stands under every table."""

import importlib
import importlib.metadata
import os
import platform
import time
from typing import Any


def about(rounds: int, begun: float, packages: tuple[str, ...]) -> dict[str, Any]:
    return {
        "rounds": rounds, "seconds": round(time.monotonic() - begun), "cpus": os.cpu_count(),
        "load at the end": round(os.getloadavg()[0], 1), "python": platform.python_version(), **_versions(packages),
    }  # fmt: skip


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
            if name == "redis":  # contenders bring papers of another version, but not the code
                found[name] = importlib.import_module("redis").__version__
        except importlib.metadata.PackageNotFoundError:
            pass
    return found

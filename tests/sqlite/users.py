"""Other users of this machine: made for a test and removed after it; and processes that become one of them."""

import grp
import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlock.errors import StoreError
from tests.sqlite.processes import put, run, store_at

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make other users and become one of them")


def administer(program: str, *args: str) -> None:
    """Run a program of /usr/sbin, which is not on every PATH of root: that of cron has only /usr/bin and /bin."""
    subprocess.run([f"/usr/sbin/{program}", *args], check=True)


class People(NamedTuple):
    alice: str
    mallory: str
    group: str  # both may be in it

    def join(self, name: str) -> None:
        administer("usermod", "-aG", self.group, name)


def people() -> Iterator[People]:
    """Two users, each with a group of its own, and one more group. The body of a fixture."""
    tag = f"hf{os.getpid()}"
    names = People(f"{tag}a", f"{tag}m", f"{tag}g")
    try:
        for name in names:
            administer("groupadd", "-r", name)
        for name in (names.alice, names.mallory):
            administer("useradd", "-r", "-M", "-N", "-g", name, "-s", "/bin/false", name)
        yield names
    finally:
        for command, made in (("userdel", names[:2]), ("groupdel", names)):
            for name in made:
                subprocess.run([f"/usr/sbin/{command}", name], capture_output=True)


def uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def gid(name: str) -> int:
    return grp.getgrnam(name).gr_gid


def folder(path: Path, name: str, mode: int = 0o755, group: str = "") -> Path:
    path.mkdir()
    os.chown(path, uid(name) if name else 0, gid(group or name) if group or name else 0)
    path.chmod(mode)
    return path


def database(path: Path, name: str = "", mode: int = 0o600, group: str = "") -> Path:
    path.touch()
    os.chown(path, uid(name) if name else 0, gid(group or name) if group or name else 0)
    path.chmod(mode)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        put(store_at(path), "k")
    assert caught.value.refused
    return str(caught.value)


def works(path: Path) -> None:
    put(store := store_at(path), "k")
    assert store.open_listener()
    run(store.close())


def link(path: Path, target: object, name: str) -> Path:
    path.symlink_to(str(target))
    os.lchown(path, uid(name) if name else 0, gid(name) if name else 0)
    return path


def become(name: str) -> None:
    """Be this user from now on, in all its groups; '' changes nothing. It may not be able to load modules any more."""
    _load_modules()
    if name:
        user = pwd.getpwnam(name)
        os.initgroups(name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


def _load_modules() -> None:
    import ctypes.util  # noqa: F401
    import logging  # noqa: F401

    import fairlock.stores.sqlite.doctor

    with tempfile.TemporaryDirectory() as folder, fairlock.connect(f"sqlite:///{folder}/x.db") as locks:
        with locks.lock("x"), pytest.raises(fairlock.LockTimeout):
            locks.lock("x").hold(timeout=0.1).__enter__()

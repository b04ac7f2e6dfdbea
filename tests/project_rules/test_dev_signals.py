"""./dev test starts pytest with every signal at its default, however ./dev itself was started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.project_rules.test_dev import CLEAN, script
from tests.project_rules.test_dev import checkout as checkout
from tests.project_rules.test_dev import made as made

PROGRAMS = ("less", "openssl", "redis-server", "postgres", "mariadbd", "pgbouncer", "promtool", "java", "chromium")
OF_LIBC = 1 << 31 | 1 << 32  # its own two signals, which its posix_spawn ignores in every child


@pytest.fixture
def furnished(checkout: Path, made: "tuple[ModuleType, list[list[str]]]") -> Path:
    """A checkout on a machine that has all the programs, whose Python shows the signals that pytest is started with."""
    module, _ = made
    module.make_venv()
    (checkout / ".venv" / "bin" / "python").unlink()
    shown = "grep -E '^Sig(Blk|Ign)' /proc/self/status; echo $$ > pid; while [ -e wait ]; do sleep 0.02; done; echo end"
    script(checkout / ".venv" / "bin", "python", f'case "$*" in *pytest*) {shown} ;; esac')
    for name in PROGRAMS:
        script(checkout / "bin", name, "")
    for name, ((_, artifact), version) in module.FROM_MAVEN.items():
        (checkout / ".dev" / name).mkdir()
        (checkout / ".dev" / name / f"{artifact}-{version}.jar").touch()
    return checkout


def start_with(ignored: "set[signal.Signals]", checkout: Path) -> "subprocess.Popen[str]":
    def ignore() -> None:
        for each in ignored:
            signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    return subprocess.Popen(
        [sys.executable, str(checkout / "dev"), "test", "some"], env={**CLEAN, "PATH": f"{checkout}/bin:/usr/bin:/bin"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=ignore)


def test_tests_started_in_the_background_get_every_signal_as_on_a_terminal(furnished: Path) -> None:
    ignored = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGTSTP}
    out, err = start_with(ignored, furnished).communicate(timeout=60)
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines] == ["SigBlk:", "SigIgn:", "end"], err
    assert [int(line[1], 16) & ~OF_LIBC for line in lines[:2]] == [0, 0], out


@pytest.mark.parametrize("nohup", [True, False])
def test_a_hang_up_ends_the_tests_unless_nohup_started_them(furnished: Path, nohup: bool) -> None:
    (furnished / "wait").touch()
    it = start_with({signal.SIGHUP} if nohup else set(), furnished)
    try:
        until = time.monotonic() + 60
        while not ((furnished / "pid").exists() and (furnished / "pid").read_text().endswith("\n")):
            assert time.monotonic() < until, it.communicate()
            time.sleep(0.01)
        os.killpg(it.pid, signal.SIGHUP)  # what a shell sends to its jobs when its terminal is gone
    finally:
        (furnished / "wait").unlink()
    out, _ = it.communicate(timeout=60)
    assert (it.returncode, "end" in out) == ((0, True) if nohup else (-signal.SIGHUP, False))

"""A URL in a file, which `ps` does not show: -u @FILE, connect("@FILE") and FAIRLOCK_URL_FILE."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import fairlock
from fairlock import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "url"
    path.write_text(f"\nsqlite:///{tmp_path}/locks.db\n\n")
    path.chmod(0o600)
    return path


def tool(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLOCK_")}
    command = [sys.executable, "-m", "fairlock", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**clean, **env})


def test_the_file_names_the_store(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLOCK_URL", raising=False)
    monkeypatch.setenv("FAIRLOCK_URL_FILE", str(file))
    store = f"sqlite:///{file.parent}/locks.db"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fairlock.connect() as by_environment, fairlock.connect(f"@{file}") as by_sign:
            assert by_environment.store == by_sign.store == store
        with fairlock.connect("memory://") as given:
            assert given.store == "memory://", "what is given counts for more than the environment"
    monkeypatch.setenv("FAIRLOCK_URL", "memory://")
    with pytest.raises(ConfigError, match="FAIRLOCK_URL and FAIRLOCK_URL_FILE are both set"):
        fairlock.connect()


def test_the_tool_reads_it_and_doctor_names_it(file: Path) -> None:
    for done in (tool("-u", f"@{file}", "doctor"), tool("doctor", FAIRLOCK_URL_FILE=str(file))):
        assert done.returncode == 0, done
        assert f"in the file {str(file)!r}." in done.stdout
        assert "Use chmod 600" not in done.stdout
    assert "in `ps`" not in tool("-u", f"@{file}", "doctor").stdout


def test_a_file_that_others_may_read_is_used_with_a_warning(file: Path) -> None:
    file.chmod(0o644)
    with pytest.warns(UserWarning, match="all users of this machine may read. Use chmod 600"):
        fairlock.connect(f"@{file}").close()
    done = tool("-u", f"@{file}", "doctor")
    assert "warning  All users of this machine may read the URL" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "cannot be read: No such file"),
        (b"", "holds 0 lines"),
        (b"a\nb\n", "holds 2 lines"),
        (b"\xff\xfe", "is not text"),
    ],
)
def test_a_file_without_a_url_is_a_sentence(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "url"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        fairlock.connect(f"@{path}")
    done = tool("ls", FAIRLOCK_URL_FILE=str(path))
    assert done.returncode == 78, done
    assert words in done.stderr and "FAIRLOCK_URL_FILE" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_may_not_be_read_is_a_sentence(file: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        fairlock.connect(f"@{file.parent}")


def test_a_url_behind_minus_u_with_a_password_is_noted() -> None:
    done = tool("-u", "redis://u:hidden@127.0.0.1:1", "doctor")
    assert "Use -u @FILE" in done.stdout
    assert "hidden" not in done.stdout + done.stderr

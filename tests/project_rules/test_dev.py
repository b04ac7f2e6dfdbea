"""./dev: the tool starts without an install, and the environment is made once, whole, by one at a time, from whatever
the machine has. Machines that lack this or that are played by folders of small scripts on PATH."""

import ast
import fcntl
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.project_rules.tree import ROOT

CLEAN = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout as bare as a fresh clone, in a folder with an awkward name."""
    home = tmp_path / "a checkout, é"
    home.mkdir()
    shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("dev", "pyproject.toml"):
        shutil.copy(ROOT / name, home / name)
    return home


def load(checkout: Path) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("dev_of_a_checkout", str(checkout / "dev"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def script(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def dev(checkout: Path, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(checkout / "dev"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**CLEAN, **env}, cwd="/")


# The tool


def test_the_tool_runs_from_a_fresh_clone_with_an_empty_home(checkout: Path, tmp_path: Path) -> None:
    done = dev(checkout, "fairlock", "run", "hello", "--", "sh", "-c", "echo hi; exit 7", HOME=str(tmp_path))
    assert (done.stdout, done.returncode) == ("hi\n", 7)
    assert {path.name for path in checkout.iterdir()} == {"dev", "pyproject.toml", "src"}  # nothing was made for it


def test_what_the_tool_starts_sees_nothing_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    done = dev(checkout, "fairlock", "run", "hello", "--", "sh", "-c", "echo ${PYTHONPATH-unset}", HOME=str(tmp_path))
    assert done.stdout == "unset\n"


def test_the_tool_is_started_before_anything_is_imported() -> None:
    tree = ast.parse((ROOT / "dev").read_text())
    start = next(node for node in tree.body if isinstance(node, ast.If) and "tool()" in ast.unparse(node))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    before = [ast.unparse(node) for node in imported if node.lineno < start.lineno]
    assert before == ["import os", "import sys"]


@pytest.mark.parametrize("args, code", [([], 64), (["tset"], 64), (["--help"], 0)])
def test_an_unknown_command_gets_the_list_of_commands_and_no_environment(
    checkout: Path, args: list[str], code: int
) -> None:
    done = dev(checkout, *args)
    assert done.returncode == code
    assert "./dev test" in (done.stdout if code == 0 else done.stderr)
    assert not (checkout / ".venv").exists()


# The environment


@pytest.fixture
def made(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> "tuple[ModuleType, list[list[str]]]":
    """dev of a checkout whose `install` only notes what it was asked for, and what was noted."""
    module = load(checkout)
    notes: list[list[str]] = []

    def install(wanted: list[str]) -> None:
        module.discard(module.VENV)
        (module.VENV / "bin").mkdir(parents=True)
        (module.VENV / "bin" / "python").symlink_to(sys.executable)
        notes.append(wanted)

    monkeypatch.setattr(module, "install", install)
    return module, notes


def test_an_environment_is_made_once(made: "tuple[ModuleType, list[list[str]]]") -> None:
    module, notes = made
    module.make_venv()
    module.make_venv()
    assert len(notes) == 1
    assert any(each.startswith("pytest") for each in notes[0])


def test_an_environment_is_made_anew_when_what_it_needs_has_changed(
    made: "tuple[ModuleType, list[list[str]]]", checkout: Path
) -> None:
    module, notes = made
    module.make_venv()
    project = checkout / "pyproject.toml"
    project.write_text(project.read_text() + "\n[tool.somebody]\nelse = 1\n")
    module.make_venv()
    assert len(notes) == 1  # what it is made from has not changed
    project.write_text(project.read_text().replace('dev = [\n', 'dev = [\n    "one-more",\n'))
    module.make_venv()
    assert len(notes) == 2
    assert "one-more" in notes[1]


def test_a_half_made_environment_is_thrown_away(
    made: "tuple[ModuleType, list[list[str]]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    module, notes = made
    whole = module.install

    def fails(wanted: list[str]) -> None:
        whole(wanted)
        raise module.CannotDo("the network is down")

    monkeypatch.setattr(module, "install", fails)
    with pytest.raises(module.CannotDo):
        module.make_venv()
    monkeypatch.setattr(module, "install", whole)
    module.make_venv()
    assert len(notes) == 2


def test_an_environment_whose_python_is_gone_is_made_anew(made: "tuple[ModuleType, list[list[str]]]") -> None:
    module, notes = made
    module.make_venv()
    (module.VENV / "bin" / "python").unlink()
    (module.VENV / "bin" / "python").symlink_to("/no/such/python")
    module.make_venv()
    assert len(notes) == 2


def test_two_at_once_wait_for_each_other(checkout: Path) -> None:
    script(checkout / "bin", "uv", 'mkdir -p .venv/bin; ln -sf "$PYTHON" .venv/bin/python')
    (checkout / ".dev").mkdir()
    with open(checkout / ".dev" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [sys.executable, str(checkout / "dev"), "python", "-c", "print('made')"], text=True,
            env={**CLEAN, "PATH": f"{checkout}/bin:/usr/bin:/bin", "PYTHON": sys.executable},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        assert second.stderr is not None
        assert "waiting for another ./dev" in second.stderr.readline()
        assert not (checkout / ".venv").exists()
    out, _ = second.communicate(timeout=60)
    assert (out, second.returncode) == ("made\n", 0)


# The ways to pip. `python` below stands for a Python with or without ensurepip and pip.

BARE = """
case "$*" in
  *--without-pip*) mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  *"-m venv"*) echo "ensurepip is not available"; mkdir -p "$3/half-made"; exit 1 ;;
  *"-m pip"*) {pip} ;;
  *) echo "$0 $*" >> "{log}" ;;
esac
"""
FETCH = """
echo "$*" >> "{log}"
case "$*" in
  *update*) touch "{log}.updated" ;;
  *download*) [ -e "{log}.updated" ] || [ "{lists}" = yes ] || exit 100; touch some.deb ;;
esac
"""
UNPACK = 'mkdir -p "$3/usr/share/python-wheels"; touch "$3/usr/share/python-wheels/pip-23.0.1-py3-none-any.whl"'


def bare_machine(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, pip: str = "exit 1", lists: str = "yes"
) -> ModuleType:
    folder, log = checkout / "bin", checkout / "log"
    script(folder, "python", BARE.format(pip=pip, log=log))
    script(folder, "apt-get", FETCH.format(log=log, lists=lists))
    script(folder, "dpkg", UNPACK)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    module = load(checkout)
    monkeypatch.setattr(module, "BASE", str(folder / "python"))
    monkeypatch.setattr(module.shutil, "which", lambda name: None)  # no uv
    module.DEV.mkdir()
    return module


def test_without_ensurepip_a_pip_that_is_there_is_used(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = bare_machine(checkout, monkeypatch, pip="exit 0")
    assert module.pip() == [module.BASE, "-m", "pip", "--python", module.PYTHON]
    assert not (module.VENV / "half-made").exists()


@pytest.mark.parametrize("lists", ["yes", "no"])
def test_without_any_pip_debians_wheel_is_unpacked_and_not_installed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, lists: str
) -> None:
    module = bare_machine(checkout, monkeypatch, lists=lists)
    monkeypatch.setattr(module.os.path, "exists", lambda path: True)  # certificates
    command, wheel = module.pip()
    assert command == module.PYTHON
    assert Path(wheel).name == "pip"
    assert Path(wheel).parent.is_relative_to(checkout / ".dev")
    asked = (checkout / "log").read_text().splitlines()
    assert not any("install" in line for line in asked)
    assert [line.split()[-2:][0] == "download" for line in asked] == ([True] if lists == "yes" else [True, False, True])
    if lists == "no":  # lists of its own, for those of the machine are root's
        assert all(f"Dir::State::lists={checkout}/.dev/" in line for line in asked[1:])
    module.pip()
    assert (checkout / "log").read_text().splitlines() == asked  # fetched once


def test_a_uv_that_fails_is_replaced_by_pip(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = bare_machine(checkout, monkeypatch)
    script(checkout / "bin", "uv", "echo no such index; exit 2")
    script(checkout / "bin", "python", f'mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo "$*" >> "{checkout}/log"')
    monkeypatch.setattr(module.shutil, "which", lambda name: str(checkout / "bin" / name))
    module.install(["pytest"])
    assert "no such index" in capsys.readouterr().err
    assert "-m pip install -q --disable-pip-version-check --no-compile pytest" in (checkout / "log").read_text()


def test_uv_is_told_what_pip_was_told(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(checkout)
    told = f'"{sys.executable}" -c "import json, os; print(json.dumps(dict(os.environ)))" > "{checkout}/told"'
    script(checkout / "bin", "uv", told)
    monkeypatch.setattr(module.shutil, "which", lambda name: str(checkout / "bin" / name))
    monkeypatch.setenv("PIP_FIND_LINKS", "wheels")
    monkeypatch.setenv("PIP_INDEX_URL", "index")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "uv's own")
    module.install(["pytest"])
    env = json.loads((checkout / "told").read_text())
    assert env["UV_FIND_LINKS"] == "wheels"
    assert env["UV_DEFAULT_INDEX"] == "uv's own"


def test_a_step_that_fails_is_shown_with_what_it_said(checkout: Path, tmp_path: Path) -> None:
    script(checkout / "bin", "python", 'echo "the disk is full"; exit 3')
    module = load(checkout)
    with pytest.raises(module.CannotDo, match=r"(?s)ended with 3.*the disk is full"):
        module.run_step(str(checkout / "bin" / "python"), "-m", "venv")
    with pytest.raises(module.CannotDo, match="No such file"):
        module.run_step("/no/such/program")


# CPython's own tests of locks


def test_debians_lock_tests_join_the_rest_of_the_package(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(checkout)
    script(checkout / "bin", "python", "exit 1")
    (checkout / "lock_tests.py").write_text("from test import support\nhere = __file__\n")
    monkeypatch.setattr(module, "PYTHON", str(checkout / "bin" / "python"))
    monkeypatch.setattr(module, "from_debian", lambda package, pattern: checkout / "lock_tests.py")
    env = {**CLEAN, "PYTHONPATH": os.pathsep.join(module.cpython_tests())}
    code = "import test.lock_tests as t; print(t.here)"
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    assert done.stdout.startswith(str(checkout / ".dev"))


@pytest.mark.parametrize("ci", ["true", ""])
def test_missing_lock_tests_fail_in_ci_and_are_reported_at_home(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str
) -> None:
    module = load(checkout)
    script(checkout / "bin", "python", "exit 1")
    monkeypatch.setattr(module, "PYTHON", str(checkout / "bin" / "python"))
    monkeypatch.setenv("PATH", str(checkout / "bin"))  # not a Debian
    monkeypatch.setenv("CI", ci)
    module.DEV.mkdir()
    if ci:
        with pytest.raises(module.CannotDo):
            module.cpython_tests()
    else:
        assert module.cpython_tests() == []
        assert "test.lock_tests" in capsys.readouterr().err


def test_a_program_comes_after_those_that_the_machine_has(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(checkout)
    monkeypatch.setattr(module, "cpython_tests", list)
    monkeypatch.setattr(module, "PROGRAMS", {"less": module.pager})
    monkeypatch.setattr(module, "from_maven", lambda name, env: None)
    monkeypatch.setattr(module, "from_debian", lambda package, pattern: checkout / ".dev" / package / pattern)
    monkeypatch.setattr(module, "java", lambda: None)
    monkeypatch.setenv("PATH", "/no/programs")
    assert module.variables_for_benches()["PATH"] == f"/no/programs:{checkout}/.dev/less/usr/bin"
    script(checkout / "bin", "less", "")
    monkeypatch.setenv("PATH", str(checkout / "bin"))
    assert module.variables_for_benches()["PATH"] == str(checkout / "bin")


def test_tests_are_started_without_any_server_and_fetch_what_they_need(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = load(checkout)
    fetched = []
    monkeypatch.setattr(module, "cpython_tests", list)
    monkeypatch.setattr(module, "PROGRAMS", {"less": lambda: fetched.append("less") or checkout / "bin"})
    monkeypatch.setenv("CI", "")
    env = module.variables_for_tests()
    assert fetched == []
    assert env["FAIRLOCK_DEV"] == str(checkout / "dev")
    assert module.fetch(["less"]) == 0
    assert (capsys.readouterr().out, fetched) == (f"{checkout}/bin\n", ["less"])


def test_a_server_that_was_fetched_does_not_wait_for_another_that_is_being_fetched(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = load(checkout)
    folder = checkout / "bin"
    folder.mkdir()
    fetched: list[str] = []
    monkeypatch.setattr(module, "PROGRAMS", {"less": lambda: fetched.append("less") or folder})
    assert module.fetch(["less"]) == 0
    with module.fetching("packages"):
        assert module.fetch(["less"]) == 0
    assert (capsys.readouterr().out, fetched) == (f"{folder}\n" * 2, ["less"])
    folder.rmdir()
    assert module.fetch(["less"]) == 0
    assert fetched == ["less"] * 2


def test_the_servers_that_the_machine_lacks_are_fetched_while_the_environment_is_made(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(checkout)
    started: list[list[str]] = []
    monkeypatch.setattr(module.subprocess, "Popen", lambda command, **_: started.append(command))
    monkeypatch.setattr(module.shutil, "which", lambda name: "/bin/less" if name == "less" else None)
    monkeypatch.setattr(module, "make_venv", lambda: started.append(["environment"]))
    monkeypatch.setattr(module, "COMMANDS", {"test": lambda args: 0})
    for args in (["test"], ["test", "tests/engine"]):
        monkeypatch.setattr(module.sys, "argv", ["dev", *args])
        assert module.main() == 0
    fetch, *rest = started
    assert (rest, fetch[2]) == ([["environment"]] * 2, "fetch")
    assert {*fetch[3:]} == {*module.PROGRAMS} - {"less", "frameworks"}  # these need pip, which is not there yet


def test_on_a_new_machine_one_process_compiles_the_tests_first(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(checkout)
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(module, "run", lambda *args, **_: ran.append(args))
    module.compile_tests({})
    (checkout / "tests" / "__pycache__").mkdir(parents=True)
    module.compile_tests({})
    assert ran == [("-m", "pytest", "--collect-only", "-q")]


@pytest.mark.parametrize("failed, code", [(3, 0), (4, 1)])
def test_at_most_three_failures_are_run_again(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: int, code: int
) -> None:
    module = load(checkout)
    cache = checkout / ".pytest_cache" / "v" / "cache" / "lastfailed"
    cache.parent.mkdir(parents=True)
    cache.write_text(json.dumps({f"tests/test_gone.py::test_{number}": True for number in range(4)}))  # of another tree

    def run(*args: str, env: dict[str, str]) -> int:
        if "--last-failed" in args:
            return 0
        before = json.loads(cache.read_text()) if cache.exists() else {}  # pytest forgets no test that is gone
        cache.write_text(json.dumps(before | {f"tests/test_a.py::test_{number}": True for number in range(failed)}))
        return 1

    monkeypatch.setattr(module, "run", run)
    assert module.run_tests(env={}) == code
    printed = capsys.readouterr().err
    assert all(f"tests/test_a.py::test_{number}" in printed for number in range(failed))
    assert f"{failed} replayed, 0 failed again" in printed if code == 0 else "at most 3" in printed


# Redis


def package(checkout: Path, name: str, *files: str) -> None:
    """A package that is unpacked already. The programs in it print the libraries that they were started with."""
    for file in files:
        script((checkout / ".dev" / name / file).parent, Path(file).name, 'echo "$LD_LIBRARY_PATH|$*"')


@pytest.fixture
def unpacked(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A machine without a Redis and without one of its libraries, and with Debian's packages of both."""
    module = load(checkout)
    (checkout / "bin").mkdir()
    (checkout / ".dev" / "redis-tools" / "usr").mkdir(parents=True)
    package(checkout, "redis-tools", "usr/bin/redis-check-rdb", "usr/bin/redis-cli")
    (checkout / ".dev" / "liblzf1" / "usr" / "lib").mkdir(parents=True)
    package(checkout, "liblzf1", "usr/lib/liblzf.so.1")
    told = "printf 'liblzf.so.1 => not found\\nlibc.so.6 => /lib/libc.so.6 (0x1)\\n'"
    script(checkout / "bin", "ldd", f'case "$LD_LIBRARY_PATH" in *liblzf1*) ;; *) {told} ;; esac')
    monkeypatch.setenv("PATH", f"{checkout}/bin")
    monkeypatch.setattr(module, "cpython_tests", list)
    monkeypatch.setattr(module, "from_maven", lambda name, env: None)
    monkeypatch.setattr(module.shutil, "which", lambda name, path=None: None if name == "redis-server" else name)
    return module


def test_debians_redis_is_started_with_the_libraries_that_the_machine_lacks(
    checkout: Path, unpacked: ModuleType
) -> None:
    path = unpacked.variables_for_benches()["PATH"]
    assert path == f"{checkout}/bin:{checkout}/.dev/bin/redis"
    for name in ("redis-server", "redis-cli"):
        done = subprocess.run([checkout / ".dev/bin/redis" / name, "--port", "0"], capture_output=True, text=True)
        assert done.stdout == f"{checkout}/.dev/liblzf1/usr/lib|--port 0\n"


def test_a_redis_that_the_machine_has_is_used(
    checkout: Path, unpacked: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacked.shutil, "which", lambda name, path=None: name)
    assert unpacked.variables_for_benches()["PATH"] == f"{checkout}/bin"


@pytest.mark.parametrize("ci", ["true", ""])
def test_a_redis_whose_libraries_cannot_be_had_fails_in_ci_and_is_reported_at_home(
    checkout: Path, unpacked: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    shutil.rmtree(checkout / ".dev" / "liblzf1")
    script(checkout / "bin", "ldd", "echo 'liblzf.so.1 => not found'")
    if ci:
        with pytest.raises(unpacked.CannotDo):
            unpacked.redis_server()
    else:
        assert unpacked.redis_server() is None
        assert "liblzf.so.1" in capsys.readouterr().err


def test_lists_of_our_own_are_fetched_once_for_all_packages(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = bare_machine(checkout, monkeypatch, lists="no")
    script(checkout / "bin", "dpkg", 'mkdir -p "$3/usr"; touch "$3/usr/it"')
    fetch = FETCH.format(log=checkout / "log", lists="no").replace("[ -e", 'case "$*" in *lists=*) [ -e', 1)
    script(checkout / "bin", "apt-get", fetch.replace("|| exit 100;", "|| exit 100 ;; *) exit 100 ;; esac;"))
    for name in ("one", "another"):
        assert module.from_debian(name, "usr/it") == checkout / ".dev" / name / "usr" / "it"
    asked = (checkout / "log").read_text().splitlines()
    assert len([line for line in asked if line.endswith("update")]) == 1


def test_debians_mariadb_finds_what_it_begins_with(checkout: Path, unpacked: ModuleType) -> None:
    home = checkout / ".dev" / "mariadb-server-core" / "usr"
    (home / "share" / "mysql").mkdir(parents=True)
    package(checkout, "mariadb-server-core", "usr/sbin/mariadbd")
    for _ in range(2):  # it may be there already
        assert unpacked.mariadb() == checkout / ".dev" / "bin" / "mariadb"
    assert (checkout / ".dev" / "bin" / "mariadb" / "share").resolve() == home / "share" / "mysql"
    done = subprocess.run([checkout / ".dev/bin/mariadb/mariadbd", "--help"], capture_output=True, text=True)
    assert done.stdout == f"{checkout}/.dev/liblzf1/usr/lib|--help\n"

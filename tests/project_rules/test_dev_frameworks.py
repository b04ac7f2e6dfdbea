"""`./dev fetch frameworks`: once, into a folder of their own; without a network a failure in CI, a sentence at home."""

import json
from pathlib import Path

import pytest

from tests.project_rules.test_dev import checkout as checkout
from tests.project_rules.test_dev import load
from tests.servers import programs


def test_they_are_fetched_once_into_a_folder_of_their_own(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = load(checkout)
    installed: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(module, "install_into", lambda name, wanted: installed.append((name, wanted)))
    monkeypatch.setenv("CI", "")
    module.DEV.mkdir()
    assert module.fetch(["frameworks"]) == 0
    assert module.fetch(["frameworks"]) == 0
    assert capsys.readouterr().out == f"{checkout}/.dev/frameworks\n" * 2
    ((name, wanted),) = installed
    assert name == "frameworks"
    assert {each.partition(">")[0] for each in wanted} >= {"django", "fastapi", "celery", "alembic", "mcp"}


def test_a_list_that_has_changed_is_fetched_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(checkout)
    installed: list[list[str]] = []
    monkeypatch.setattr(module, "install_into", lambda name, wanted: installed.append(wanted))
    module.DEV.mkdir()
    module.frameworks()
    (checkout / ".dev" / "frameworks" / "made-from").write_text(json.dumps([["django==1"], "3.11"]))
    module.frameworks()
    assert len(installed) == 2


@pytest.mark.parametrize("ci", ["true", ""])
def test_without_a_network_they_fail_in_ci_and_are_reported_at_home(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str
) -> None:
    module = load(checkout)

    def refuse(name: str, wanted: list[str]) -> None:
        raise module.CannotDo("no network")

    monkeypatch.setattr(module, "install_into", refuse)
    monkeypatch.setenv("CI", ci)
    module.DEV.mkdir()
    if ci:
        with pytest.raises(module.CannotDo):
            module.frameworks()
    else:
        assert module.frameworks() is None
        assert "tests with frameworks cannot run: no network" in capsys.readouterr().err
    assert not (checkout / ".dev" / "frameworks" / "made-from").exists()  # so the next run tries again


def test_without_dev_only_a_whole_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLOCK_DEV", raising=False)
    monkeypatch.setattr(programs, "__file__", str(tmp_path / "tests" / "servers" / "programs.py"))
    folder = tmp_path / ".dev" / "frameworks"
    folder.mkdir(parents=True)
    assert programs.find_frameworks() is None
    (folder / "made-from").touch()
    assert programs.find_frameworks() == folder

"""./dev gets Cassandra and H2 by Maven: once, and it reports what this machine lacks. A small script plays Maven."""

from pathlib import Path

import pytest

from tests.project_rules.test_dev import checkout as checkout
from tests.project_rules.test_dev import load, script

MAVEN = """echo run >> {log}
for word; do case "$word" in -DoutputDirectory=*) folder="${{word#*=}}";; esac; done
mkdir -p "$folder"
: > "$folder"/{jar}.jar
"""


@pytest.mark.parametrize("name", ["cassandra", "h2"])
def test_jars_come_by_maven_and_only_once(checkout: Path, tmp_path: Path, name: str) -> None:
    module = load(checkout)
    module.DEV.mkdir()
    script(checkout / "bin", "java", "")
    (_, artifact), version = module.FROM_MAVEN[name]
    script(checkout / "bin", "mvn", MAVEN.format(log=tmp_path / "log", jar=f"{artifact}-{version}"))
    env = {"PATH": f"{checkout}/bin:/usr/bin:/bin"}
    for _ in range(2):
        assert module.from_maven(name, env) == checkout / ".dev" / name
    assert (tmp_path / "log").read_text() == "run\n"
    assert [path.name for path in (checkout / ".dev").iterdir()] == [name]


@pytest.mark.parametrize("ci", ["true", ""])
def test_a_machine_without_maven_fails_in_ci_and_is_reported_at_home(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str
) -> None:
    module = load(checkout)
    module.DEV.mkdir()
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(module, "maven", lambda env: None)
    if ci:
        with pytest.raises(module.CannotDo, match="Maven"):
            module.from_maven("h2", {"PATH": "/no/programs"})
    else:
        assert module.from_maven("h2", {"PATH": "/no/programs"}) is None
        assert "Maven" in capsys.readouterr().err


def test_links_of_an_unpacked_package_stay_inside_it(checkout: Path, tmp_path: Path) -> None:
    root = tmp_path / "package"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "settings").write_text("ours")
    (root / "conf").symlink_to("/etc/settings")
    (root / "else").symlink_to("/etc/hostname")
    load(checkout).relocate_links(root)
    assert (root / "conf").read_text() == "ours"
    assert (root / "else").readlink() == Path("/etc/hostname")

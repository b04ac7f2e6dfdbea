"""Shell completion: the bash script is run by bash; those of zsh and fish are parsed if the shell is installed."""

import shlex
import shutil
import subprocess

import pytest

from fairlock.cli import completion
from fairlock.cli.command_table import COMMANDS
from fairlock.cli.parse_arguments import GLOBAL, HELP

SHELLS = {"bash": completion.bash, "zsh": completion.zsh, "fish": completion.fish}


def complete(line: str) -> list[str]:
    """Return what bash offers for the last word of this line."""
    words = line.split(" ")
    array = shlex.join(words)
    ask = f"COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _fairlock; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{completion.bash()}\n{ask}"], capture_output=True, text=True, timeout=20
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands() -> None:
    assert complete("fairlock re") == ["renew", "release", "resize"]
    assert complete("fairlock -q re") == ["renew", "release", "resize"]
    assert complete("fairlock -u redis://run re") == ["renew", "release", "resize"]
    assert set(complete("fairlock ")) == {name.split()[0] for name in COMMANDS} | {"help"}
    assert complete("fairlock pool ") == ["add", "run", "ls", "done", "rm"]
    assert complete("fairlock help sh") == ["show"]


@pytest.mark.parametrize("name", COMMANDS)
def test_bash_completes_every_option(name: str) -> None:
    every = {o for option in COMMANDS[name].options + GLOBAL + HELP for o in option.names}
    assert set(complete(f"fairlock {name} -")) == every


def test_bash_completes_values() -> None:
    assert complete("fairlock run --on-lost ") == ["kill", "term", "warn"]
    assert complete("fairlock --scope m") == ["machines"]
    assert complete("fairlock pool ls jobs --state f") == ["free"]
    assert complete("fairlock completion ") == ["bash", "zsh", "fish"]


def test_bash_completes_the_wrapped_command() -> None:
    assert "bash" in complete("fairlock run x bas")
    assert "bash" in complete("fairlock run -n --lease 5 x -- bas")
    assert complete("fairlock run x -- --on") == []
    assert complete("fairlock pool run --on") == ["--on-lost"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_valid(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=SHELLS[shell](), capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_script_has_every_command_and_option(shell: str) -> None:
    """Also where the shell is not installed."""
    script = SHELLS[shell]()
    for command in COMMANDS.values():
        assert command.name.split()[-1] in script
        for option in command.options + GLOBAL + HELP:
            for name in option.names:
                form = name if shell == "zsh" else f"-l {name[2:]} " if name.startswith("--") else f"-s {name[1:]} "
                assert form in script
    assert script.count("'") % 2 == 0
    assert shlex.split(script, comments=True), "every quote is closed"

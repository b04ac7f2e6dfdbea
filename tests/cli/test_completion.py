"""Shell completion: each script is run by its shell."""

import os
import pty
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlock.cli import shell_completion
from fairlock.cli.command_table import COMMANDS
from fairlock.cli.parse_arguments import GLOBAL, HELP
from tests.servers import programs
from tests.servers.fixtures import lacking

SHELLS = {"bash": shell_completion.bash, "zsh": shell_completion.zsh, "fish": shell_completion.fish}


def need(shell: str) -> None:
    if programs.find(shell) is None:
        lacking(f"This machine has no {shell}.")


def bash(line: str, folder: Path) -> list[str]:
    """Return what bash offers for the last word of this line."""
    words = line.split(" ")
    array = shlex.join(words)
    ask = f"COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _fairlock; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{shell_completion.bash()}\n{ask}"], capture_output=True, text=True, timeout=20
    )
    assert done.stderr == ""
    return done.stdout.split()


def fish(line: str, folder: Path) -> list[str]:
    ask = f"{shell_completion.fish()}\ncomplete --do-complete={shlex.quote(line)}"
    env = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, timeout=20, env=env)
    assert done.stderr == ""
    return [offer.partition("\t")[0] for offer in done.stdout.splitlines()]


ZSH = """
PROMPT=''
autoload -Uz compinit; compinit -u -D
source {script}
compadd() {{
    if [[ " ${{@[1,(i)(-|--)]}} " != *" -"[OAD]" "* ]]; then
        local -a hits; builtin compadd -A hits "$@"
        (( $#hits )) && print -rl -- $hits >> {offers}
    fi
    builtin compadd "$@"
}}
finish() {{ print -r -- '@end' >> {offers}; zle kill-whole-line }}
zle -N finish; bindkey '^X^X' finish
print -r -- '@end' >> {offers}
"""


def zsh(line: str, folder: Path) -> list[str]:
    """A zsh at a terminal, because only its line editor completes. It writes all offers to a file."""
    script, offers, settings = folder / "script", folder / "offers", folder / "settings"
    script.write_text(shell_completion.zsh())
    settings.write_text(ZSH.format(script=script, offers=offers))
    offers.write_text("")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": str(folder)})
    printed = b""
    try:
        for typed, ends in ((f"source {settings}\n", 1), (f"{line}\t\x18\x18", 2)):
            os.write(terminal, typed.encode())
            limit = time.monotonic() + 30
            while offers.read_text().split("\n").count("@end") < ends:
                assert time.monotonic() < limit, printed
                if select.select([terminal], [], [], 0.02)[0]:
                    printed += os.read(terminal, 1 << 16)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert b"_fairlock" not in printed, printed  # an error names its function
    return [offer for offer in offers.read_text().split("\n") if offer not in ("", "@end")]


COMPLETE: dict[str, Callable[[str, Path], list[str]]] = {"bash": bash, "zsh": zsh, "fish": fish}


@pytest.fixture(params=COMPLETE)
def complete(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], list[str]]:
    """Complete the last word of a line in a real shell."""
    need(request.param)
    return lambda line: sorted(set(COMPLETE[request.param](line, tmp_path)))


def test_a_shell_completes_commands(complete: Callable[[str], list[str]]) -> None:
    for line in ("fairlock re", "fairlock -q re", "fairlock -u redis://run re"):
        assert complete(line) == ["release", "renew", "resize"]
    assert set(complete("fairlock ")) >= {name.split()[0] for name in COMMANDS} | {"help"}
    assert complete("fairlock pool ") == ["add", "done", "ls", "rm", "run"]
    assert complete("fairlock help sh") == ["show"]


def test_a_shell_completes_values(complete: Callable[[str], list[str]]) -> None:
    assert complete("fairlock run --on-lost ") == ["kill", "term", "warn"]
    assert complete("fairlock --scope m") == ["machines"]
    assert complete("fairlock pool ls jobs --state f") == ["free"]
    assert complete("fairlock completion ") == ["bash", "fish", "zsh"]


def test_a_shell_completes_the_wrapped_command(complete: Callable[[str], list[str]]) -> None:
    assert "bash" in complete("fairlock run x bas")
    assert "bash" in complete("fairlock run -n --lease 5 x -- bas")
    assert "bash" in complete("fairlock pool run jobs bas")
    assert "--on-lost" not in complete("fairlock run x -- --on")
    assert complete("fairlock pool run --on") == ["--on-lost"]


@pytest.mark.parametrize("name", COMMANDS)
def test_bash_completes_every_option(name: str, tmp_path: Path) -> None:
    every = {o for option in COMMANDS[name].options + GLOBAL + HELP for o in option.names}
    assert set(bash(f"fairlock {name} -", tmp_path)) == every


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_valid(shell: str) -> None:
    need(shell)
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

"""The command line is parsed, or the error is a sentence."""

from typing import get_type_hints

import pytest

from fairlock.cli import MODULES, find_function, main
from fairlock.cli.command_table import COMMANDS
from fairlock.cli.exit_codes import Usage
from fairlock.cli.parse_arguments import Arguments, duration, parse


def args(*argv: str) -> Arguments:
    return parse(argv, COMMANDS)


@pytest.mark.parametrize(
    "text, seconds",
    [("5", 5), ("0.5", 0.5), (".5", 0.5), ("500ms", 0.5), ("30s", 30), ("2m", 120), ("1h", 3600), ("1d", 86400),
     ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "s", "-1", "+1", "nan", "inf", "1e3", "1_000", " 5", "5 s", "5x", "5sm", "1.2.3", "٣", "m5", "9" * 400, "5S",
     "."],
)
def test_a_bad_duration_is_a_usage_error_with_examples(text: str) -> None:
    with pytest.raises(Usage, match=r"-w needs a duration such as 5, 0\.5, 500ms, 2m or 1h, not"):
        args("run", "-w", text, "x", "true")


def test_everything_after_the_name_belongs_to_the_command() -> None:
    it = args("run", "-n", "x", "grep", "-n", "--json", "-w", "--", "-q")
    assert it.operands == ["x", "grep", "-n", "--json", "-w", "--", "-q"]
    assert it["nonblock"]
    assert not it["json"]


def test_an_operand_too_many_is_named() -> None:
    with pytest.raises(Usage, match="The form is `fairlock doctor`; 'x' is too much"):
        args("doctor", "x")


@pytest.mark.parametrize("argv", [("-u", "memory://", "run", "x", "true"), ("run", "-u", "memory://", "x", "true")])
def test_global_options_go_before_or_after_the_command(argv: tuple[str, ...]) -> None:
    assert args(*argv)["url"] == "memory://"


def test_other_commands_take_options_after_their_operands() -> None:
    it = args("evict", "x", "--reason", "stuck", "-y", "--json")
    assert it.operands == ["x"]
    assert (it["reason"], it["yes"], it["json"]) == ("stuck", True, True)


def test_letters_bundle_and_values_stick_as_with_getopt() -> None:
    it = args("run", "-sqw5", "--lease=2m", "-E9", "x", "true")
    assert (it["shared"], it["quiet"], it["wait"], it["lease"], it["conflict"]) == (True, True, 5, 120, 9)


@pytest.mark.parametrize(
    "short, long, key",
    [("-n", "--nonblock", "nonblock"), ("-n", "--nb", "nonblock"), ("-w5", "--timeout=5", "wait"),
     ("-w5", "--wait=5", "wait"), ("-E5", "--conflict-exit-code=5", "conflict"), ("-s", "--shared", "shared"),
     ("-x", "--exclusive", "shared"),
     ("-e", "--exclusive", "shared")],
)
def test_flock_letters_and_long_names(short: str, long: str, key: str) -> None:
    assert args("run", short, "x", "true")[key] == args("run", long, "x", "true")[key]
    assert args("run", short, "x", "true")[key] is not None


def test_the_last_of_shared_and_exclusive_counts() -> None:
    assert args("run", "-s", "-x", "x", "true")["shared"] is False


def test_a_double_dash_lets_a_name_begin_with_a_dash() -> None:
    assert args("run", "--", "-x-", "true").operands == ["-x-", "true"]


@pytest.mark.parametrize(
    "argv, sentence",
    [
        ((), "No command is given."),
        (("frobnicate",), "There is no command 'frobnicate'."),
        (("pond",), "There is no command 'pond'"),
        (("realese", "x"), "did you mean `release`?"),
        (("run",), r"The form is `fairlock run \[options\] NAME"),
        (("run", "--frob", "x", "true"), "There is no option '--frob' here"),
        (("run", "--max", "x", "true"), "did you mean --max-hold?"),
        (("run", "--lese", "5", "x", "true"), "did you mean --lease?"),
        (("run", "--nonblok", "x", "true"), "did you mean --nonblock?"),
        (("run", "--verbatim", "x", "true"), "There is no option '--verbatim' here."),
        (("--jsn", "ls"), "did you mean --json?"),
        (("acquier", "x"), "did you mean `acquire`?"),
        (("pol", "ls", "x"), "did you mean `pool`?"),
        (("pool", "ad", "x"), "There is no command `pool ad`; did you mean `pool add`?"),
        (("completion", "tcsh"), "`fairlock completion` needs bash, zsh or fish, not 'tcsh'"),
        (("-n", "run", "x", "true"), "There is no option '-n' here"),
        (("run", "-w"), "-w needs a value: -w DUR"),
        (("run", "-n=1", "x", "true"), "There is no option '-=' here"),
        (("run", "--nonblock=1", "x", "true"), "--nonblock takes no value"),
        (("run", "-E", "256", "x", "true"), "-E needs an exit code from 0 to 255, not '256'"),
        (("run", "--slots", "0", "x", "true"), "--slots needs a whole number from 1 up, or `stored`, not '0'"),
        (("run", "--on-lost", "pray", "x", "true"), "--on-lost needs kill, term or warn, not 'pray'"),
        (("--scope", "galaxy", "ls"), "--scope needs any or machines, not 'galaxy'"),
        (("run", "-c", "echo hi", "x"), "-c comes directly after the name"),
        (("run", "-o", "x", "true"), "flock's -o is not needed"),
        (("run", "-q", "-v", "x", "true"), "-q prints less and -v prints more"),
        (("run", "-n", "-w", "5", "x", "true"), "-n does not wait and -w waits for some time: use one"),
        (("run", "-nw0", "x", "true"), "-n does not wait and -w waits"),
        (("acquire", "x", "--wait=5", "--nonblock"), "-n does not wait and -w waits"),
        (("pool", "run", "-n", "-w", "5", "x", "true"), "-n does not wait and -w waits"),
        (("acquire", "x", "-s", "--slots", "2"), "--slots makes a semaphore"),
        (("show",), "The form is `fairlock show NAME`"),
        (("show", "a", "b"), "'b' is too much"),
        (("doctor", "now"), "'now' is too much"),
    ],
)
def test_a_usage_error_is_a_sentence(argv: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(Usage, match=sentence.replace("?", r"\?") if r"\[" not in sentence else sentence):
        args(*argv)


def test_a_usage_error_exits_64_with_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate\n\x1b[31m"]) == 64
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("fairlock: There is no command")
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_function_that_takes_the_arguments(name: str) -> None:
    command = find_function(name)
    assert command.__module__ == f"fairlock.cli.{MODULES[name]}"
    assert get_type_hints(command)["args"] is Arguments


HELPS = [["--help"], ["help"], *[[*name.split(), "--help"] for name in COMMANDS], ["help", "run"]]


@pytest.mark.parametrize("argv", [*HELPS, ["pool", "--help"], ["help", "pool"], ["help", "pool", "add"]])
def test_help_fits_a_terminal_and_goes_to_stdout(argv: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.endswith("\n")
    assert max(map(len, out.splitlines())) <= 110


def test_help_does_not_swallow_a_help_option_of_the_command() -> None:
    assert args("run", "x", "ls", "--help").operands == ["x", "ls", "--help"]

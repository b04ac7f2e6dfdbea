"""`fairlock completion SHELL`: completion scripts for bash, zsh and fish, made of the table of commands.

They complete commands, options and values with a fixed list. Rejected alternative: lock names. Each Tab would send a
request to the store, which may be far away or down.
"""

from . import output
from .command_table import COMMANDS
from .parse_arguments import GLOBAL, GROUPS, HELP, Arguments, Choice, Command, Option


def completion(args: Arguments) -> int:
    output.out({"bash": bash, "zsh": zsh, "fish": fish}[args.operands[0]]())
    return 0


def options_for(command: Command | None) -> tuple[Option, ...]:
    return (*(command.options if command is not None else ()), *GLOBAL, *HELP)


def values_for(option: Option) -> tuple[str, ...]:
    return option.parse.allowed if isinstance(option.parse, Choice) else ()


# The words that can follow `fairlock help`, `fairlock`, and a group such as `pool`; each with a summary.
HELPED = {(word := name.partition(" ")[0]): GROUPS.get(word, command.summary) for name, command in COMMANDS.items()}
WORDS = {**HELPED, "help": "print help for a command"}
MEMBERS = {
    word: {name.partition(" ")[2]: command.summary for name, command in COMMANDS.items() if name.startswith(f"{word} ")}
    for word in GROUPS
}


def with_value() -> list[str]:
    """Return the options that take a value, of any command."""
    found = [o for command in (None, *COMMANDS.values()) for o in options_for(command) if o.value]
    return list(dict.fromkeys(name for option in found for name in option.names))


def bash() -> str:
    options = "\n".join(
        f'        {pattern(name)}) options="{" ".join(n for o in options_for(command) for n in o.names)}" ;;'
        for name, command in COMMANDS.items()
    )
    values = "\n".join(
        f'        "{command.name} {name}") values="{" ".join(values_for(option))}" ;;'
        for command in COMMANDS.values()
        for option in options_for(command) for name in option.names if values_for(option)
    )  # fmt: skip
    operands = "\n".join(
        f'        {pattern(command.name)}) values="{" ".join(command.operand.allowed)}" ;;'
        for command in COMMANDS.values() if command.operand is not None
    )  # fmt: skip
    nested = "\n".join(f'        {word}) words="{" ".join(MEMBERS[word])}" ;;' for word in GROUPS)
    greedy = "|".join(pattern(command.name) for command in COMMANDS.values() if command.greedy)
    return f'''\
# bash completion for fairlock; made by `fairlock completion bash`
_fairlock() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="" command="" operands=0 i word words options values
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        if [[ $prev != skip && $word == -?* ]]; then
            case "$word" in
            {"|".join(with_value())}) prev=skip ;;
            *) prev="" ;;
            esac
            continue
        fi
        [[ $prev == skip ]] && {{ prev=""; continue; }}
        case "$command" in
        "") command="$word" ;;
        {"|".join(GROUPS)}) command="$command $word" ;;
        *) operands=$((operands + 1)) ;;
        esac
    done
    case "$command" in
        {greedy}) if ((operands)); then _fairlock_command $((COMP_CWORD - operands + 1)); return; fi ;;
    esac
    if [[ $prev == skip ]]; then
        case "$command ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
        *" --scope") values="{" ".join(values_for(next(o for o in GLOBAL if o.key == "scope")))}" ;;
        *) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
        COMPREPLY=($(compgen -W "$values" -- "$cur"))
        return
    fi
    case "$command" in
        "") words="{" ".join(WORDS)}" ;;
        help) words="{" ".join(HELPED)}" ;;
{nested}
    esac
    case "$command" in
{options}
        *) options="{" ".join(n for o in options_for(None) for n in o.names)}" ;;
    esac
    case "$command" in
{operands}
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$words $values" -- "$cur"))
    fi
}}

# After NAME: the wrapped command, with its own completion if bash-completion is loaded.
_fairlock_command() {{
    local first=$1
    [[ ${{COMP_WORDS[first]}} == -- ]] && first=$((first + 1))
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$first"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$first"
    elif ((COMP_CWORD == first)); then
        COMPREPLY=($(compgen -c -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}}
complete -F _fairlock fairlock
'''


def pattern(name: str) -> str:
    return f'"{name}"' if " " in name else name


def zsh() -> str:
    cases = "\n".join(
        f"        ({pattern(command.name)})\n            _arguments -s {' '.join(zsh_arguments(command))} ;;"
        for command in COMMANDS.values()
    )
    nested = "\n".join(
        f"        ({word})\n            words_here=({zsh_pairs(MEMBERS[word])})\n"
        f"            if ((CURRENT == 3)); then _describe command words_here; return; fi\n"
        f'            command="$command ${{words[3]}}"; shift 2 words; ((CURRENT -= 2)) ;;'
        for word in GROUPS
    )  # fmt: skip
    return f'''\
#compdef fairlock
# zsh completion for fairlock; made by `fairlock completion zsh`
_fairlock() {{
    local command=""
    local -a words_here
    while ((CURRENT > 2)) && [[ ${{words[2]}} == -* ]]; do
        case "${{words[2]}}" in
        ({"|".join(n for o in GLOBAL if o.value for n in o.names)})
            ((CURRENT == 3)) && break
            shift words; ((CURRENT -= 1)) ;;
        esac
        shift words; ((CURRENT -= 1))
    done
    if ((CURRENT <= 2)) || [[ ${{words[2]}} == -* ]]; then
        words_here=({zsh_pairs(WORDS)})
        _arguments -s {" ".join(map(zsh_option, options_for(None)))} ':command:->first' && return
        _describe command words_here
        return
    fi
    command="${{words[2]}}"
    case "$command" in
{nested}
        (*) shift words; ((CURRENT -= 1)) ;;
    esac
    case "$command" in
        (help) ((CURRENT == 2)) && {{ words_here=({zsh_pairs(HELPED)}); _describe command words_here }} ;;
{cases}
    esac
}}

# After NAME: the wrapped command, with its own completion.
_fairlock_command() {{
    [[ ${{words[1]}} == -- ]] && ((CURRENT > 1)) && {{ shift words; ((CURRENT -= 1)) }}
    _normal
}}
if [[ ${{funcstack[1]}} == _fairlock ]]; then _fairlock "$@"; else compdef _fairlock fairlock; fi
'''


def zsh_pairs(pairs: dict[str, str]) -> str:
    return " ".join(quoted(f"{word}:{summary.replace(':', chr(92) + ':')}") for word, summary in pairs.items())


def zsh_arguments(command: Command) -> list[str]:
    rest = "'*:::command:_fairlock_command'" if command.greedy else "'*:operand:'"
    if command.operand is not None:
        rest = quoted(f"1:operand:({' '.join(command.operand.allowed)})")
    return [*map(zsh_option, options_for(command)), *(["'1:name:'"] if command.greedy else []), rest]


def zsh_option(option: Option) -> str:
    """Return the words of _arguments for one option: all of its names exclude each other."""
    help = option.help.replace("[", "(").replace("]", ")").replace(":", "")
    value = ""
    if option.value:
        free = "_files" if "FILE" in option.value else " "
        allowed = f"({' '.join(values_for(option))})" if values_for(option) else free
        value = f":{option.value}:{allowed}"
    names = " ".join(option.names)
    return " ".join(quoted(f"({names}){name}[{help}]{value}") for name in option.names)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish() -> str:
    top = f"not __fish_seen_subcommand_from {' '.join(WORDS)}"
    lines = ["# fish completion for fairlock; made by `fairlock completion fish`"]
    lines += [FISH_COMMAND, "complete -c fairlock -f"]
    lines += [fish_word(top, word, summary) for word, summary in WORDS.items()]
    lines += [fish_word("__fish_seen_subcommand_from help", word, summary) for word, summary in HELPED.items()]
    lines += [fish_option("", option) for option in options_for(None)]
    for group, these in MEMBERS.items():
        seen = f"__fish_seen_subcommand_from {group}; and not __fish_seen_subcommand_from {' '.join(these)}"
        lines += [fish_word(seen, word, summary) for word, summary in these.items()]
    for command in COMMANDS.values():
        word, _, member = command.name.partition(" ")
        seen = f"__fish_seen_subcommand_from {word}" + (f"; and __fish_seen_subcommand_from {member}" if member else "")
        if not member and any(command.name in MEMBERS[group] for group in GROUPS):  # ls, run: also of a group
            seen += "".join(f"; and not __fish_seen_subcommand_from {group}" for group in GROUPS)
        lines += [fish_option(seen, option) for option in command.options]
        if command.operand is not None:
            lines += [fish_word(seen, allowed, "") for allowed in command.operand.allowed]
        if command.greedy:
            before, taking = command.name.count(" ") + 2, " ".join(with_value())
            lines.append(f"complete -c fairlock -n {quoted(seen)} -a '(__fairlock_command {before} {taking})'")
    return "\n".join([*lines, ""])


FISH_COMMAND = """\
# After NAME: the wrapped command, with its own completion. The first argument says how many words come before it; the
# others are the options that take a value.
function __fairlock_command
    set -l line (commandline -opc)[2..]
    set -l words 0
    while test $words -lt $argv[1]
        if not set -q line[1]
            return
        end
        switch $line[1]
            case '-*'
                if contains -- $line[1] $argv[2..]
                    set -e line[1]
                end
            case '*'
                set words (math $words + 1)
        end
        set -e line[1]
    end
    if test "$line[1]" = --
        set -e line[1]
    end
    complete --do-complete=(string join ' ' -- (string escape -- $line) (commandline -ct))
end"""


def fish_word(condition: str, word: str, summary: str) -> str:
    return f"complete -c fairlock -n {quoted(condition)} -a {word}" + (f" -d {quoted(summary)}" if summary else "")


def fish_option(condition: str, option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = " -x" if option.value else ""
    if option.value and "FILE" in option.value:
        value = " -r -F"
    elif values_for(option):
        value = f" -x -a {quoted(' '.join(values_for(option)))}"
    when = f" -n {quoted(condition)}" if condition else ""
    return f"complete -c fairlock{when} {names}{value} -d {quoted(option.help)}"

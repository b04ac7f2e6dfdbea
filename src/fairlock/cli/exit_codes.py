"""The exit codes of the tool, what each means, and which one an exception of the library leads to.

The exit code of a wrapped command is passed through unchanged. Our own codes are therefore those that sysexits.h
reserves, and 126, 127 and 128+N, which every shell already uses.
"""

USAGE = 64
UNREACHABLE = 69
INTERNAL = 70
CANNOT_WRITE = 74
NOT_ACQUIRED = 75
REFUSED = 77
CONFIG = 78
LOST = 79
CANNOT_EXECUTE = 126
NOT_FOUND = 127
BY_SIGNAL = 128

MEANINGS = {
    USAGE: "usage error",
    UNREACHABLE: "the store cannot be reached",
    INTERNAL: "internal error",
    CANNOT_WRITE: "the output cannot be written (a full disk)",
    NOT_ACQUIRED: "not acquired in time",
    REFUSED: "refused: missing permissions, or a confirmation that was not given",
    CONFIG: "bad configuration",
    LOST: "the lease was lost and the command was stopped; renew and release: the lease is not held",
    CANNOT_EXECUTE: "the command cannot be executed",
    NOT_FOUND: "the command is not found",
}


class Exit(Exception):
    """Ends the tool with this code, and with this sentence on stderr unless it is empty."""

    def __init__(self, code: int, sentence: str = "", *, expected: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.expected = expected  # an outcome that the script asked about, not an error: -q suppresses the sentence


class Usage(Exit):
    """A usage error. The sentence names the wrong argument and the correct form."""

    def __init__(self, sentence: str) -> None:
        super().__init__(USAGE, sentence)


def classify(error: Exception) -> tuple[int, str]:
    """Return the exit code and the sentence for an exception. An unknown exception is an internal error."""
    from fairlock import errors  # not for --help and --version

    sentence = str(error) or type(error).__name__
    if isinstance(error, errors.LockTimeout | errors.AlreadyHeld):
        return NOT_ACQUIRED, sentence
    if isinstance(error, errors.LeaseLost | errors.NotHeld):
        return LOST, sentence
    if isinstance(error, errors.StoreError):
        return REFUSED if error.refused else UNREACHABLE, sentence
    if isinstance(error, errors.ConfigError):
        return CONFIG, error._in_a_shell or sentence
    if isinstance(error, OSError):
        return CANNOT_WRITE, f"The output cannot be written: {error.strerror or sentence}."
    return INTERNAL, f"Internal error: {type(error).__name__}: {sentence}. FAIRLOCK_DEBUG=1 shows the traceback."

"""What the tool says to a script: its exit codes.

A wrapped command's own code passes through untouched, so the tool's own codes keep to the range
that sysexits.h set aside, and to 126, 127 and 128+N, which every shell already uses.
"""

USAGE = 64
UNREACHABLE = 69
BUG = 70
CANNOT_WRITE = 74
NOT_ACQUIRED = 75
REFUSED = 77
CONFIG = 78
LOST = 79
CANNOT_EXECUTE = 126
NOT_FOUND = 127
BY_SIGNAL = 128


class Exit(Exception):
    """Ends the tool with a code, and a sentence on stderr unless there is nothing left to say."""

    def __init__(self, code: int, sentence: str = "", *, quietly: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.quietly = quietly  # -q may swallow it: an outcome that a script asked about, not a mistake


class Usage(Exit):
    """The words make no sense; the sentence says which and what would."""

    def __init__(self, sentence: str) -> None:
        super().__init__(USAGE, sentence)

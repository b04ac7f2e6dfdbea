"""From an exception of the library to the exit code and the sentence that a script and its reader get."""

from holdfast import errors

from . import exits


def verdict(error: Exception) -> tuple[int, str]:
    """Code and sentence. What we do not know is a bug, and says so."""
    sentence = str(error) or type(error).__name__
    if isinstance(error, errors.LockTimeout | errors.AlreadyHeld):
        return exits.NOT_ACQUIRED, sentence
    if isinstance(error, errors.LeaseLost | errors.NotHeld):
        return exits.LOST, sentence
    if isinstance(error, errors.BackendError):
        return exits.REFUSED if error.refused else exits.UNREACHABLE, sentence
    if isinstance(error, errors.ConfigError):
        return exits.CONFIG, error._in_a_shell or sentence
    if isinstance(error, OSError):
        return exits.CANNOT_WRITE, f"The answer cannot be written: {error.strerror or sentence}."
    return exits.BUG, f"This is a bug: {type(error).__name__}: {sentence}. HOLDFAST_DEBUG=1 shows where."

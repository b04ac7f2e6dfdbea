"""The error for a record of another format than the one that this version of fairlock reads."""


class NewerFormat(ValueError):
    """A later version of fairlock has written the record. It is not damaged."""


def other_format(found: object, known: int) -> ValueError:
    """Return the error for a record of this format."""
    text = f"a record of format {found}; this version of fairlock reads format {known}"
    return NewerFormat(text) if str(found).isdecimal() and int(str(found)) > known else ValueError(text)

"""JSON for the rows of stores: short, and made by the parts of `json` that are written in C.

`json` makes a new encoder in C for every call, which takes longer than the encoding, and spends half of its time on
finding the decoder. Here both are made once. `json` itself is imported only if this Python lacks these parts, or for
an error: its regular expressions take as long as ten modules of ours.
"""

from typing import Any


def _refuse(value: object) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


class _Rules:
    """What the scanner asks for: as `json.loads` does it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = {"-Infinity": float("-inf"), "Infinity": float("inf"), "NaN": float("nan")}.__getitem__


try:
    from _json import encode_basestring, make_encoder, make_scanner

    _pieces: Any = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)
    _rules: Any = _Rules
    _scan: Any = make_scanner(_rules)
except (ImportError, TypeError):  # it may make them from other parts some day
    import json

    _pieces = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).iterencode
    _scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def to_json(value: tuple[Any, ...] | list[Any]) -> str:
    return "".join(_pieces(value, 0))


def parse(text: str) -> Any:
    """Return what this JSON means. ValueError if it is none."""
    try:
        value, end = _scan(text, 0)
        if end == len(text):
            return value
    except StopIteration:
        raise ValueError("not JSON") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    except SystemError:  # the scanner has no error to raise, because it does not import json by itself
        pass
    import json

    return json.loads(text)  # spaces around it, or an error

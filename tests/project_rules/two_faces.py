"""Comparing the two faces of the library: what may differ between threads and asyncio is only who waits, and how."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

# The same thing under two names.
TWINS = {"__aenter__": "__enter__", "__aexit__": "__exit__"}
COMPARED = {"__enter__", "__exit__", "__call__", "__bool__", "__iter__", "__repr__"}


def members(cls: type) -> dict[str, Any]:
    """The public members of a class, its own and inherited ones of ours, under their names for threads."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        if base.__module__.split(".")[0] in ("builtins", "typing", "abc"):
            continue
        for name, member in vars(base).items():
            name = TWINS.get(name, name)
            if not name.startswith("_") or name in COMPARED:
                found[name] = member
        for name in [*inspect.get_annotations(base), *attributes(base)]:
            if not name.startswith("_"):
                found.setdefault(name, None)
    return found


def attributes(cls: type) -> list[str]:
    """Return the attributes that __init__ sets."""
    if not inspect.isfunction(vars(cls).get("__init__")):
        return []
    tree = ast.parse(textwrap.dedent(inspect.getsource(vars(cls)["__init__"])))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return [node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "self"]


def function_of(member: Any) -> Callable[..., Any] | None:
    member = member.__func__ if isinstance(member, staticmethod | classmethod) else member
    return member if inspect.isfunction(member) else None


def awaited(member: Any) -> bool:
    """Return whether a caller has to await what this gives."""
    function = function_of(member)
    if function is None:
        return False
    returns = inspect.signature(function).return_annotation
    if isinstance(returns, str):
        returns = function.__globals__.get(returns.strip("'\"").split("[")[0], returns)
    kind = getattr(returns, "__origin__", returns)
    return inspect.iscoroutinefunction(function) or (isinstance(kind, type) and hasattr(kind, "__await__"))


# A context manager that is a class, because a generator's could lose a Ctrl-C, and what the other face has instead.
CLASSES = {"HoldingAll": "Iterator[Mapping[str, Lease]]"}


def plainly(annotation: Any) -> str:
    """An annotation as the face for threads writes it."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:collections\.abc|contextlib|typing|types)\.", "", text.strip("'\""))
    text = re.sub(r"\bfairlock\.(?:client|aio)\.\w+\.", "", text)
    text = re.sub(r"\bAsync(?=[A-Z])|\bAbstractAsync(?=Context)", lambda m: m[0].replace("Async", ""), text)
    before = ""
    while before != text:  # from the inside out
        before = text
        text = re.sub(r"\b(?:Awaitable|Asking)\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]", r"\1", text)
        text = re.sub(r"\bCoroutine\[Any, Any, ([^\[\]]*)\]", r"\1", text)
    return CLASSES.get(text, text)


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return what a caller may pass: names, order, kinds, defaults, types."""
    found = []
    for each in inspect.signature(function).parameters.values():
        default = "" if each.default is each.empty else f" = {each.default!r}"
        found.append(f"{each.kind.description} {each.name}: {plainly(each.annotation)}{default}")
    return found


def differences(threads: type, tasks: type) -> list[str]:
    """Return what a program would have to change besides async and await."""
    ours, theirs = members(threads), members(tasks)
    found = [f"{threads.__name__}.{name} is in one face only" for name in sorted(set(ours) ^ set(theirs))]
    for name in sorted(set(ours) & set(theirs)):
        where = f"{threads.__name__}.{name}"
        one, other = function_of(ours[name]), function_of(theirs[name])
        if awaited(ours[name]):
            found.append(f"{where} must not be awaited in the face for threads")
        if (one is None) != (other is None):
            found.append(f"{where} is a method in one face only")
        elif one is not None and other is not None:
            if parameters(one) != parameters(other):
                found.append(f"{where} takes {parameters(one)} here and {parameters(other)} there")
            gives, there = (plainly(inspect.signature(each).return_annotation) for each in (one, other))
            if gives != there:
                found.append(f"{where} gives {gives} here and {there} there")
    return found

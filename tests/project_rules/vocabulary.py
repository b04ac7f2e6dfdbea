"""Find words of the old vocabulary and phrases that are not plain English, in code, pages, docstrings and messages.

    ./dev python -m tests.project_rules.vocabulary [FOLDER]     all findings below FOLDER, then their number per folder

The list comes from the vocabulary that the project decided on. docs/glossary.md holds the words that are used.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.project_rules.tree import ROOT, files

# Metaphors that the project no longer uses, as whole words or as parts of a name: desk, open_desk, DeskClosed.
OLD_WORDS = """
    holdfast doorman desk desks seat seats seated unseat wish wishes entrant entrants grave graves
    bury buried debt debts deaf insider insiders beacon shelf shelves atlas courier undertaker
    porter colour colours colourless ear ears bell bells dress undress
"""
# Names of classes and functions that got another one. As plain words in prose they are fine.
OLD_NAMES = {
    "Enter", "Leave", "Keep", "Admitted", "Left", "Gone", "Hold", "Wake", "Unknown", "Want", "Seen", "SeenItem",
    "Insider", "HandClock", "BackendError", "Said", "hinted", "say_enter", "take_seat", "line_key",
    "asker", "entering", "set_down", "stand_by", "_stand_by", "_stand_in", "_let_in", "_let_go", "_glance", "_patience",
    "look_at_pool", "stand_aside", "answer_enter",
}
# Where an old word is at home: the pages and recipes of the systems that used it, and what happened before.
AT_HOME = {
    "CHANGELOG.md": {"holdfast", "insider"},
    "src/fairlock/rules/locks/step.py": {"doorman"},
    "src/fairlock/recipes/fair_mutex.py": {"doorman"},
    "docs/recipes-fair-mutex.md": {"doorman"},
    "docs/recipes-remote-locks.md": {"doorman"},
    "docs/glossary.md": {"doorman"},
    "tests/project_rules/vocabulary.py": set(OLD_WORDS.split()),
    "tests/project_rules/test_vocabulary.py": set(OLD_WORDS.split()),
}
_word = "|".join(sorted(OLD_WORDS.split(), key=len, reverse=True))
_camel = "|".join(sorted((word.capitalize() for word in OLD_WORDS.split()), key=len, reverse=True))
OLD = re.compile(rf"(?<![A-Za-z])(?:{_word})(?![a-z])|(?<![A-Z])(?:{_camel})(?![a-z])|\b(?:{_word.upper()})\b")

# Phrases that are not used, and what to write instead.
PHRASES = [
    (re.compile(r"\b(?:he|his|him|himself)\b", re.I), "a process is not a person: write it, its, the holder"),
    (re.compile(r"\b(?:whoever|whom)\b", re.I), "write 'any client that'"),
    (re.compile(r"(?:^|[.:;] )Who (?![^.]*\?)"), "name the subject: the holder, a waiter, a client that"),
    (re.compile(r"\b(?:not|nobody|all|those|ones?|and|but|or|,) who (?:does|is|has|was|waits?|comes?|holds?)\b"),
     "name the subject: a client that"),
    (re.compile(r", for (?:it|they|there|he|nobody|nothing|no one|everybody|each of)\b"), "write because"),
    (re.compile(r"\bso (?:many|long|much)\b(?![^.]*\bthat\b)"), "write 'that many', 'that long'"),
    (re.compile(r"\b(?:is|are|was|were|be|been) had\b|\bto be had\b"), "write is acquired, is available"),
    (re.compile(r"\banew\b", re.I), "write again"),
    (re.compile(r"\bdear(?:er|est|ly)?\b", re.I), "write expensive, slow"),
    (re.compile(r"\bby lot\b|\bamid\b|\bfor ever\b|\bworth to\b", re.I), "write at random, among, forever, worth …ing"),
    (re.compile(r"\b(?:tells?|told|hears?|heard|said)\b", re.I), "name the I/O: send, reply, notify, report, print"),
    (re.compile(r"\bwhat is there\b", re.I), "name the value"),
]
# In pages, and in docstrings and messages of src, also these. In comments they do no harm.
PAGE_PHRASES = [
    (re.compile(r"\b(?:nobody|anybody|somebody|everybody)\b", re.I),
     "name the subject: no client, another thread, all waiters"),
    (re.compile(r"\bone's\b|\bin line\b|\bgets? in\b|\blets? (?:go|in)\b", re.I),
     "write its, in the queue, acquires, releases"),
    (re.compile(r"\b(?:an?|each|every|last) look\b|\b(?:two|both) looks\b|\blooks? (?:costs?|takes?)\b", re.I),
     "write snapshot, or read"),
    (re.compile(r"\bdoes not answer\b|\bno answer\b|\banswers? again\b"), "a store or a server replies"),
    (re.compile(r"\bst(?:ands?|ood) (?:in|behind|before|ahead|by|again)\b"), "write is in, contains, waits"),
    (re.compile(r"(?:^|[.:;] )(?:Kept|Awaited|Shown|Counted|Meant|Not awaited|Not kept) (?:is|are)\b"),
     "begin with the subject"),
    (re.compile(r"\bwithout a word\b|\bplace in line\b"), "name the message; write place in the queue"),
]
NOUN_CLAUSE = re.compile(r"(?:Whether|What|Who|Whom|How (?:many|long|much|often)|Where|Why)\b(?![^.]*\?)")
# The docstring of a function in src that returns something begins with a verb. A property is described as a value.
NOUN = re.compile(r"(?:The|An?|All|One|Every|Those|These|Of|For|As|In|From|To|By|Like|Until|Seconds|At most)\b")
VALUES = {"property", "fixture", "cached_property", "setter", "overload"}


class Finding(NamedTuple):
    file: str
    line: int
    text: str
    cure: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r}: {self.cure}"


def old_words(name: str, text: str) -> Iterator[Finding]:
    """Yield each use of an old word in a file, in names and in prose alike."""
    at_home = AT_HOME.get(name, set())
    for number, line in enumerate(text.splitlines(), 1):
        for match in OLD.finditer(line):
            if match[0].lower() not in at_home:
                yield Finding(name, number, match[0], "a word of the old vocabulary")


def old_names(name: str, text: str) -> Iterator[Finding]:
    """Yield each old name of a class or function that is used as a name in Python code."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string in OLD_NAMES:
                yield Finding(name, token.start[0], token.string, "an old name")
    except tokenize.TokenError as error:
        yield Finding(name, 1, str(error), "this is not Python")


def returns_value(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether this is a function, and not a property, that returns something."""
    marks = {part.id if isinstance(part, ast.Name) else part.attr for each in node.decorator_list
             for part in ast.walk(each) if isinstance(part, ast.Name | ast.Attribute)}  # fmt: skip
    return node.returns is not None and ast.unparse(node.returns) != "None" and not marks & VALUES


def prose(name: str, text: str) -> Iterator[tuple[int, str, re.Pattern[str] | None]]:
    """Yield each piece of prose: its line, its text, and how it must not begin if it begins the docstring of a
    function.

    In a page that is every line outside of code; in Python every docstring, and in src also every string of three
    words or more: messages and help.
    """
    if name.endswith(".md"):
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced and not line.startswith("    "):
                yield number, re.sub(r"`[^`]*`", "", line), None
        return
    docstrings = set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (*functions, ast.Module, ast.ClassDef)) and ast.get_docstring(node):
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            docstrings.add(id(first.value))
            begins = NOUN_CLAUSE if isinstance(node, functions) else None
            if isinstance(node, functions) and name.startswith("src/") and returns_value(node):
                begins = re.compile(f"{NOUN_CLAUSE.pattern}|{NOUN.pattern}")
            for offset, line in enumerate((ast.get_docstring(node) or "").splitlines()):
                yield first.lineno + offset, re.sub(r"`[^`]*`", "", line), None if offset else begins
    if name.startswith("src/"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                if len(node.value.split()) > 2:
                    yield node.lineno, re.sub(r"`[^`]*`", "", node.value), None


def phrases(name: str, text: str) -> Iterator[Finding]:
    for line, piece, begins in prose(name, text):
        for pattern, cure in PHRASES + PAGE_PHRASES * (name.endswith(".md") or name.startswith("src/")):
            for match in pattern.finditer(piece):
                yield Finding(name, line, match[0].strip(), cure)
        if begins and begins.match(piece):
            yield Finding(name, line, piece[:40], "a docstring is a sentence: Return …, Yield …, Check that …")


def findings(root: Path = ROOT) -> list[Finding]:
    """Return all findings in the project's code, pages and scripts."""
    found: list[Finding] = []
    for path in files(root):
        name = str(path.relative_to(root))
        python = path.suffix == ".py" or path.name == "dev"
        if not python and path.suffix not in {".md", ".lua", ".toml"}:
            continue
        text = path.read_text()
        if not name.startswith("bench/") or python:
            found += old_words(name, text)
        if python:
            found += old_names(name, text)
        if (python or path.suffix == ".md") and (name not in AT_HOME or name == "CHANGELOG.md"):
            found += phrases(name, text)
    return found


def folder_of(name: str) -> str:
    """Return the folder that a finding is counted for: src/fairlock/stores/sql, tests/cli, docs."""
    parts = name.split("/")[:-1]
    depth = 4 if parts[:3] == ["src", "fairlock", "stores"] else 3 if parts[:1] == ["src"] else 2
    return "/".join(parts[:depth]) or "."


if __name__ == "__main__":
    below = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [each for each in findings() if each.file.startswith(below)]
    for each in chosen:
        print(each)
    for folder, number in sorted(Counter(folder_of(each.file) for each in chosen).items()):
        print(f"{number:5} {folder}")

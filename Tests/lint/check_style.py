#!/usr/bin/env python3
"""Fails when code breaks a rule of style that the formatter does not check.

    check_style.py      checks Sources and Tests, after checking itself on planted violations

Lines: at most 100 columns. A longer line is allowed only where one word (text without a space, such
as a digest or an address) does not fit into 100 columns at the indentation of that line.
Types: no two targets of Sources declare a type of one name at their top level, unless SHARED_NAMES
has the name with its targets and a reason. Private types do not count.
Locks: no Mutex has a function as its value; elements of an array do not count. Each access would add
two thunks to the function, until a call of it overflows the stack. A function in a struct stays as it is.
Comments: none uses one of PRIVATE_WORDS of house.py, and none begins with What or The same. This is
checked in Swift, and in Python under Tests, whose comments and docstrings do not begin with Of or
One that either.
"""

import ast
import io
import pathlib
import re
import sys
import tempfile
import tokenize
from collections import defaultdict

import house

COLUMNS = 100
# Name → its targets and the reason.
SHARED_NAMES = {
    "SessionRow": ("KedgePostgres KedgeSQLite", "each adapter decodes its own rows"),
    "MetadataText": ("KedgePostgres KedgeSQLite", "each adapter decodes its own rows"),
}
OPENING = re.compile(r"//+\s*(What|The same)\b")
LOCKED_FUNCTION = re.compile(r"\bMutex<(?!\[)[^={]*->")
PYTHON_OPENING = re.compile(r"[#\s]*(What|The same|Of|One that)\b")
PARAMETER = re.compile(r"-\s+(Parameter\s+)?\w+:")


def is_too_long(line):
    indentation = len(line) - len(line.lstrip())
    longest_word = max(map(len, line.split()), default=0)
    return len(line) > COLUMNS and indentation + longest_word <= COLUMNS


def comment(line):
    """The comment of a line, from its slashes on. Slashes in a string have no space before them."""
    match = re.search(r"(?:^|\s)(//.*)", line)
    return match.group(1) if match else ""


def check_words(place, text):
    word = house.PRIVATE_WORDS.search(text)
    if word:
        yield f'{place}: the comment says "{word.group()}"; name the actor, or say "report"'


def check_lines(name, source):
    previous = ""
    for number, line in enumerate(source.split("\n"), 1):
        place = f"{name}:{number}"
        if is_too_long(line):
            yield f"{place}: {len(line)} columns"
        if LOCKED_FUNCTION.search(line):
            yield f"{place}: a Mutex of a function; put the function into a struct"
        text = comment(line)
        yield from check_words(place, PARAMETER.sub("", text))
        opening = OPENING.match(text)
        goes_on = line.lstrip().startswith("//") and previous.lstrip().startswith("//")
        if opening and not goes_on:
            yield f'{place}: the comment begins with "{opening.group(1)}"'
        previous = line


def python_comments(source):
    """Yields the line number and text of each line of a comment, and whether it is the first."""
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            number, has_own_line = token.start[0], token.line.lstrip().startswith("#")
            yield number, token.string, not has_own_line or number != last + 1
            last = number if has_own_line else 0
    for node in ast.walk(ast.parse(source)):
        # The docstring of a module, class or function, or of the attribute before it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for index, line in enumerate(str(node.value.value).split("\n")):
                yield node.lineno + index, line, index == 0


def check_python(name, source):
    for number, text, begins in python_comments(source):
        opening = PYTHON_OPENING.match(text)
        if opening and begins:
            yield f'{name}:{number}: the comment begins with "{opening.group(1)}"'
        yield from check_words(f"{name}:{number}", text)


def check_types(root, shared_names):
    owners = defaultdict(set)
    for target in house.targets(root):
        for code in target.code.values():
            for name in target.top_level_types(code):
                owners[name].add(target.name)
    found = {name: " ".join(sorted(names)) for name, names in owners.items() if len(names) > 1}
    for name, names in found.items():
        if shared_names.get(name, ("", ""))[0] != names:
            yield f"{name} is declared in more than one target: {names}"
    for name in shared_names.keys() - found.keys():
        yield f"{name} is in SHARED_NAMES, but not in two targets"


def check(root, shared_names):
    violations = list(check_types(root, shared_names))
    for folder in ("Sources", "Tests"):
        for path in sorted((root / folder).rglob("*.swift")):
            violations += check_lines(path.relative_to(root), path.read_text())
    for path in sorted((root / "Tests").rglob("*.py")):
        violations += check_python(path.relative_to(root), path.read_text())
    return violations


PLANTED = {
    "Sources/A/One.swift": [
        "struct Twice {}",
        "enum Known {}",
        "private struct Hidden {}",
        "struct Outer {",
        "    struct Nested {}",
        "}",
        "/// What it does.",
        "/// Returns it.",
        "/// The same line goes on.",
        "let a = 1  // The same as b.",
        "// Nobody reads this.",
        "    /// - Parameter tell: Receives each finding.",
        "    /// - Parameter text: Told once.",
        'let url = "https://nobody.example"',
        "let lock = Mutex<(@Sendable (Int) -> Void)?>(nil)",
        "let result = Mutex(0).withLock { (value: inout Int) -> Int in value }",
        "let text = " + "x + " * 22 + "y",
        "let text = " + "x + " * 22 + "yz",
        "    // " + "d" * 97,
    ],
    "Sources/B/Two.swift": [
        "package final class Twice {}",
        "struct Known {}",
        "private struct Hidden {}",
        "struct Nested {}",
        "struct Gone {}",
    ],
    "Tests/ATests/Test.swift": ["struct Twice {}", "//   What is it?", "let x = 1  // whoever"],
    "Tests/a/script.py": [
        '"""Does it.',
        "",
        "What follows is fine, but nobody reads it.",
        '"""',
        "# The same as below.",
        "def a():",
        '    """What it does."""',
        "    # A block goes on:",
        "    # What is here is fine.",
        '    told = "nobody # What"  # Of the text.',
        "    # Told once.",
        "class B:",
        "    c = 1",
        '    """Of the file."""',
        '    d = """What',
        '    nobody is told."""',
    ],
}
EXPECTED = [
    "Gone is in SHARED_NAMES, but not in two targets",
    'Sources/A/One.swift:13: the comment says "Told"; name the actor, or say "report"',
    "Sources/A/One.swift:15: a Mutex of a function; put the function into a struct",
    "Sources/A/One.swift:18: 101 columns",
    'Sources/A/One.swift:7: the comment begins with "What"',
    'Sources/A/One.swift:10: the comment begins with "The same"',
    'Sources/A/One.swift:11: the comment says "Nobody"; name the actor, or say "report"',
    'Tests/a/script.py:10: the comment begins with "Of"',
    'Tests/a/script.py:11: the comment says "Told"; name the actor, or say "report"',
    'Tests/a/script.py:14: the comment begins with "Of"',
    'Tests/a/script.py:3: the comment says "nobody"; name the actor, or say "report"',
    'Tests/a/script.py:5: the comment begins with "The same"',
    'Tests/a/script.py:7: the comment begins with "What"',
    'Tests/ATests/Test.swift:2: the comment begins with "What"',
    'Tests/ATests/Test.swift:3: the comment says "whoever"; name the actor, or say "report"',
    "Twice is declared in more than one target: A B",
]


def check_itself():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, lines in PLANTED.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n")
        found = sorted(check(root, {"Known": ("A B", "planted"), "Gone": ("A B", "planted")}))
    if found != sorted(EXPECTED):
        sys.exit(
            "the check does not find what was planted:\n"
            + "\n".join(f"missing: {line}" for line in EXPECTED if line not in found)
            + "\n"
            + "\n".join(f"extra: {line}" for line in found if line not in EXPECTED)
        )


def main():
    check_itself()
    violations = check(pathlib.Path(__file__).resolve().parents[2], SHARED_NAMES)
    if violations:
        sys.exit("\n".join(violations))
    print("style: as it should be")


main()

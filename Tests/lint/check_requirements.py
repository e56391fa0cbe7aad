#!/usr/bin/env python3
"""Checks docs/REQUIREMENTS.md against the tree, after checking itself on planted violations.

    check_requirements.py [ROOT]

Fails when a comment cites a number without a row, a row names a proof that does not exist, the
numbers of a table are repeated or out of order, a number is missing from the page or on it twice,
or more rows have no proof than UNPROVEN says.
"""

import pathlib
import re
import sys
import tempfile

PAGE = "docs/REQUIREMENTS.md"
HIGHEST = 360
# Rows that no test proves yet. Lower it when one gets its test; never raise it.
UNPROVEN = 1

ROW = re.compile(r"\| R(\d+) \| .* \| ([^|]+) \|")
NUMBERS = re.compile(r"\bR(\d{1,3})\b(?:–R(\d{1,3})\b)?")
COMMENT = {
    ".swift": re.compile(r"(?<!:)//.*|/\*[\s\S]*?\*/"),
    ".py": re.compile(r'(?:^|(?<=\s))#.*|"""[\s\S]*?"""', re.M),
    ".sh": re.compile(r"(?:^|(?<=\s))#.*", re.M),
}
MODIFIER = r"(?:@Suite(?:\([^\n]*\))?|private|fileprivate|package|public|final)\s+"
KIND = r"(?:struct|extension|class|actor|enum)\s+"
SUITE = re.compile(rf"^(?:{MODIFIER})*{KIND}(`[^`\n]+`|\w+)", re.M)
TEST = re.compile(r'@Test\(\s*"([^"\n]+)"|\bfunc\s+(?:`([^`\n]+)`|(\w+))')


def tests(target):
    """The suites of a target, each with the names of its tests as code or display has them."""
    found = {}
    for file in target.rglob("*.swift"):
        parts = SUITE.split(file.read_text())
        for suite, body in zip(parts[1::2], parts[2::2]):
            if "@Test" in body:
                names = {match[1] or match[2] or match[3] for match in TEST.finditer(body)}
                found.setdefault(suite.strip("`"), set()).update(names)
    return found


def exists(proof, root, known):
    target, _, rest = proof.partition("/")
    if not re.fullmatch(r"\w+Tests", target):
        return (root / proof).exists()
    if target not in known:
        known[target] = tests(root / "Tests" / target)
    suite, _, name = rest.partition("/")
    return suite in known[target] and (not name or name in known[target][suite])


def numbers(text):
    """The numbers in a text with their positions; R4–R6 are three."""
    for match in NUMBERS.finditer(text):
        for number in range(int(match[1]), int(match[2] or match[1]) + 1):
            yield number, match.start()


def check(root):
    rows, listed, known, unproven, last = {}, set(), {}, 0, 0
    for line_number, line in enumerate((root / PAGE).read_text().splitlines(), 1):
        here, row = f"{PAGE}:{line_number}:", ROW.fullmatch(line)
        if not row:
            last = 0
            if line.startswith(("Not built yet: ", "Notes ")):
                listed |= {number for number, _ in numbers(line)}
            elif line.startswith("| R"):
                yield f"{here} this row does not have the form of one"
            continue
        number, proofs = int(row[1]), re.findall("`([^`]+)`", row[2])
        if number in rows or number < last:
            yield f"{here} R{number} is repeated or out of order"
        rows[number], last = here, number
        unproven += row[2] == "none"
        if not proofs and (row[2] != "none" or unproven > UNPROVEN):
            yield f"{here} R{number} has no proof; {UNPROVEN} of the rows may say none"
        for proof in (p for p in proofs if not exists(p, root, known)):
            yield f"{here} R{number} has a proof that does not exist: {proof}"
    for number in range(1, HIGHEST + 1):
        if (number in rows) == (number in listed):
            yield f"{rows.get(number, PAGE + ':1:')} R{number} has to be a row or listed, once"
    for file in sorted((*(root / "Sources").rglob("*.*"), *(root / "Tests").rglob("*.*"))):
        source = file.read_text() if file.suffix in COMMENT else ""
        for comment in COMMENT[file.suffix].finditer(source) if source else ():
            for number, start in numbers(comment[0]):
                line_number = source.count("\n", 0, comment.start() + start) + 1
                if number not in rows:
                    yield f"{file.relative_to(root)}:{line_number}: R{number} has no row in {PAGE}"


def check_itself():
    """Plants each kind of violation, and harmless look-alikes, in a tree of its own."""
    page = "| R1 | a | `ATests/S/one`, `ATests/T/two words`, `Tests/a.sh` |\n| R3 | b | `ATests/S` |"
    page += "\n| R2 | c | `ATests/S/gone` |\n\n| R3 | d | `Tests/gone.sh`, `ATests/U` |\n"
    page += f"| R4 | e | trust |\n| R5 |\nNot built yet: R4, R7–R{HIGHEST - UNPROVEN - 1}.\n"
    page += "".join(f"| R{HIGHEST - n} | f | none |\n" for n in range(UNPROVEN, -1, -1))
    swift = '@Suite struct S {\n@Test func `one`() {}\n}\nstruct T {\n@Test("two words") func x() {}'
    tree = {PAGE: page, "Tests/ATests/A.swift": swift + "\n}\nenum U {}"}
    swift_comments = 'let R8 = "http://a/R8" // R1, R2–R4\n/* R2,\nR8 */\n'
    tree |= {"Tests/a.sh": "R8=1 # R1, R9", "Sources/B.swift": swift_comments}
    expected = f"3 R2, 3 R2, 5 R3, 5 R3, 5 R3, 6 R4, 7 this, {9 + UNPROVEN} R{HIGHEST}, 6 R4"
    expected = [f"{PAGE}:{e}" for e in expected.split(", ")] + [f"{PAGE}:1 R5", f"{PAGE}:1 R6"]
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = [" ".join(f.split()[:2]).replace(": ", " ") for f in check(pathlib.Path(folder))]
    if found != [*expected, "Sources/B.swift:3 R8", "Tests/a.sh:1 R9"]:
        sys.exit(f"the check does not find what was planted: {found}")


check_itself()
top = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).parents[2]
sys.exit("\n".join(check(top)) or print("requirements: clean"))

#!/usr/bin/env python3
"""Measures how the sources are cut: sizes, dependency circles, folder pairs, and the habits of prose.

    house.py figures [ROOT]          prints the figures
    house.py pairs TARGET [ROOT]     prints each two-way pair of folders with the types that make it
    house.py folders [ROOT]          fails where a folder uses one above it; see folders.txt
    house.py path [ROOT] [LIST]      prints the functions, suspension points and types of one chunk's
                                     path, by the list (chunk-path.txt)

A file depends on another when its code names a type that only the other declares at its top level, or
an extension's nested type by its full name. Comments and strings do not count.
"""

import pathlib
import re
import sys
from collections import defaultdict

TABLE = pathlib.Path(__file__).with_name("folders.txt")
CHUNK_PATH = pathlib.Path(__file__).with_name("chunk-path.txt")

DECLARATION = re.compile(
    r"(?:^|[\s(])(?:indirect\s+)?(?:struct|class|enum|actor|protocol|typealias)\s+([A-Z]\w*)"
)
ERROR_TYPE = re.compile(
    r"\b(?:struct|class|enum|actor)\s+\w+\s*(?:<[^>{]*>)?\s*:[^{]*\bError\b[^{]*\{"
)
PRIVATE_WORDS = re.compile(r"\b(nobody|somebody|anybody|everybody|whoever|told|tells?)\b", re.I)


def without_text(source):
    """The code with comments and the text of strings blanked; line ends stay."""
    out, i, depth = [], 0, 0
    while i < len(source):
        two = source[i : i + 2]
        if depth:
            if two == "*/":
                depth, i = depth - 1, i + 2
            elif two == "/*":
                depth, i = depth + 1, i + 2
            else:
                out.append("\n" if source[i] == "\n" else " ")
                i += 1
        elif two == "//":
            end = source.find("\n", i)
            i = len(source) if end < 0 else end
        elif two == "/*":
            depth, i = 1, i + 2
        elif source.startswith('"""', i):
            end = source.find('"""', i + 3)
            end = len(source) if end < 0 else end + 3
            out.append(interpolations(source[i:end]) + "\n" * source.count("\n", i, end))
            i = end
        elif source[i] == '"':
            end = end_of_string(source, i)
            out.append(interpolations(source[i:end]))
            i = end
        else:
            out.append(source[i])
            i += 1
    return "".join(out)


def end_of_string(source, start):
    i, depth = start + 1, 0
    while i < len(source):
        if source[i] == "\\":
            if source[i + 1 : i + 2] == "(":
                depth += 1
            i += 2
            continue
        if depth and source[i] == "(":
            depth += 1
        elif depth and source[i] == ")":
            depth -= 1
        elif source[i] == "\n" or (source[i] == '"' and not depth):
            return i + 1
        i += 1
    return i


def interpolations(text):
    """The expressions inside a string: they are code."""
    return " " + " ".join(re.findall(r"\\\(([^\n]*)\)", text)) + " "


class Target:
    """One target's files, the types that each declares, and which file uses which."""

    def __init__(self, root, folder):
        self.name = folder.name
        self.files = sorted(folder.rglob("*.swift"))
        self.folder = folder
        self.sources = {f: f.read_text() for f in self.files}
        self.code = {f: without_text(s) for f, s in self.sources.items()}
        owners = defaultdict(set)
        for file, code in self.code.items():
            for name in self.top_level_types(code):
                owners[name].add(file)
        self.owner = {n: next(iter(fs)) for n, fs in owners.items() if len(fs) == 1}
        self.uses = {f: self.used(f) for f in self.files}

    @staticmethod
    def top_level_types(code):
        depth, names = 0, []
        for line in code.split("\n"):
            if depth == 0 and not re.match(r"\s*(fileprivate|private)\b", line):
                names += DECLARATION.findall(line)
            depth += line.count("{") - line.count("}")
        return names

    def used(self, file):
        """The other files whose types the code names, with those names."""
        found = defaultdict(set)
        words = set(re.findall(r"\b[A-Z]\w*\b", self.code[file]))
        for word in words:
            owner = self.owner.get(word)
            if owner and owner != file:
                found[owner].add(word)
        return found

    def room(self, file):
        relative = file.relative_to(self.folder)
        return relative.parts[0] if len(relative.parts) > 1 else "."

    def room_uses(self):
        edges = defaultdict(set)
        for file, used in self.uses.items():
            for other, names in used.items():
                if self.room(other) != self.room(file):
                    edges[self.room(file), self.room(other)] |= {
                        (file.name, name) for name in names
                    }
        return edges

    def two_way(self):
        edges = self.room_uses()
        return sorted({tuple(sorted(e)) for e in edges if (e[1], e[0]) in edges})

    def largest_circle(self):
        """The size of the largest strongly connected set of files (Tarjan)."""
        index, low, stack, on_stack, largest = {}, {}, [], set(), 1
        sys.setrecursionlimit(10000)

        def visit(node):
            nonlocal largest
            index[node] = low[node] = len(index)
            stack.append(node)
            on_stack.add(node)
            for other in self.uses[node]:
                if other not in index:
                    visit(other)
                    low[node] = min(low[node], low[other])
                elif other in on_stack:
                    low[node] = min(low[node], index[other])
            if low[node] == index[node]:
                size = 0
                while True:
                    other = stack.pop()
                    on_stack.discard(other)
                    size += 1
                    if other == node:
                        break
                largest = max(largest, size)

        for file in self.files:
            if file not in index:
                visit(file)
        return largest


def targets(root):
    folders = sorted(p for p in (root / "Sources").iterdir() if p.is_dir())
    return [t for t in (Target(root, f) for f in folders) if t.files]


def stored_properties(code, type_name):
    """Stored properties in the main declaration of a type: `let` and `var` without a body."""
    match = re.search(r"\b(?:class|struct|actor)\s+" + type_name + r"\b[^{]*\{", code)
    if not match:
        return 0
    depth, count = 1, 0
    for line in code[match.end() :].split("\n"):
        if depth == 1 and re.match(r"\s*(?:\w+(?:\(\w+\))?\s+)*(?:let|var)\s+\w+", line):
            count += "{" not in line
        depth += line.count("{") - line.count("}")
        if depth <= 0:
            break
    return count


def figures(root):
    rows = []
    for target in targets(root):
        lines = sum(s.count("\n") for s in target.sources.values())
        types = sum(len(DECLARATION.findall(c)) for c in target.code.values())
        rows.append(
            (target.name, len(target.files), lines, types, target.largest_circle(), len(target.two_way()))
        )
    print(f"{'target':<22}{'files':>7}{'lines':>8}{'types':>7}{'circle':>8}{'pairs':>7}")
    for row in rows:
        print(f"{row[0]:<22}{row[1]:>7}{row[2]:>8}{row[3]:>7}{row[4]:>8}{row[5]:>7}")
    print(
        f"{'all':<22}{sum(r[1] for r in rows):>7}{sum(r[2] for r in rows):>8}"
        f"{sum(r[3] for r in rows):>7}{max(r[4] for r in rows):>8}{sum(r[5] for r in rows):>7}"
    )
    print()
    sources = [p for p in (root / "Sources").rglob("*.swift")]
    tests = [p for p in (root / "Tests").rglob("*.swift")]
    everything = [(p, p.read_text()) for p in sources + tests]
    own = [(p, s) for p, s in everything if p in set(sources)]
    facade = root / "Sources/KedgeEngine/TransferEngine.swift"
    if facade.exists():
        count = stored_properties(without_text(facade.read_text()), "TransferEngine")
        print(f"stored properties of TransferEngine: {count}")
    print("types that are an Error:", sum(len(ERROR_TYPE.findall(without_text(s))) for _, s in own))
    opening = re.compile(r"(?:^|\n)(?!\s*///)[^\n]*\n\s*/// (?:What|The same)\b")
    print("doc comments that begin with What or The same:", sum(len(opening.findall(s)) for _, s in own))
    print(
        "lines over 100 columns:",
        sum(len(line) > 100 for _, s in everything for line in s.split("\n")),
    )
    comments = [
        line for _, s in own for line in s.split("\n") if re.match(r"\s*//", line) or " // " in line
    ]
    print(
        "comment lines with nobody, somebody, whoever, told and their like:",
        sum(bool(PRIVATE_WORDS.search(line[line.index("//") :])) for line in comments),
    )
    testable = re.compile(r"^@testable", re.M)
    print("@testable imports:", sum(len(testable.findall(s)) for _, s in everything))
    for folder in ("Sources", "Tests"):
        total = sum(s.count("\n") for p, s in everything if p.is_relative_to(root / folder))
        print(f"lines of Swift in {folder}: {total}")


def pairs(root, name):
    target = Target(root, root / "Sources" / name)
    edges = target.room_uses()
    for one, other in target.two_way():
        for edge in ((one, other), (other, one)):
            print(f"{edge[0]} -> {edge[1]}:")
            for file, used in sorted(edges[edge]):
                print(f"    {file} uses {used} of {target.owner[used].name}")


def bodies(code, name):
    """The bodies of every function of this name, and of every initializer for `init`."""
    keyword = r"\binit\b\??" if name == "init" else r"\bfunc\s+" + name + r"\b"
    for match in re.finditer(keyword + r"[^{}]*\{", code):
        depth, end = 1, match.end()
        while depth and end < len(code):
            depth += (code[end] == "{") - (code[end] == "}")
            end += 1
        yield code[match.start() : end]


def path(root, table):
    """Counts what a reader of one chunk's path meets: functions, suspension points, types."""
    parts = targets(root)
    declared = {n for t in parts for c in t.code.values() for n in DECLARATION.findall(c)}
    by_name = {f.stem: c for t in parts for f, c in t.code.items()}
    functions, awaits, types = 0, 0, set()
    for line in table.read_text().splitlines():
        words = line.split("#")[0].split()
        for name in words[1:]:
            found = list(bodies(by_name.get(words[0], ""), name))
            if not found:
                sys.exit(f"{table.name}: {words[0]}.swift has no function {name}")
            functions += len(found)
            for body in found:
                awaits += len(re.findall(r"\bawait\b|\basync let\b", body))
                types |= declared & set(re.findall(r"\b[A-Z]\w*\b", body))
    print(f"one native chunk: {functions} functions, {awaits} suspension points, {len(types)} types")


def read_table():
    """Target → its folders, lowest first; folders of one floor stand on one line."""
    table, target = defaultdict(list), None
    for line in TABLE.read_text().splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            target = line.rstrip(":")
        else:
            table[target].append(line.split())
    return table


def folders(root):
    table, failures = read_table(), []
    for target in targets(root):
        rooms = {target.room(f) for f in target.files}
        if len(rooms) == 1:
            continue
        floor = {room: n for n, row in enumerate(table.get(target.name, [])) for room in row}
        failures += [f"{target.name}/{r} is not in folders.txt" for r in sorted(rooms - floor.keys())]
        failures += [f"folders.txt: {target.name}/{r} is no folder" for r in sorted(floor.keys() - rooms)]
        for (one, other), used in sorted(target.room_uses().items()):
            if floor.get(one, 0) <= floor.get(other, 0) and {one, other} <= floor.keys():
                names = ", ".join(sorted({f"{file}: {name}" for file, name in used}))
                failures.append(f"{target.name}: {one} must not know {other} ({names})")
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures:
        sys.exit(1)
    print("folders: clean")


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in ("figures", "pairs", "folders", "path"):
        sys.exit(__doc__)
    command, rest = arguments[0], arguments[1:]
    wanted = 2 if command == "pairs" else 1
    root = pathlib.Path(rest[wanted - 1] if len(rest) >= wanted else pathlib.Path(__file__).parents[2])
    if command == "figures":
        figures(root)
        if root == pathlib.Path(__file__).parents[2]:
            path(root, CHUNK_PATH)
    elif command == "path":
        path(root, pathlib.Path(rest[1]) if len(rest) > 1 else CHUNK_PATH)
    elif command == "pairs":
        if not rest:
            sys.exit(__doc__)
        pairs(root, rest[0])
    else:
        folders(root)


if __name__ == "__main__":
    main()

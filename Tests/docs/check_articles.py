#!/usr/bin/env python3
"""Compares the Swift code of README.md and of KedgeClient's pages with the regions of ArticleTests.swift.

    check_articles.py

Each block is the text of a region, apart from common indentation and from lines that import a module; the test file
imports these modules. Each region is a block. The lines of a manifest in README.md are checked by
Tests/install/check_library.sh, which builds a package with them.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "Tests" / "KedgeCommandTests" / "ArticleTests.swift"
PAGES = [ROOT / "README.md", *sorted((ROOT / "Sources/KedgeClient/Documentation.docc").glob("*.md"))]
BLOCK = re.compile(r"^```swift\n(.*?)^```$", re.M | re.S)
REGION = re.compile(r"^ *// article\n(.*?)^ *// end$", re.M | re.S)
IMPORT = re.compile(r"^import (\w+)\n", re.M)


def blocks():
    """The page and the text of each block of code."""
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if not block.startswith(".package("):
                yield page.relative_to(ROOT), block


def main():
    source = TESTS.read_text(encoding="utf-8")
    regions = {textwrap.dedent(region).strip("\n"): False for region in REGION.findall(source)}
    modules = set(IMPORT.findall(source))
    wrong = []
    for page, block in blocks():
        code = IMPORT.sub("", block).strip("\n")
        if code in regions:
            regions[code] = True
        else:
            wrong.append(f"{page}: {TESTS.name} has no such region:\n{code}")
        if missing := set(IMPORT.findall(block)) - modules:
            wrong.append(f"{page}: {TESTS.name} does not import {', '.join(sorted(missing))}")
    wrong += [f"{TESTS.name}: no page has the region:\n{code}" for code, is_used in regions.items() if not is_used]
    if len(regions) != len(REGION.findall(source)):
        wrong.append(f"{TESTS.name}: two regions are equal")
    if wrong:
        sys.exit("\n\n".join(wrong))
    print(f"articles: {len(regions)} pieces of code are those that {TESTS.name} runs")


main()

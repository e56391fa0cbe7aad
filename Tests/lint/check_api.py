#!/usr/bin/env python3
"""Compares the public interface of the library products with docs/api, and builds their documentation.

    check_api.py [--write]    --write puts the present interface into docs/api

Reads symbol graphs of the debug build: run `swift build` before. A changed line is a change that users of
the library see; commit the new text with it. Warnings of DocC are failures. Without docc, the
documentation is skipped by the name docc; see Tests/support/skipping.py.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "support"))

from skipping import skipped  # noqa: E402

# The library products, with the modules that each exports as its own.
PRODUCTS = {"KedgeClient": ["KedgeTransport"], "KedgeModel": []}
MODULE_MAPS = [
    ".build/checkouts/GRDB.swift/Sources/GRDBSQLite", "Sources/CCurl", "Sources/CCrypto", "Sources/CMalloc",
    "Sources/CPostgres", ".build/debug/CSHA256.build",
]


def run(*command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def extract(product, directory):
    """Writes the product's symbol graph to the directory."""
    target = json.loads(run("swift", "-print-target-info"))["target"]["unversionedTriple"]
    modules = pathlib.Path(run("swift", "build", "--show-bin-path").strip()) / "Modules"
    includes = [word for path in [modules, *MODULE_MAPS] for word in ("-I", path)]
    exported = [f"-experimental-allowed-reexported-modules={','.join(PRODUCTS[product])}"] if PRODUCTS[product] else []
    run(
        "swift", "symbolgraph-extract", "-module-name", product, "-minimum-access-level", "public",
        "-target", target, "-output-dir", directory, *exported, *includes)


def interface(product, directory):
    """One line for each public declaration, sorted by its path."""
    lines = set()
    for path in pathlib.Path(directory).glob(f"{product}*.symbols.json"):
        for symbol in json.loads(path.read_text())["symbols"]:
            # Members that a conformance brings are the standard library's.
            if "::SYNTHESIZED::" in symbol["identifier"]["precise"]:
                continue
            text = "".join(part["spelling"] for part in symbol["declarationFragments"])
            lines.add(f"{'.'.join(symbol['pathComponents'])}: {' '.join(text.split())}")
    return "\n".join(sorted(lines)) + "\n"


def build_documentation(product, graphs, output):
    """Builds the product's documentation, with warnings as errors."""
    catalog = ROOT / "Sources" / product / "Documentation.docc"
    inputs = [catalog] if catalog.exists() else ["--fallback-display-name", product, "--fallback-bundle-identifier", product]
    run(
        "docc", "convert", *inputs, "--additional-symbol-graph-dir", graphs, "--output-path", output,
        "--warnings-as-errors")


def main():
    writes = sys.argv[1:] == ["--write"]
    if sys.argv[1:] and not writes:
        sys.exit(__doc__)
    changed, has_docc = [], shutil.which("docc") is not None
    for product in PRODUCTS:
        with tempfile.TemporaryDirectory() as directory:
            extract(product, directory)
            text = interface(product, directory)
            listing = ROOT / "docs" / "api" / f"{product}.txt"
            if writes:
                listing.parent.mkdir(exist_ok=True)
                listing.write_text(text)
            elif not listing.exists() or listing.read_text() != text:
                changed.append(product)
                old = listing.read_text().splitlines() if listing.exists() else []
                for line in sorted(set(old) ^ set(text.splitlines())):
                    print("-" if line in old else "+", line, file=sys.stderr)
            if has_docc:
                build_documentation(product, directory, pathlib.Path(directory) / "documentation")
    if changed:
        sys.exit(f"The public interface of {', '.join(changed)} changed; check_api.py --write keeps it.")
    if not has_docc:
        print("public interface: clean")
        sys.exit(skipped("docc", "not installed, so the documentation was not built"))
    print("public interface and documentation: clean")


main()

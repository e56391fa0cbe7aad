#!/usr/bin/env python3
"""Compares the commands and options of kedge with docs/api/kedge.txt, on which users' scripts depend.

    check_options.py PATH_TO_KEDGE [--write]    --write puts the present ones there
"""

import difflib
import json
import pathlib
import subprocess
import sys

FILE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "api" / "kedge.txt"


def lines(command, path=()):
    path = (*path, command["commandName"])
    name = " ".join(path)
    yield name
    for argument in command.get("arguments", []):
        if argument["kind"] == "positional":
            yield f"{name} <{argument['valueName']}>"
        for option in argument.get("names", []):
            dashes = "-" if option["kind"] == "short" else "--"
            yield f"{name} {dashes}{option['name']}"
    for child in command.get("subcommands", []):
        yield from lines(child, path)


def main():
    dump = subprocess.run([sys.argv[1], "--experimental-dump-help"], check=True, capture_output=True)
    found = sorted({line for line in lines(json.loads(dump.stdout)["command"])})
    text = "\n".join(found) + "\n"
    if "--write" in sys.argv:
        FILE.write_text(text, encoding="utf-8")
        return
    known = FILE.read_text(encoding="utf-8")
    if text != known:
        sys.exit("\n".join(difflib.unified_diff(known.split("\n"), found, "docs/api/kedge.txt", "kedge", n=0)))
    print(f"commands and options: {len(found)}, as written down")


main()

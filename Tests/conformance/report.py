"""Prints results: a table for people, JSON for programs."""

import json
import sys
from collections import Counter

from checks import FAIL, NONE, PASS, SKIP, WARN, Result

COLORS = {PASS: "32", FAIL: "31", WARN: "33", SKIP: "33", NONE: "2"}


def table(results: list[Result], verbose: bool) -> None:
    """One line a requirement; a reason below those that do not pass."""
    colored = sys.stdout.isatty()
    for dialect in dict.fromkeys(result.dialect for result in results):
        own = [result for result in results if result.dialect == dialect]
        print(f"\n{dialect}")
        width = max(len(result.check.section) for result in own)
        for result in own:
            check = result.check
            if result.outcome in (SKIP, NONE) and not verbose:
                continue
            word = f"{result.outcome:4}"
            if colored:
                word = f"\033[{COLORS[word]}m{word}\033[0m"
            print(f"  {word}  {check.level:6}  {check.section:{width}}  {check.requirement}"
                  f"  [{check.name}]")
            if result.reason:
                print(f"        {result.reason}")
        print(f"  {summary(own)}")


def summary(results: list[Result]) -> str:
    counts = Counter(result.outcome for result in results)
    return ", ".join(
        f"{counts[outcome]} {word}"
        for outcome, word in (
            (PASS, "pass"), (FAIL, "fail"), (WARN, "warn"), (SKIP, "skipped"), (NONE, "n/a")))


def as_json(results: list[Result], addresses: dict[str, str]) -> None:
    """One document; `version` changes when a member changes its meaning."""
    json.dump({
        "version": 1,
        "addresses": addresses,
        "counts": Counter(result.outcome for result in results),
        "results": [
            {
                "dialect": result.dialect, "check": result.check.name,
                "section": result.check.section, "level": result.check.level,
                "requirement": result.check.requirement, "outcome": result.outcome,
                "reason": result.reason, "seconds": round(result.seconds, 3),
            }
            for result in results],
    }, sys.stdout, indent=2)
    print()

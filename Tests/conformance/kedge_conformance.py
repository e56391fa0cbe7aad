#!/usr/bin/env python3
"""Checks any server for tus 1.0.0 and for IETF resumable uploads.

    kedge_conformance.py URL                        finds out what URL speaks, and checks it
    kedge_conformance.py --tus URL --ietf URL       checks both, each at its own address

Prints a table of requirements and what the server does; README.md explains it. Exit status: 0 when
no requirement failed, 1 when one did, 2 when nothing could be checked.
"""

import argparse
import fnmatch
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import ietf
import ietf_append
import ietf_creation
import ietf_resource
import report
import tus_beyond
import tus_checksum
import tus_concatenation
import tus_core
import tus_creation
from checks import FAIL, SHOULD, SKIP, WARN, Check, Result, run
from ietf import Dialect, IetfServer
from tus import TusServer
from wire import Settings, WireError

TUS_CHECKS = (tus_core.CHECKS + tus_creation.CHECKS + tus_checksum.CHECKS
              + tus_concatenation.CHECKS + tus_beyond.CHECKS)
IETF_CHECKS = ietf_creation.CHECKS + ietf_resource.CHECKS + ietf_append.CHECKS


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kedge-conformance", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__)
    parser.add_argument("url", nargs="?", help="an address to try; /tus/ and /files/ below it, too")
    parser.add_argument("--tus", metavar="URL", help="where tus uploads are created")
    parser.add_argument("--ietf", metavar="URL", help="what IETF uploads are sent to with POST")
    parser.add_argument(
        "--version", metavar="N", action="append", dest="versions", choices=list(ietf.VERSIONS),
        help=f"only this interop version of the IETF draft: {', '.join(ietf.VERSIONS)}; repeatable")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="only checks whose name or dialect matches, such as 'head-*'; repeatable")
    parser.add_argument("--header", metavar="'NAME: VALUE'", action="append", default=[],
                        help="sent with every request; repeatable")
    parser.add_argument("--origin", metavar="ORIGIN", help="check what a page of this origin may do")
    parser.add_argument("--event-timeout", metavar="SECONDS", type=float, default=0,
                        help="how long to wait for an upload to expire, or for a report of progress")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=15,
                        help="how long to wait for an answer")
    parser.add_argument("--insecure", action="store_true", help="take any certificate")
    parser.add_argument("--strict", action="store_true", help="a SHOULD that is not done fails, too")
    parser.add_argument("--complete", action="store_true",
                        help="what applies and could not be checked fails, too")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="checks at a time")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="leave out what was not checked")
    parser.add_argument("--list", action="store_true", help="print the checks and end")
    options = parser.parse_args(arguments)
    if not (options.url or options.tus or options.ietf or options.list):
        parser.error("say which server: URL, --tus URL or --ietf URL")
    return options


def settings_of(options: argparse.Namespace) -> Settings:
    pairs = (text.partition(":") for text in options.header)
    return Settings(options.timeout, {name.strip(): value.strip() for name, _, value in pairs},
                    not options.insecure)


def find(options: argparse.Namespace, settings: Settings) -> tuple[str | None, str | None]:
    """The addresses for tus and IETF: those given, or what an address turns out to speak."""
    if options.tus or options.ietf:
        return options.tus, options.ietf
    base = options.url.rstrip("/")
    tus_url = next((url for url in (options.url, base + "/tus/", base + "/files/")
                    if speaks_tus(url, settings)), None)
    ietf_url = next(
        (url for url in (options.url, base + "/files") if ietf.speaks(url, settings)), None)
    return tus_url, ietf_url


def speaks_tus(url: str, settings: Settings) -> bool:
    return "Tus-Version" in TusServer(url, settings).offer


def matches(check: Check, dialect: str, patterns: list[str]) -> bool:
    return not patterns or any(
        fnmatch.fnmatch(check.name, pattern) or fnmatch.fnmatch(dialect, pattern)
        for pattern in patterns)


@dataclass(frozen=True)
class Task:
    """One check of one server."""

    dialect: str
    check: Check
    server: TusServer | IetfServer
    excuse: str | None = None

    def run(self) -> Result:
        return run(self.dialect, self.check, self.server, self.excuse)


def tus_tasks(server: TusServer, only: list[str]) -> Iterator[Task]:
    dialect = "tus 1.0.0"
    for check in TUS_CHECKS:
        if matches(check, dialect, only):
            yield Task(dialect, check, server, server.excuse(check))


def ietf_tasks(server: IetfServer, only: list[str]) -> Iterator[Task]:
    dialect = server.dialect.title
    for check in IETF_CHECKS:
        if server.dialect.has(check) and matches(check, dialect, only):
            yield Task(dialect, check, server)


def run_all(tasks: list[Task], jobs: int) -> list[Result]:
    """Results in the order of the tasks."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(Task.run, tasks))


def is_fault(result: Result, options: argparse.Namespace) -> bool:
    return (result.outcome == FAIL
            or (options.strict and result.outcome == WARN and result.check.level == SHOULD)
            or (options.complete and result.outcome == SKIP))


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.list:
        for check in TUS_CHECKS + IETF_CHECKS:
            print(f"{check.level:6}  {check.name}: {check.requirement} ({check.section})")
        return 0
    settings = settings_of(options)
    tasks: list[Task] = []
    try:
        tus_url, ietf_url = find(options, settings)
        if tus_url and not (options.versions and not options.tus):
            server = TusServer(tus_url, settings, options.event_timeout, options.origin)
            tasks += tus_tasks(server, options.only)
        if ietf_url:
            for version in options.versions or ietf.VERSIONS:
                server = IetfServer(ietf_url, Dialect.of(version), settings, options.event_timeout)
                tasks += ietf_tasks(server, options.only)
    except WireError as error:
        print(f"kedge-conformance: {error}", file=sys.stderr)
        return 2
    results = run_all(tasks, options.jobs)
    if not results:
        print("kedge-conformance: nothing was checked; is this the right address?", file=sys.stderr)
        return 2
    if options.json:
        report.as_json(results, {"tus": tus_url, "ietf": ietf_url})
    else:
        report.table(results, not options.quiet)
    return 1 if any(is_fault(result, options) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())

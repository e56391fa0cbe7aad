#!/usr/bin/env python3
"""Proves that the conformance suite finds faults.

    check_suite.py [NAME…]        NAME: only mutants whose name has this in it

Two small reference servers must pass every check. Then each mutant, a reference server with one fault, must
not pass the checks that are there to find it. Every check must find at least one mutant: a check that cannot
fail is worth nothing.
"""

import io
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout

import kedge_conformance
import mutants_ietf
import mutants_tus_bodies
import mutants_tus_core
import mutants_tus_creation
from checks import BEYOND, FAIL, NONE, PASS, SKIP, WARN, Check, Result, run
from ietf import VERSIONS, Dialect, IetfServer
from kedge_conformance import IETF_CHECKS, TUS_CHECKS
from mutants import Mutant
from reference import Application, Refusal, Reply, Request, Upload, serve
from reference_ietf import IetfReference
from reference_tus import TusReference
from tus import TusServer
from wire import Settings

TUS_MUTANTS = mutants_tus_core.MUTANTS + mutants_tus_creation.MUTANTS + mutants_tus_bodies.MUTANTS
ORIGIN = "https://page.example"
SETTINGS = Settings(timeout=10)
# Most of the time of a mutant is waiting.
WORKERS = 4


@contextmanager
def served(application: Application) -> Iterator[str]:
    server = serve(application)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def run_tus(application: Application, checks: list[Check]) -> list[Result]:
    with served(application) as url:
        server = TusServer(url + "/tus/", SETTINGS, event_timeout=5, origin=ORIGIN)
        return [run("tus", check, server, server.excuse(check)) for check in checks]


def run_ietf(application: Application, checks: list[Check], version: str) -> list[Result]:
    with served(application) as url:
        server = IetfServer(url + "/files", Dialect.of(version), SETTINGS)
        return [run(version, check, server) for check in checks if server.dialect.has(check)]


class Bare(TusReference):
    """A right server that offers creation only."""

    advertised = active = ("creation",)


class Closed(TusReference):
    """A right server whose parts must be complete."""

    advertised = active = tuple(
        name for name in TusReference.advertised if name != "concatenation-unfinished")


class Brief(TusReference):
    """A right server whose uploads expire soon."""

    lifetime = 0.5


class Free(TusReference):
    """A right server that takes every freedom the specification leaves it."""

    def location(self, request: Request, upload: Upload) -> str:
        return f"/tus/{upload.name}"

    def join(self, upload: Upload) -> None:
        """Deletes parts that are used."""
        super().join(upload)
        for part in upload.parts:
            if part.length == len(part.data):
                self.uploads.pop(part.name, None)

    def store(self, request: Request, upload: Upload, checksum: str | None) -> None:
        """Needs a Content-Length where no trailer needs chunks, and keeps what fits of a body too long."""
        if checksum is not None or upload.length is None or request.get("Trailer"):
            super().store(request, upload, checksum)
            return
        if request.length is None:
            raise Refusal(411)
        writer = upload.begin()
        for piece in request.pieces():
            if not upload.write(writer, piece[: upload.length - len(upload.data)]):
                raise Refusal(409)

    def get(self, request: Request, upload: Upload) -> Reply:
        """Returns a description of the upload in place of its bytes."""
        return Reply(200, {}, b"{}")

    def mend(self, request: Request, reply: Reply) -> Reply:
        """Has its own statuses where the specification says MAY."""
        reply = super().mend(request, reply)
        if reply.status == 460:
            reply.status = 422
        return reply


def check_freedom() -> Iterator[str]:
    """Complaints about checks that accuse a server of what it may do."""
    for result in run_tus(Free(), TUS_CHECKS):
        if result.outcome in (FAIL, WARN) and result.check.level != BEYOND:
            yield f"a right server is accused: {result.check.name}: {result.reason}"


def check_references() -> Iterator[str]:
    """Complaints about checks that right servers do not pass, or that none of them runs."""
    expired = [check for check in TUS_CHECKS if check.name == "expired"]
    results = run_tus(TusReference(), [check for check in TUS_CHECKS if check not in expired])
    results += run_tus(Brief(), expired)
    results += run_tus(Bare(), TUS_CHECKS) + run_tus(Closed(), TUS_CHECKS)
    for version in VERSIONS:
        results += run_ietf(IetfReference(), IETF_CHECKS, version)
    for result in results:
        if result.outcome in (FAIL, WARN):
            yield f"a right server, {result.dialect}: {result.check.name}: {result.reason}"
    passed = {(result.dialect == "tus", result.check.name) for result in results
              if result.outcome == PASS}
    for tus, checks in ((True, TUS_CHECKS), (False, IETF_CHECKS)):
        for check in checks:
            if (tus, check.name) not in passed:
                yield f"no right server passes {check.name}"


def check_mutant(mutant: Mutant) -> Iterator[str]:
    """Complaints about checks that do not find the mutant."""
    tus = issubclass(mutant.application, TusReference)
    known = {check.name: check for check in (TUS_CHECKS if tus else IETF_CHECKS)}
    checks = [known[name] for name in mutant.catches]
    application = mutant.application()
    results = run_tus(application, checks) if tus else run_ietf(application, checks, mutant.version)
    found = {result.check.name: result for result in results}
    for name in mutant.catches:
        if name not in found:
            yield f"{mutant.name}: {name} is no check of version {mutant.version}"
        elif found[name].outcome in (PASS, SKIP, NONE):
            yield f"{mutant.name}: {name} did not notice: {found[name].outcome} {found[name].reason}"


def check_command() -> Iterator[str]:
    """Complaints about the command: what it prints, and how it ends."""
    for application, status in ((TusReference, 0), (TUS_MUTANTS[0].application, 1)):
        text = io.StringIO()
        with served(application()) as url, redirect_stdout(text):
            ended = kedge_conformance.main([url, "--json", "--only", "options*"])
        results = json.loads(text.getvalue())["results"]
        if ended != status or {result["check"] for result in results} != {
                "options", "options-ignores-version"}:
            yield f"the command ends with {ended}, expected {status}, and prints {results}"


def check_coverage(mutants: list[Mutant], checks: list[Check], title: str) -> Iterator[str]:
    caught = {name for mutant in mutants for name in mutant.catches}
    for check in checks:
        if check.name not in caught:
            yield f"no mutant of {title} shows that {check.name} can fail"


def main(names: list[str]) -> int:
    mutants = [mutant for mutant in TUS_MUTANTS + mutants_ietf.MUTANTS
               if not names or any(name in mutant.name for name in names)]
    with ThreadPoolExecutor(WORKERS) as pool:
        complaints = [text for texts in pool.map(lambda mutant: list(check_mutant(mutant)), mutants)
                      for text in texts]
    if not names:
        complaints += [*check_references(), *check_freedom(), *check_command()]
        complaints += check_coverage(TUS_MUTANTS, TUS_CHECKS, "tus")
        complaints += check_coverage(mutants_ietf.MUTANTS, IETF_CHECKS, "IETF")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(TUS_CHECKS)} checks of tus, {len(IETF_CHECKS)} of IETF uploads, "
          f"{len(mutants)} mutants, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

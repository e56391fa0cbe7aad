#!/usr/bin/env python3
"""Takes a service its file descriptors away, and gives them back.

It must not spin, must say so once in ten seconds and in /readyz, and must go on by itself. At its start, it must
raise the soft limit of descriptors to the hard one.
"""

import argparse
import contextlib
import json
import re
import resource
import time
from pathlib import Path

from attack import Child, Client, Scratch, Service, connect, expect, run, wait_for

MESSAGE = "accepting connections failed"


def refuses(binary: Path) -> None:
    """A number of connections for which there are not enough descriptors is refused, with the number."""
    scratch = Scratch("attack")
    log = scratch.path / "log"
    child = Child(
        ["prlimit", "--nofile=256", str(binary), "serve", "--port", "0",
         "--data", str(scratch.path / "data"), "--limits-max-connections", "9000"], log,
    )
    try:
        wait_for("a refusal of 9000 connections", lambda: not child.is_running, 10)
        said = re.findall(r"\d+", log.read_text())
        expect(child.process.returncode == 2, f"the refusal ends with {child.process.returncode}")
        expect("256" in said and "9000" in said, f"the refusal names no numbers: {said}")
    finally:
        child.end()
        scratch.remove()


def connection_limit(service: Service) -> dict[str, str]:
    """The log line that says how many connections there are."""
    lines = [line for line in service.log().splitlines() if "limits.maxConnections" in line]
    expect(len(lines) == 1, "the start does not say how many connections there are")
    return json.loads(lines[0])


def raises(binary: Path) -> None:
    """A soft limit below the hard one is raised at the start, and the connections follow."""
    with Service(binary, descriptors=256) as service:
        few = int(connection_limit(service)["limits.maxConnections"])
    with Service(binary, descriptors="256:4096") as service:
        line = connection_limit(service)
        limits = resource.prlimit(service.process, resource.RLIMIT_NOFILE)
    expect(limits == (4096, 4096), f"the limits of descriptors are {limits}")
    expect(line["descriptors"] == "4096", f"the log says {line['descriptors']} descriptors")
    many = int(line["limits.maxConnections"])
    expect(many > 4 * few, f"{many} connections with 4096 descriptors, {few} with 256")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=12, help="how long there are none")
    options = parser.parse_args()
    refuses(options.binary)
    raises(options.binary)
    with Service(options.binary, descriptors=256) as service:
        expect(connection_limit(service)["descriptors"] == "256", "the log says other descriptors")
        prober = Client(service.port)
        expect(prober.ask("GET", "/readyz")[0] == 200, "the service is not ready")
        with contextlib.ExitStack() as stack:
            service.limit_descriptors(service.descriptor_count() + 2)
            for _ in range(20):
                stack.enter_context(connect(service.port))
            wait_for("a log line", lambda: MESSAGE in service.log(), 5)
            before, begun = service.cpu_seconds(), time.monotonic()
            while time.monotonic() - begun < options.seconds:
                status, _, body = prober.ask("GET", "/readyz")
                expect(status == 503, f"/readyz answers {status} without descriptors")
                reason = json.loads(body).get("reason")
                expect(reason == "descriptors", f"/readyz says {reason}")
                time.sleep(0.5)
            share = (service.cpu_seconds() - before) / (time.monotonic() - begun)
            expect(share < 0.15, f"{share:.0%} of a processor without descriptors")
            lines = service.log().count(MESSAGE)
            most = 2 + int(options.seconds // 10)
            expect(1 <= lines <= most, f"{lines} log lines in {options.seconds:.0f} s")
            service.limit_descriptors(None)
            wait_for("recovery", service.is_ready, 10)
        prober.close()
    print(f"descriptors: gone and back, {share:.1%} of a processor, {lines} log lines, violations 0")


run(main)

"""Uploads through proxies, over links that die before the proxy or behind it.

    proxies.py --binary PATH_TO_KEDGE [--long] [--only PROXY[,PROXY…]] [--seed N]

Every upload has to finish with the right file. `judged` is what crossed the link that dies over the
size of the file, less what the proxy took and did not pass on. Third-party programs are named. Where one
cannot get through, the row has the reason, and it is a fault when the program can after all.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet")]

import proxy_clients
import proxy_programs
from faulty_proxy import FaultyProxy
from processes import Child, Scratch, Unavailable
from proxy_clients import PROGRAMS
from proxy_programs import KINDS, ProxyKind
from service import Service, Source, Violation, download, expect

DIALECTS = {"native": "", "tus": "/tus/", "resumable-upload": "/files"}
KIBIBYTE = 1024
# After how many bytes a connection dies, and the size of a file for which that is some times.
LIVES = {300 * KIBIBYTE: 6, 2560 * KIBIBYTE: 24, 20480 * KIBIBYTE: 64}
MOST = 1.3
# Without a proxy.
MOST_DIRECT = 1.2
NEVER = 1 << 62


@dataclass(frozen=True)
class Case:
    kind: ProxyKind
    # A protocol of `kedge upload`, or the name of another program.
    program: str
    is_before: bool
    life: int

    @property
    def name(self) -> str:
        place = "before" if self.is_before else "behind"
        if self.life == NEVER:
            return f"{self.kind.name:16} {self.program:16} not cut"
        return f"{self.kind.name:16} {self.program:16} {place}  {self.life // KIBIBYTE:6} KiB"

    @property
    def is_own(self) -> bool:
        return self.program in DIALECTS

    @property
    def limit(self) -> str:
        return "" if self.is_own else PROGRAMS[self.program].limit(self.kind, self.is_before)

    @property
    def most(self) -> float:
        return MOST_DIRECT if self.kind.make is None else MOST

    @property
    def makes_sense(self) -> bool:
        if self.is_before:
            return True
        is_uncut = self.kind.closes and self.life > CHUNK
        return self.kind.make is not None and not is_uncut


@dataclass
class Outcome:
    front: float
    behind: float
    cut_count: int
    seconds: float

    @property
    def judged(self) -> float:
        return min(self.front, self.behind)


# Proxies that the short form tries with every protocol: each stands for others that do as it does.
EXAMPLES = {"direct", "nginx", "nginx-buffering", "haproxy"}
# Proxies that the short form tries with third-party programs.
OTHERS = {"nginx", "nginx-buffering"}
CHUNK = 4 << 20


# The life that shows most: it is less than a chunk, and more than the body of an append.
TELLING = 2560 * KIBIBYTE


def cases(kinds: list[ProxyKind], is_long: bool) -> Iterator[Case]:
    for kind, dialect, is_before, life in itertools.product(
            kinds, DIALECTS, (True, False), LIVES):
        is_telling = life == TELLING and (dialect == "native" or kind.name in EXAMPLES)
        case = Case(kind, dialect, is_before, life)
        if case.makes_sense and (is_long or is_telling):
            yield case
    for kind, program, is_before in itertools.product(kinds, PROGRAMS, (True, False)):
        case = Case(kind, program, is_before, TELLING)
        if case.makes_sense and (is_long or is_before and kind.name in OTHERS):
            yield case


class Bench:
    """One service for each setting of 104 answers, and the files that go there."""

    def __init__(self, binary: Path, directory: Path, seed: int) -> None:
        self.binary = binary
        self.directory = directory
        self._seed = seed
        self._services: dict[str, Service] = {}
        self._count = 0

    def service(self, interim: str) -> Service:
        if interim not in self._services:
            service = Service(self.binary, self.directory, ["--resumable-upload-interim", interim])
            self._services[interim] = service
            service.start()
        return self._services[interim]

    def stop(self) -> None:
        for service in self._services.values():
            service.stop()

    def run(self, case: Case) -> Outcome:
        self._count += 1
        # Another content each time, so that no upload can pass with the bytes of another.
        path = self.directory / f"source-{self._count}.bin"
        # Where nothing gets through, little is enough.
        mebibytes = 6 if case.limit else LIVES[case.life]
        source = Source(path, self._seed + self._count, mebibytes)
        service = self.service(case.kind.interim)
        started: list[Child] = []
        try:
            return self._run(case, source, service, started)
        finally:
            for child in reversed(started):
                child.end()
            path.unlink()

    def _run(self, case: Case, source: Source, service: Service, started: list[Child]) -> Outcome:
        lives = (case.life, NEVER) if case.is_before else (NEVER, case.life)
        with FaultyProxy(service.node.port, 0, lives[1], lives[1], 0) as behind:
            port = behind.port
            if case.kind.make is not None:
                proxy, port = proxy_programs.start(
                    case.kind.make, case.kind.name, self.directory, behind.port)
                started.append(proxy)
            with FaultyProxy(port, 0, lives[0], lives[0], 0) as front:
                entry = front.port
                if case.kind.has_tls:
                    child, entry = proxy_programs.start(
                        proxy_programs.unwrapper, "unwrapper", self.directory, front.port)
                    started.append(child)
                begin = time.monotonic()
                url = self._upload(case, source, service, f"http://127.0.0.1:{entry}")
                seconds = time.monotonic() - begin
                expect(download(url).sha256 == source.sha256, "the file is another one")
                size = source.byte_count
                cut_count = (front if case.is_before else behind).cut_count
                expect((cut_count > 0) == (case.life < NEVER), f"there were {cut_count} cuts")
                return Outcome(
                    front.byte_count / size, behind.byte_count / size, cut_count, seconds)

    def _upload(self, case: Case, source: Source, service: Service, server: str) -> str:
        if not case.is_own:
            proxy_clients.send(
                case.program, server, source, self.directory,
                is_hopeless=bool(case.limit) and case.life < NEVER)
            return service.newest_file(source.path.name)
        done = subprocess.run(
            [self.binary, "upload", source.path, "--json", "--dialect", case.program, "--server",
             server + DIALECTS[case.program], "--state-directory",
             self.directory / f"state-{self._count}"],
            env={"PATH": os.environ["PATH"], "HOME": str(self.directory)}, capture_output=True,
            text=True, timeout=300, check=False)
        said = done.stdout + done.stderr
        expect(done.returncode == 0, f"kedge upload ended with {done.returncode}: {said[-600:]}")
        last = json.loads(done.stdout.strip().splitlines()[-1])
        expect(last["fileHashSha256"] == source.sha256, f"another hash was reported: {last}")
        return f"{service.url}/files/{last['remoteFileId']}"


def passes_uncut(bench: Bench, case: Case) -> bool:
    """The control: over a whole link it gets through. What has nothing to do with the link has rows of
    other proxies as its control."""
    if case.kind.name == "nginx-1m" or case.kind.hides_scheme:
        return True
    uncut = replace(case, life=NEVER)
    try:
        bench.run(uncut)
    except Violation as violation:
        print(f"{uncut.name}   {violation}")
        return False
    return True


def run(bench: Bench, kinds: list[ProxyKind], is_long: bool) -> int:
    fault_count = 0
    print(f"{'proxy':16} {'program':16} cut        every   judged  front  behind  cuts  seconds")
    for case in cases(kinds, is_long):
        try:
            outcome = bench.run(case)
            verdict = ""
            if case.limit:
                verdict = f"  got through although it has {case.limit}"
            elif case.is_own and outcome.judged > case.most:
                verdict = f"  more than {case.most}"
            print(f"{case.name}   {outcome.judged:6.3f} {outcome.front:6.2f}  {outcome.behind:6.2f}"
                  f"  {outcome.cut_count:4} {outcome.seconds:8.1f}{verdict}", flush=True)
            fault_count += bool(verdict)
        except subprocess.TimeoutExpired:
            print(f"{case.name}   no end within 300 s", flush=True)
            fault_count += 1
        except Violation as violation:
            is_limit = case.limit and passes_uncut(bench, case)
            reason = f"cannot, as it has {case.limit}" if is_limit else violation
            print(f"{case.name}   {reason}", flush=True)
            fault_count += not is_limit
    return fault_count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--long", action="store_true", help="every row of the matrix")
    parser.add_argument("--only", default="", help="names of proxies, by comma")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    kinds = [kind for kind in KINDS if not names or kind.name in names]
    scratch = Scratch("proxies")
    bench = Bench(options.binary.resolve(), scratch.path, options.seed)
    try:
        fault_count = run(bench, kinds, options.long)
    except Unavailable as error:
        print(f"proxies, seed {options.seed}: {error}", file=sys.stderr)
        return 1
    finally:
        bench.stop()
        scratch.remove()
    print(f"proxies, seed {options.seed}: {fault_count} faults")
    return 1 if fault_count else 0


if __name__ == "__main__":
    sys.exit(main())

"""Lets clients that others wrote upload to Kedge over a link that fails, and kills things on the way.

    run_clients.py --binary PATH_TO_KEDGE [--mib 200] [--seed N] [--only NAME]

Each client sends the same file through a proxy that cuts every connection after some hundred KiB to 2 MiB.
What comes back is compared with what was sent. At the end the content is stored once, whichever way it came.
The seed is printed; the same seed makes the same cuts at the same bytes of each connection.
"""

import argparse
import contextlib
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet", "conformance")]

import curl
from checks import Failed
from crash import IetfDoor, TusDoor, check_crash
from faulty_proxy import FaultyProxy
from processes import Unavailable
from service import Service, Source, Violation, expect
from uploaders import UPLOADERS
from wire import WireError

Scenario = Callable[[], str]


class Trial:
    """The scenarios; each returns a sentence, or raises."""

    def __init__(self, service: Service, source: Source, options: argparse.Namespace) -> None:
        self.service = service
        self.source = source
        self.options = options
        self.tags: set[str] = set()

    def scenarios(self) -> dict[str, Scenario]:
        tus = {name: lambda name=name: self.upload_by_tus(name) for name in UPLOADERS}
        return tus | {
            "curl with IETF fields": self.upload_by_curl,
            "kedge upload": self.upload_natively,
            "kill -9 in tus": lambda: self.crash(TusDoor),
            "kill -9 in IETF": lambda: self.crash(IetfDoor),
            "one blob": self.one_blob,
            "tuspyserver": lambda: self.foreign("tuspyserver"),
            "resumable-upload as server": lambda: self.foreign("resumable-upload"),
        }

    @contextlib.contextmanager
    def bad_link(self) -> Iterator[FaultyProxy]:
        with FaultyProxy(self.service.node.port, self.options.seed) as proxy:
            yield proxy

    def upload_by_tus(self, name: str) -> str:
        with self.bad_link() as proxy:
            url = UPLOADERS[name](proxy.url + "/tus/", self.source.path)
        self.tags.add(self.service.check_upload(url, self.source))
        expect(proxy.cut_count > 0, "no connection was cut; the file is too small")
        return f"{proxy.cut_count} connections cut"

    def upload_by_curl(self) -> str:
        upload = curl.create(self.service.url + "/files", self.source)
        kept = curl.kill_midway(upload, self.source)
        file = curl.resume(upload, kept, self.source, self.service.directory)
        self.tags.add(self.service.check_upload(file, self.source))
        return f"killed after {kept >> 20} MiB"

    def upload_natively(self) -> str:
        with self.bad_link() as proxy:
            file = self.service.upload_natively(proxy.url, self.source)
        self.tags.add(self.service.check_upload(file, self.source))
        return f"{proxy.cut_count} connections cut"

    def crash(self, door: type[TusDoor] | type[IetfDoor]) -> str:
        chooser = random.Random(self.options.seed)
        url, offset = check_crash(self.service, door(self.service), self.source, chooser)
        self.tags.add(self.service.check_upload(url, self.source))
        return f"killed six times, went on at {offset >> 20} MiB"

    def one_blob(self) -> str:
        expect(bool(self.tags), "nothing was uploaded")
        expect(len(self.tags) == 1, f"the same content has the entity tags {self.tags}")
        self.service.check_one_blob(self.source)
        return "same entity tag, stored once"

    def foreign(self, name: str) -> str:
        """Shows that the foreign server takes an upload, for the tests of our own client with it."""
        small = Source(self.service.directory / f"for-{name}.bin", self.options.seed, 4)
        host = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("foreign.py"), name], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            answer = json.loads(host.stdout.readline())
            expect("answer" in answer, f"{name} does not start: {answer.get('error')}")
            UPLOADERS["tuspy"](answer["answer"]["tus"], small.path)
            files = Path(answer["answer"]["directory"]).rglob("*")
            expect(any(path.is_file() and path.read_bytes() == small.read(0) for path in files),
                   f"{name} does not have the file")
        finally:
            host.stdin.close()
            host.wait(20)
            host.stdout.close()
        return "takes an upload of tuspy"


def run(trial: Trial, only: str | None) -> int:
    failed = 0
    for name, scenario in trial.scenarios().items():
        if only is not None and only not in name:
            continue
        started = time.monotonic()
        try:
            outcome = scenario()
        except (Violation, Failed, WireError) as violation:
            failed += 1
            outcome = f"FAILED: {violation}"
        except Exception as error:  # noqa: BLE001  foreign clients raise what they like
            failed += 1
            outcome = f"FAILED: {type(error).__name__}: {error}"
        print(f"{name + ':':<28} {outcome} ({time.monotonic() - started:.1f} s)", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=200, help="size of the file, in MiB")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only", help="only scenarios whose name has this in it")
    options = parser.parse_args()
    # Every cut is a warning to aiotus.
    logging.getLogger("aiotus").setLevel(logging.ERROR)
    print(f"clients, {options.mib} MiB, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kedge-clients-") as name:
        service = Service(options.binary.resolve(), Path(name))
        try:
            service.start()
            source = Source(Path(name) / "source.bin", options.seed, options.mib)
            failed = run(Trial(service, source, options), options.only)
            # A server that cannot drain fails the test as well.
            service.stop()
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            service.kill()
    if failed:
        print(f"{failed} failed; repeat with seed {options.seed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

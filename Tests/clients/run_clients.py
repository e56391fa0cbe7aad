"""Lets clients that others wrote upload to Kedge over a link that fails, and kills things on the way.

    run_clients.py --binary PATH_TO_KEDGE [--mib 200] [--seed N] [--only NAME]

Each client sends the same file through a proxy that cuts every connection after some hundred KiB to 2 MiB.
What comes back is compared with what was sent. At the end the content is stored once, whichever way it came.
The seed is printed; the same seed makes the same cuts at the same bytes of each connection, as far as a client opens
its connections in the same order.
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
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet", "conformance")]

import curl
from browser import Browser, PageServer
from checks import Failed
from crash import IetfClient, TusClient, check_crash
from faulty_proxy import FaultyProxy
from links import NAMES, LinkedService, check_links
from processes import Unavailable
from service import MEBIBYTE, Service, Source, Violation, expect
from uploaders import UPLOADERS
from wire import WireError

Scenario = Callable[[], str]


class Trial:
    """The scenarios; each returns a sentence, or raises."""

    def __init__(self, service: Service, pages: PageServer, source: Source,
                 options: argparse.Namespace) -> None:
        self.service = service
        self.browser = Browser(pages)
        self.pages = pages
        self.source = source
        self.options = options
        self.tags: set[str] = set()

    def scenarios(self) -> dict[str, Scenario]:
        tus = {name: lambda name=name: self.upload_by_tus(name) for name in UPLOADERS}
        return tus | {
            "curl with IETF fields": self.upload_by_curl,
            "kedge upload": self.upload_natively,
            "page: tus-js-client": self.upload_from_page,
            "page: tus-js-client in parts": self.upload_from_page_in_parts,
            "page: reloaded midway": self.reload_page,
            "page: upload given up": self.terminate_from_page,
            "page: IETF by fetch": lambda: self.upload_by_fetch("ietf"),
            "page: native by fetch": lambda: self.upload_by_fetch("native"),
            "page: ranges": self.ranges_in_page,
            "page of a stranger": self.page_of_stranger,
            **{f"{name} by link": lambda name=name: self.upload_by_link(name) for name in NAMES},
            "kill -9 in tus": lambda: self.crash(TusClient),
            "kill -9 in IETF": lambda: self.crash(IetfClient),
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

    def upload_by_link(self, name: str) -> str:
        service = LinkedService(self.service.binary, self.service.directory)
        try:
            service.start()
            with FaultyProxy(service.node.port, self.options.seed) as proxy:
                check_links(service, name, proxy.url, self.source)
            expect(proxy.cut_count > 0, "no connection was cut; the file is too small")
            service.stop()
        finally:
            service.kill()
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

    def over_bad_link(self, scenario: str) -> tuple[dict[str, Any], int]:
        """Returns the page's report of an upload over a bad link, and the number of cut connections."""
        with self.bad_link() as proxy:
            answer = self.browser.run(scenario, proxy.url)
        self.tags.add(self.service.check_upload(answer["url"], self.source))
        expect(proxy.cut_count > 0, "no connection was cut; the file is too small")
        return answer, proxy.cut_count

    def upload_from_page(self) -> str:
        _, cuts = self.over_bad_link("tus")
        return f"{cuts} connections cut"

    def upload_from_page_in_parts(self) -> str:
        answer, cuts = self.over_bad_link("tusInParts")
        # One may have been made twice, its first answer lost.
        expect(answer["concats"].count("partial") >= 3 and "final" in answer["concats"],
               f"the page made {answer['concats']}")
        return f"{cuts} connections cut"

    def reload_page(self) -> str:
        answer, _ = self.over_bad_link("tusAfterReload")
        kept = answer["resumedAt"]
        # Bytes that the page has sent may still be in buffers on the way.
        least = max(1, self.source.byte_count // 2 - 16 * MEBIBYTE)
        expect(kept is not None and kept >= least, f"half was sent, and the page went on at {kept}")
        return f"went on at {kept >> 20} MiB"

    def terminate_from_page(self) -> str:
        with self.bad_link() as proxy:
            statuses = self.browser.run("tusTermination", proxy.url)["statuses"]
        expect(statuses[0] == "POST 201" and statuses[-2:] == ["DELETE 204", "HEAD 404"],
               f"the page was answered {statuses}")
        return "gone"

    def upload_by_fetch(self, scenario: str) -> str:
        url = self.browser.run(scenario, self.service.url)["url"]
        self.tags.add(self.service.check_upload(url, self.source))
        return "same bytes"

    def ranges_in_page(self) -> str:
        file = self.service.upload_natively(self.service.url, self.source)
        self.tags.add(self.browser.run("ranges", self.service.url, file=file)["etag"])
        return "same bytes"

    def page_of_stranger(self) -> str:
        before = self.service.file_names()
        refused = self.browser.run("attempts", self.service.url, origin=self.pages.other_origin)
        # A page may send what it may not read the answer to, which then has the status 0 for it.
        expect(refused.pop("POST /files, unread") == 0, "the browser lets the page read everything")
        expect(set(refused.values()) == {"refused"}, f"a stranger was answered {refused}")
        expect(self.service.file_names() == before, "the page of a stranger left a file")
        # A page of an allowed origin makes these requests, too: the origin alone was the reason.
        taken = self.browser.run("attempts", self.service.url)
        expect(all(taken[name] in (200, 201) for name in refused), f"a friend was answered {taken}")
        expect(len(self.service.file_names()) == len(before) + 3, "the page of a friend left no files")
        return f"{len(refused) + 1} attempts refused"

    def crash(self, client: type[TusClient] | type[IetfClient]) -> str:
        chooser = random.Random(self.options.seed)
        url, offset = check_crash(self.service, client(self.service), self.source, chooser)
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
        source = Source(Path(name) / "source.bin", options.seed, options.mib)
        try:
            pages = PageServer(source)
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
        service = Service(
            options.binary.resolve(), Path(name), ["--cors-allowed-origins", pages.origin])
        try:
            service.start()
            failed = run(Trial(service, pages, source, options), options.only)
            # A server that cannot drain fails the test as well.
            service.stop()
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            service.kill()
            pages.stop()
    if failed:
        print(f"{failed} failed; repeat with seed {options.seed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

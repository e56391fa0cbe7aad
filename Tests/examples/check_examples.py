"""Runs every program in examples/ against one service.

    check_examples.py --binary PATH_TO_KEDGE [--swift PATH_TO_EXAMPLE] [--only NAME]

The uploaders are killed in the middle of a chunk and run again: no acknowledged chunk is sent twice.
Chromium opens the page. The service in FastAPI has two users.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet", "clients")]

from browser import Browser, PageServer
from processes import ROOT, Child, Unavailable, can_connect, find_program, free_port
from relay import Relay, SlowLink
from service import MEBIBYTE, Service, Source, Violation, expect

EXAMPLES = ROOT / "examples"
HERE = Path(__file__).resolve().parent
CHUNK = MEBIBYTE // 4
SECONDS = 30


class ExamplePages(PageServer):
    """Serves the example page with a script at its end that uses it, and tus-js-client as the page wants it."""

    def _content(self, path: str) -> bytes:
        if path == "/index.html":
            page = (EXAMPLES / "javascript" / "index.html").read_bytes()
            return page + b'<script type="module" src="/driver.js"></script>\n'
        if path == "/driver.js":
            return (HERE / "driver.js").read_bytes()
        if path == "/tus.min.js":
            return b'import("/tus-js-client.js").then((module) => { window.tus = module; });\n'
        return super()._content(path)


class Trial:
    """The examples; each check returns a sentence, or raises."""

    def __init__(self, service: Service, pages: PageServer, source: Source, large_source: Source,
                 directory: Path) -> None:
        self.service = service
        self.browser = Browser(pages)
        self.source = source
        self.large_source = large_source
        self.directory = directory

    def resume(
        self, name: str, command: Sequence[str | Path], source: Source, *, resumes_exactly: bool
    ) -> str:
        """Kills an uploader within a chunk, after some complete ones, and runs it again."""
        home = self.directory / name
        home.mkdir()
        # A name that JSON must escape.
        file = home / 'a "file".bin'
        file.write_bytes(source.read(0))
        relay = Relay(self.service.node.port)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            relay.break_after(3)
            first = Child([*command, file, relay.url], home / "log", environment=environment)
            try:
                first.wait_until("the upload is under way", relay.has_broken.is_set, SECONDS)
            finally:
                # With the programs that it started: all of its session.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(first.pid, signal.SIGKILL)
                first.end()
            before = relay.heal()
            received = self._settled_byte_count()
            second = Child([*command, file, relay.url], home / "log", environment=environment)
            try:
                second.process.wait(SECONDS)
            finally:
                second.end(signal.SIGKILL)
            after = relay.heal()
        finally:
            relay.stop()
        expect(second.process.returncode == 0, f"it ended with {second.process.returncode}: {second.complaint()}")
        expect(len(before.acknowledged) >= 3, f"only {before.acknowledged} were acknowledged before the kill")
        again = before.acknowledged & {sent.index for sent in after.sent}
        expect(not again, f"chunks {again} were acknowledged and sent again")
        if resumes_exactly:
            expect(any(sent.first % CHUNK for sent in after.sent), "no chunk resumed inside")
            expect(after.byte_count == source.byte_count - received,
                   f"{after.byte_count} bytes were sent after {received} of {source.byte_count} were there")
        address = self.service.newest_file(file.name)
        self.service.check_upload(address, source)
        said = second.complaint().split("\n")[-2].split()
        expect(said == [urlsplit(address).path.split("/")[-1], source.sha256], f"it says {said}")
        left = {path.name for path in home.iterdir()} - {file.name, "log", ".local"}
        expect(not left, f"it leaves {left}")
        return (f"killed after {received:,} of {source.byte_count:,} bytes; "
                f"sent {after.byte_count:,} when it ran again")

    def _settled_byte_count(self) -> int:
        """Waits until the service has noticed the break; returns the bytes that it has of the newest session."""
        log = self.service.node.log.read_text()
        session = [json.loads(line) for line in log.splitlines() if '"session.id"' in line][-1]["session.id"]
        counts = [-1, -2, -3]
        deadline = time.monotonic() + SECONDS
        while len(set(counts)) > 1:
            if time.monotonic() > deadline:
                raise Violation("bytes arrive although the client was killed")
            time.sleep(0.2)
            counts = [*counts[1:], get(f"{self.service.url}/uploads/sessions/{session}")["receivedBytes"]]
        return counts[-1]

    def page(self, scenario: str) -> str:
        with SlowLink(self.service.node.port, 12 * MEBIBYTE) as link:
            answer = self.browser.run(scenario, link.url)
        self.service.check_upload(answer["url"], self.large_source)
        self.service.newest_file("source.bin")
        # A page that begins again sends a third more.
        size = self.large_source.byte_count
        expect(link.byte_count < 1.15 * size, f"{link.byte_count} bytes crossed the link for {size}")
        return f"paused at {answer['pausedAt']:.0%}; {link.byte_count / size:.2f} of the file crossed the link"

    def fastapi(self) -> str:
        port = free_port()
        program = ROOT / ".build-examples-venv" / "bin" / "python"
        if not program.exists():
            raise Unavailable("FastAPI is not installed; `make test-deps` brings it")
        home = self.directory / "fastapi"
        home.mkdir()
        command = [program, "-m", "uvicorn", "--app-dir", EXAMPLES / "fastapi", "app:app", "--port", str(port)]
        app = Child(command, home / "log", environment={
            "PATH": os.environ["PATH"], "HOME": str(home), "KEDGE_SERVER": self.service.url,
            "UPLOADS_DATABASE": str(home / "uploads.sqlite"), "PYTHONDONTWRITEBYTECODE": "1"})
        try:
            app.wait_until("the service in FastAPI serves", lambda: can_connect(port), SECONDS)
            self._use(f"http://127.0.0.1:{port}")
        except urllib.error.HTTPError as error:
            raise Violation(f"{error.url}: {error.code}: {error.read()!r}; {app.complaint()}") from error
        finally:
            app.end()
        return "a user has the file with its digest, another has none"

    def _use(self, address: str) -> None:
        """Uploads as one user; the other must not see it."""
        data, ann, bob = self.source.read(0), {"X-User": "ann"}, {"X-User": "bob"}
        upload = post(f"{address}/uploads", {"name": "report.bin", "size": len(data)}, ann)
        state = get(f"{address}/uploads/{upload['id']}", ann)
        expect(state == {"state": "open", "receivedBytes": 0}, f"a new upload is {state}")
        with contextlib.suppress(urllib.error.HTTPError):
            raise Violation(f"another user sees {get(address + '/uploads/' + upload['id'], bob)}")
        for index in range(upload["totalChunks"]):
            first = index * upload["chunkSize"]
            chunk = data[first : first + upload["chunkSize"]]
            request = urllib.request.Request(f"{upload['url']}/chunks/{index}", chunk, {
                "Content-Range": f"bytes {first}-{first + len(chunk) - 1}/{len(data)}",
                "X-Chunk-Hash": "sha256=" + hashlib.sha256(chunk).hexdigest()}, method="PUT")
            urllib.request.urlopen(request, timeout=SECONDS).close()
        state = get(f"{address}/uploads/{upload['id']}", ann)
        expect(state == {"state": "open", "receivedBytes": len(data)}, f"a sent upload is {state}")
        expect(get(f"{address}/files", ann) == [], "a file is listed before it exists")
        post(f"{upload['url']}/finalize", {}, {})
        # An upload that expires or is canceled does not get into the way.
        gone = post(f"{address}/uploads", {"name": "gone.bin", "size": 1}, ann)
        urllib.request.urlopen(urllib.request.Request(gone["url"], method="DELETE"), timeout=SECONDS).close()
        files = get(f"{address}/files", ann)
        expect([(file["name"], file["sha256"]) for file in files] == [("report.bin", self.source.sha256)],
               f"the files are {files}")
        self.service.check_upload(files[0]["url"], self.source)
        state = get(f"{address}/uploads/{upload['id']}", ann)
        expect(state == {"state": "completed", "receivedBytes": len(data)}, f"a finished upload is {state}")
        expect(get(f"{address}/files", bob) == [], "another user sees the file")


def get(url: str, headers: Mapping[str, str] | None = None) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=SECONDS) as answer:
        return json.load(answer)


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method="POST")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)


def checks(trial: Trial, swift: Path | None) -> dict[str, Callable[[], str]]:
    python, shell = EXAMPLES / "python" / "kedge_upload.py", EXAMPLES / "shell" / "upload.sh"
    found = {
        "python": lambda: trial.resume(
            "python", [sys.executable, python], trial.source, resumes_exactly=True),
        "shell": lambda: trial.resume(
            "shell", [find_program("sh"), shell], trial.source, resumes_exactly=True),
        "javascript": lambda: trial.page("resume"),
        "javascript, reloaded": lambda: trial.page("reload"),
        "fastapi": trial.fastapi,
    }
    if swift is not None:
        # The library asks for larger chunks, sends several at a time, and chooses the size of their bodies.
        found["swift"] = lambda: trial.resume("swift", [swift], trial.large_source, resumes_exactly=False)
    return found


def run(trial: Trial, options: argparse.Namespace) -> int:
    failed = 0
    for name, check in checks(trial, options.swift).items():
        if options.only and options.only not in name:
            continue
        started = time.monotonic()
        try:
            outcome = check()
        except (Violation, Unavailable, OSError) as error:
            failed += 1
            outcome = f"FAILED: {type(error).__name__}: {error}"
        print(f"{name + ':':<22} {outcome} ({time.monotonic() - started:.1f} s)", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--swift", type=Path, help="the built example of the client library")
    parser.add_argument("--only", help="only examples whose name has this in it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kedge-examples-") as name:
        seed = random.randrange(1 << 31)
        source = Source(Path(name) / "source.bin", seed, 3)
        # For the page: the buffers of the browser and of the system hold megabytes.
        large_source = Source(Path(name) / "large-source.bin", seed, 24)
        try:
            pages = ExamplePages(large_source)
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
        service = Service(options.binary.resolve(), Path(name), [
            "--cors-allowed-origins", pages.origin, "--limits-default-chunk-size", str(CHUNK)])
        try:
            service.start()
            failed = run(Trial(service, pages, source, large_source, Path(name)), options)
            # A server that cannot drain fails the test as well.
            service.stop()
        except Unavailable as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            service.kill()
            pages.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

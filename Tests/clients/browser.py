"""Chromium with pages of another origin than the service's, which upload with tus-js-client and with fetch.

tus-js-client is what Uppy uploads with, too. It is in no registry that these tests draw on; Galaxy's web client
has it inside and is on PyPI, so its bundle is served here as it is, with the class `Upload` made visible.
"""

import contextlib
import http.server
import importlib.resources
import json
import os
import queue
import re
import secrets
import signal
import threading
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from processes import Child, Scratch, Unavailable, find_program
from service import Source, expect

PAGES = Path(__file__).with_name("page")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
# Where Galaxy makes one: `new NAME(file,{endpoint:…,retryDelays:…`.
USE_OF_UPLOAD = re.compile(r"new ([\w$]+)\([^;]{0,200}?\{endpoint:[\w$]+,retryDelays:")
SECONDS = 180


class TusJsClient:
    """The bundle's module that has tus-js-client in it, and the name that the class goes by there."""

    def __init__(self) -> None:
        try:
            package = importlib.resources.files("galaxy.web_client")
        except ModuleNotFoundError as error:
            raise Unavailable("galaxy-web-client is not installed; `make test-deps` brings it") from error
        self._directory = Path(str(package)) / "dist"
        found = [path for path in self._directory.glob("*.js") if b"Tus-Resumable" in path.read_bytes()]
        if len(found) != 1:
            raise Unavailable(f"{len(found)} modules of galaxy-web-client speak tus")
        self._module = found[0]
        names = set(USE_OF_UPLOAD.findall(self._module.read_text(encoding="utf-8")))
        if len(names) != 1:
            raise Unavailable(f"the class of uploads in galaxy-web-client goes by {sorted(names)}")
        self._name = names.pop()

    def read(self, path: str) -> bytes:
        """A file of the bundle."""
        file = (self._directory / path).resolve()
        if not file.is_relative_to(self._directory.resolve()):
            raise FileNotFoundError(path)
        content = file.read_bytes()
        if file.name == self._module.name:
            content += f"\nexport{{{self._name} as TusUpload}};\n".encode()
        return content

    @property
    def entry(self) -> bytes:
        """A module that has the class under its own name."""
        return f'export {{ TusUpload as Upload }} from "/bundle/{self._module.name}";\n'.encode()


class PageServer:
    """Serves the page, tus-js-client and the file to upload, and takes what pages report."""

    def __init__(self, source: Source, directory: Path = PAGES) -> None:
        self._source = source
        self._directory = directory
        self._client = TusJsClient()
        self._reports: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages._answer(self)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                pages._reports.put(json.loads(self.rfile.read(length)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def other_origin(self) -> str:
        """Address of these pages under another host name, which a browser takes for another origin."""
        return f"http://localhost:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def await_report(self, run: str, browser: Child) -> dict[str, Any]:
        """Returns the report of that run's page; raises `Unavailable` when the browser ends or takes too long."""
        deadline = time.monotonic() + SECONDS
        while True:
            # Another run's page may still have had something to say.
            with contextlib.suppress(queue.Empty):
                report = self._reports.get(timeout=0.2)
                if report["run"] == run:
                    return report
            if not browser.is_running:
                raise Unavailable(f"Chromium ended: {browser.complaint()}")
            if time.monotonic() > deadline:
                raise Unavailable(f"the page reports nothing: {browser.complaint()}")

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = urllib.parse.urlsplit(request.path).path
        with contextlib.suppress(ConnectionError):  # the page is gone
            try:
                content = self._content(path)
            except OSError:
                request.send_error(404)
                return
            kind = TYPES.get(Path(path).suffix, "application/octet-stream")
            request.send_response(200)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(content)))
            request.send_header("Cache-Control", "no-store")
            request.end_headers()
            request.wfile.write(content)

    def _content(self, path: str) -> bytes:
        if path == "/source":
            return self._source.read(0)
        if path == "/tus-js-client.js":
            return self._client.entry
        if path.startswith("/bundle/"):
            return self._client.read(path.removeprefix("/bundle/"))
        if path in ("/index.html", "/page.js", "/film.js"):
            return (self._directory / path[1:]).read_bytes()
        raise FileNotFoundError(path)


class Browser:
    """Lets a new Chromium, with nothing in its profile, open a page and waits for what the page reports."""

    def __init__(self, pages: PageServer, options: Sequence[str] = ()) -> None:
        self._pages = pages
        self._options = options

    def run(self, scenario: str, service: str, *, origin: str | None = None, **more: str) -> dict[str, Any]:
        """Runs a scenario of page.js against a service; raises `Violation` when it fails."""
        run = secrets.token_hex(8)
        query = urllib.parse.urlencode(
            {"run": run, "scenario": scenario, "service": service} | more)
        address = f"{origin or self._pages.origin}/index.html?{query}"
        program = find_program("chromium")
        scratch = Scratch("browser")
        try:
            browser = Child([
                # Its sandbox wants rights that a container seldom gives. These pages are ours.
                program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-breakpad",
                "--enable-logging=stderr", f"--user-data-dir={scratch.path / 'profile'}", *self._options, address,
            ], scratch.path / "log", environment=self._environment(scratch.path))
            try:
                report = self._pages.await_report(run, browser)
            finally:
                # All of its processes, which would write to the profile that is being removed.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(browser.pid, signal.SIGKILL)
                browser.end()
        finally:
            scratch.remove()
        expect("answer" in report, f"in the page: {report.get('error')}")
        return report["answer"]

    @staticmethod
    def _environment(home: Path) -> dict[str, str]:
        """Nothing of the desktop that a developer may be sitting at."""
        names = ("XDG_", "DISPLAY", "WAYLAND_", "DBUS_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(names)}
        return inherited | {"HOME": str(home)}

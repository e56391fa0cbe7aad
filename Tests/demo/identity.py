#!/usr/bin/env python3
"""Shows what tokens, links, quotas, TLS and metrics do together, as one story; ends with status 1 where it fails.

    identity.py PATH_TO_KEDGE

The service has an address in a network namespace of its own. The clients are in another one, and the link between them
is cut while they upload. `python3` must have the packages of Tests/clients/requirements.txt.
"""

import base64
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet", "clients", "bench/links", "support")]

from browser import Browser, PageServer
from cut_link import CUTS, SERVICE, Link, bound, enter_namespace, run
from processes import Scratch, Unavailable, find_program
from provider import Provider
from service import MEBIBYTE, Source, Violation, expect
from skipping import skipped
from webm import write_video

URL = f"https://{SERVICE}"
METRICS = "127.0.0.1:9464"
ISSUER = "http://127.0.0.1:8000"
PROMETHEUS = f"http://{SERVICE}:9090"
VIDEO_MEBIBYTES, VIDEO_SECONDS = 16, 40
PLACES, CREATES, CONNECTIONS = 50, 200, 40
SMALL_BYTES, SMALL_FILES, SMALL_PLACES = 256 << 10, 40, 16
BUSY = (429, "BUSY")
TOLERANCE_SECONDS = 60


class Video(Source):
    """The file that all clients upload."""

    def __init__(self, path: Path) -> None:
        write_video(path, seed=1, seconds=VIDEO_SECONDS, byte_count=VIDEO_MEBIBYTES * MEBIBYTE)
        content = path.read_bytes()
        self.path = path
        self.byte_count = len(content)
        self.sha256 = hashlib.sha256(content).hexdigest()


class Answer:
    """Status, fields and body of an answer."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.fields = response.headers
        self.body = response.read()

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.body)) if self.body else {}

    @property
    def code(self) -> tuple[int, str]:
        """Status and code of an error."""
        return self.status, str(self.json.get("code", ""))


class Demo:
    """The story; each step returns a sentence, or raises."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self.binary = binary
        self.directory = directory
        self.data = directory / "data"
        self.audit = directory / "audit.jsonl"
        self.log = directory / "kedge.log"
        self.authority = directory / "certificate.pem"
        self.video = Video(directory / "film.webm")
        self.provider = Provider(directory, ISSUER)
        self.link = Link(directory)
        self.status = 0
        self.files: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.linked: list[str] = []
        self.short_token = self.short_upload = self.session = ""
        self.short_body = os.urandom(MEBIBYTE)
        self.pages: PageServer | None = None
        self.completed = 0

    def steps(self) -> Iterator[Callable[[], str]]:
        yield self.start_service
        yield self.create_tokens
        has_prometheus = shutil.which("prometheus") is not None
        if has_prometheus:
            yield self.start_prometheus
        yield self.begin_with_a_short_token
        yield self.upload_with_curl
        yield self.upload_with_the_command
        try:
            find_program("chromium")
            self.pages = PageServer(self.video, HERE / "page")
        except Unavailable as error:
            self.skip("browser", error)
        else:
            yield self.upload_from_a_page
            yield self.play_in_a_page
        yield self.race_for_places
        yield self.hide_from_a_second_owner
        yield self.race_for_bytes
        yield self.finish_after_expiry
        if has_prometheus:
            yield self.scrape
        else:
            self.skip("promtool", "Debian's package prometheus is not installed")
        yield self.keep_secrets_out_of_logs

    def skip(self, name: str, reason: object) -> None:
        self.status = skipped(name, reason) or self.status

    def stop(self) -> None:
        if self.pages is not None:
            self.pages.stop()
        self.link.stop()

    # Requests

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.authority)
        return http.client.HTTPSConnection(SERVICE, timeout=30, context=context)

    def ask(self, method: str, target: str, credential: str = "", body: bytes | None = None,
            fields: Mapping[str, str] | None = None,
            connection: http.client.HTTPSConnection | None = None) -> Answer:
        """Sends one request, with a token if one is given."""
        sent = dict(fields or {})
        if credential:
            sent["Authorization"] = f"Bearer {credential}"
        used = connection or self.connect()
        with contextlib.nullcontext() if connection else contextlib.closing(used):
            used.request(method, target.removeprefix(URL), body, sent)
            return Answer(used.getresponse())

    def kedge(self, *words: str | Path) -> str:
        """Runs the command without any token; returns its output."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "SSL_CERT_FILE": str(self.authority)}
        done = subprocess.run(
            bound([self.binary, *words]), env=environment, capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode == 0, f"kedge {words[0]} ended with {done.returncode}: {done.stderr[-1000:]}")
        return done.stdout.strip()

    def make_link(self, **members: Any) -> dict[str, Any]:
        """A link that the backend makes with curl."""
        answer = json.loads(run(
            "curl", "--silent", "--show-error", "--fail-with-body", "--cacert", self.authority,
            "--header", f"Authorization: Bearer {self.tokens['shop']}", "--header", "Content-Type: application/json",
            "--data", json.dumps(members | {"expiresInSeconds": 600}), f"{URL}/links"))
        self.linked.append(answer["linkId"])
        return dict(answer)

    def make_put_link(self, **members: Any) -> dict[str, Any]:
        return self.make_link(op="put", maxFileSize=self.video.byte_count, mimeTypes=["video/*"], **members)

    def check_file(self, client: str, identifier: str) -> str:
        """Compares a stored file with the video."""
        answer = self.ask("GET", f"/files/{identifier}", self.tokens["shop"])
        digest = hashlib.sha256(answer.body).hexdigest()
        expect(answer.status == 200 and digest == self.video.sha256,
               f"{client}: {answer.status}, {len(answer.body)} bytes that differ from the video")
        self.files[client] = identifier
        self.completed += 1
        return f"{client} uploads {VIDEO_MEBIBYTES} MiB by a link; the network fails {CUTS} times; all bytes are equal"

    # Steps

    def start_service(self) -> str:
        key = self.directory / "key.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", key, "-out", self.authority, "-days", "2", "-subj", f"/CN={SERVICE}",
            "-addext", f"subjectAltName=IP:{SERVICE}")
        key.chmod(0o600)
        settings = {
            "host": SERVICE, "port": 443, "allowedHosts": SERVICE, "publicAddress": URL, "data": str(self.data),
            "log": {"format": "json", "audit": str(self.audit)},
            "identity": {"mode": "tokens"},
            "tls": {"certificate": str(self.authority), "key": str(key)},
            "metrics": {"listen": METRICS},
            "quota": {"openSessions": PLACES},
            "oidc": {"issuers": ISSUER, "audience": "kedge"},
        }
        # JSON is YAML.
        configuration = self.directory / "kedge.yaml"
        configuration.write_text(json.dumps(settings), encoding="utf-8")
        port = ISSUER.rpartition(":")[2]
        issuer = self.link.there.start(
            [sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", self.provider.documents],
            self.directory / "provider.log")
        issuer.wait_until("the provider listens", lambda: self.link.there.is_listening(int(port)))
        service = self.link.there.start([self.binary, "serve", "--config", configuration], self.log)
        service.wait_until("the service is ready", self.is_ready, 60)
        return f"the service serves at {URL} with TLS"

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return self.ask("GET", "/readyz").status == 200
        return False

    def create_tokens(self) -> str:
        for owner, scopes in {
            "shop": "user", "bob": "user", "crowd": "uploader", "hoard": "uploader", "prometheus": "metrics:read",
        }.items():
            self.tokens[owner] = self.kedge(
                "token", "create", owner, "--owner", owner, "--scopes", scopes, "--data", self.data)
        expect(self.ask("GET", "/files").code == (401, "UNAUTHENTICATED"), "a request without a token")
        owner = self.ask("GET", "/me", self.tokens["shop"]).json["owner"]
        expect(owner == "shop", f"the token is one of {owner}")
        return "kedge token create makes tokens while the service runs; requests without one are refused"

    def start_prometheus(self) -> str:
        secret = self.directory / "token"
        secret.write_text(self.tokens["prometheus"], encoding="utf-8")
        settings = {
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
            "scrape_configs": [
                {"job_name": "listener", "static_configs": [{"targets": [METRICS]}]},
                {"job_name": "service", "scheme": "https", "static_configs": [{"targets": [f"{SERVICE}:443"]}],
                 "tls_config": {"ca_file": str(self.authority)},
                 "authorization": {"credentials_file": str(secret)}},
            ],
        }
        configuration = self.directory / "prometheus.yml"
        configuration.write_text(json.dumps(settings), encoding="utf-8")
        self.link.there.start(
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={self.directory / 'tsdb'}",
             f"--web.listen-address={PROMETHEUS.removeprefix('http://')}"], self.directory / "prometheus.log")
        return "Prometheus scrapes the service through TLS with a token"

    def begin_with_a_short_token(self) -> str:
        self.short_token = self.provider.token("alice", 10 - TOLERANCE_SECONDS)
        created = self.ask("POST", "/tus/", self.short_token, fields={
            "Tus-Resumable": "1.0.0", "Upload-Length": str(MEBIBYTE), "Content-Length": "0"})
        expect(created.status == 201, f"a create with a JSON Web Token: {created.code}")
        self.short_upload = created.fields["Location"]
        self.send_short_half(0)
        return "an application begins an upload with a JSON Web Token of 60 seconds"

    def send_short_half(self, offset: int) -> Answer:
        half = self.short_body[offset:offset + MEBIBYTE // 2]
        sent = self.ask("PATCH", self.short_upload, body=half, fields={
            "Tus-Resumable": "1.0.0", "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"})
        expect(sent.status == 204, f"a PATCH at {offset} by the link in Location: {sent.code}")
        return sent

    def upload_with_curl(self) -> str:
        link = self.make_put_link()
        with self.link.cuts():
            stored = json.loads(run(
                "curl", "--silent", "--show-error", "--fail-with-body", "--cacert", self.authority,
                "--retry", "20", "--retry-all-errors", "--retry-delay", "1", "--request", "POST",
                "--header", "Content-Type: video/webm", "--upload-file", self.video.path, link["url"]))
        story = self.check_file("curl", stored["remoteFileId"])
        again = self.ask("POST", link["url"], body=b"more", fields={"Content-Type": "video/webm"})
        expect(again.code == (403, "LINK_EXPIRED"), f"a second use of a link: {again.code}")
        return story

    def upload_with_the_command(self) -> str:
        link = self.make_put_link()
        with self.link.cuts():
            identifier = self.kedge("upload", self.video.path, "--server", link["url"], "--quiet")
        return self.check_file("kedge upload", identifier)

    def browse(self, scenario: str, link: str) -> dict[str, Any]:
        """Runs a scenario of the page in a new Chromium that trusts the key of the service."""
        if self.pages is None:
            raise Unavailable("no page is served")
        public = run("openssl", "pkey", "-pubin", "-outform", "der",
                     data=run("openssl", "x509", "-in", self.authority, "-noout", "-pubkey"))
        pin = base64.b64encode(hashlib.sha256(public).digest()).decode()
        browser = Browser(self.pages, [f"--ignore-certificate-errors-spki-list={pin}"])
        return browser.run(scenario, link)

    def upload_from_a_page(self) -> str:
        if self.pages is None:
            raise Unavailable("no page is served")
        link = self.make_put_link(origins=[self.pages.origin])
        with self.link.cuts():
            upload = self.browse("upload", link["tusUrl"])["url"]
        head = self.ask("HEAD", upload, fields={"Tus-Resumable": "1.0.0"})
        return self.check_file("tus-js-client in Chromium", Path(head.fields["Content-Location"]).name)

    def play_in_a_page(self) -> str:
        if self.pages is None:
            raise Unavailable("no page is served")
        link = self.make_link(op="get", fileId=self.files["tus-js-client in Chromium"], disposition="inline",
                              origins=[self.pages.origin])
        played = self.browse("play", link["url"])
        expect(played["duration"] == VIDEO_SECONDS and played["width"] > 0, f"the video is {played}")
        expect(played["from"] >= VIDEO_SECONDS / 2 and played["to"] > played["from"], f"played {played}")
        return f"<video> plays it by a link from {played['from']:.1f} to {played['to']:.1f} s, after a seek"

    def race(self, count: int, request: Callable[[http.client.HTTPSConnection], Answer]) -> list[Answer]:
        """Sends requests over connections that are open before the first one."""
        share = count // CONNECTIONS
        barrier = threading.Barrier(CONNECTIONS, timeout=30)

        def send(_: int) -> list[Answer]:
            with contextlib.closing(self.connect()) as connection:
                connection.connect()
                barrier.wait()
                return [request(connection) for _ in range(share)]

        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            return [answer for answers in pool.map(send, range(CONNECTIONS)) for answer in answers]

    def race_for_places(self) -> str:
        body = json.dumps({"fileName": "a.bin", "fileSize": 1000, "mimeType": "video/webm"}).encode()

        def create(connection: http.client.HTTPSConnection) -> Answer:
            return self.ask("POST", "/uploads/sessions", self.tokens["crowd"], body, {
                "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}, connection)

        answers = self.race(CREATES, create)
        self.check_race(answers, PLACES, (429, "TOO_MANY_SESSIONS"))
        self.session = next(answer.json["sessionId"] for answer in answers if answer.status == 201)
        usage = self.ask("GET", "/me", self.tokens["crowd"]).json["usage"]
        expect(usage["openSessions"] == PLACES, f"after the race: {usage}")
        return f"{CREATES} creates race for {PLACES} places: exactly {PLACES} succeed"

    def hide_from_a_second_owner(self) -> str:
        bob = self.tokens["bob"]
        for path, member in (("/files", "files"), ("/uploads/sessions", "sessions")):
            answer = self.ask("GET", path, bob)
            expect(answer.status == 200 and answer.json[member] == [], f"bob sees {answer.json}")
        places = {f"/files/{self.files['curl']}": "shop", f"/uploads/sessions/{self.session}": "crowd"}
        for place, owner in places.items():
            unknown = f"{place.rpartition('/')[0]}/{uuid.uuid4().hex}"
            for method in ("GET", "DELETE"):
                codes = [self.ask(method, path, bob).code for path in (place, unknown)]
                expect(codes[0] == codes[1] and codes[0][0] == 404, f"{method} {place}: {codes}")
            left = self.ask("HEAD" if owner == "shop" else "GET", place, self.tokens[owner])
            expect(left.status == 200, f"after bob's DELETE of {place}: {left.status}")
        return "a second owner sees nothing, and foreign ids answer like unknown ones"

    def race_for_bytes(self) -> str:
        limit = SMALL_PLACES * SMALL_BYTES
        self.kedge("admin", "owners", "set-quota", "hoard", "--stored-bytes", str(limit), "--data", self.data)

        def upload(connection: http.client.HTTPSConnection) -> Answer:
            body = os.urandom(SMALL_BYTES)
            for _ in range(100):
                answer = self.ask("POST", "/files", self.tokens["hoard"], body, connection=connection)
                # Bodies that are written at once have a limit, too; beyond it, clients try again.
                if answer.code != BUSY:
                    break
                time.sleep(0.1)
            return answer

        answers = self.race(SMALL_FILES, upload)
        self.check_race(answers, SMALL_PLACES, (413, "QUOTA_EXCEEDED"))
        self.completed += SMALL_PLACES
        usage = self.ask("GET", "/me", self.tokens["hoard"]).json["usage"]
        expect((usage["storedBytes"], usage["reservedBytes"]) == (limit, 0), f"after the race: {usage}")
        return f"{SMALL_FILES} files race for {limit >> 20} MiB: exactly {SMALL_PLACES} are stored, to the byte"

    @staticmethod
    def check_race(answers: list[Answer], count: int, refusal: tuple[int, str]) -> None:
        taken = sum(answer.status == 201 for answer in answers)
        codes = {answer.code for answer in answers if answer.status != 201}
        expect(taken == count and codes == {refusal}, f"{taken} of {count} places are taken; refusals: {codes}")

    def finish_after_expiry(self) -> str:
        deadline = time.monotonic() + 15
        while (refused := self.ask("GET", "/me", self.short_token)).status == 200 and time.monotonic() < deadline:
            time.sleep(0.2)
        expect(refused.code == (401, "UNAUTHENTICATED"), f"an expired token: {refused.code}")
        self.send_short_half(MEBIBYTE // 2)
        head = self.ask("HEAD", self.short_upload, fields={"Tus-Resumable": "1.0.0"})
        path = urllib.parse.urlsplit(head.fields["Content-Location"]).path
        stored = self.ask("GET", path, self.provider.token("alice", 60))
        expect(stored.status == 200 and stored.body == self.short_body, f"the upload of the token: {stored.status}")
        self.completed += 1
        return "the upload finishes after its JSON Web Token has expired"

    def scrape(self) -> str:
        sums = {
            "kedge_sessions_completed_total": self.completed,
            'kedge_quota_refusals_total{kind="open_sessions"}': CREATES - PLACES,
            'kedge_quota_refusals_total{kind="stored_bytes"}': SMALL_FILES - SMALL_PLACES,
        }
        deadline = time.monotonic() + 10
        for job in ("listener", "service"):
            for name, expected in sums.items():
                metric, _, labels = name.rstrip("}").partition("{")
                query = f'sum({metric}{{job="{job}",{labels}}})'
                while (found := self.stored_value(query)) != expected and time.monotonic() < deadline:
                    time.sleep(0.2)
                expect(found == expected, f"Prometheus has {found} for {query}, not {expected}")
            received = self.stored_value(f'sum(kedge_upload_bytes_total{{job="{job}"}})')
            expect(received >= len(self.files) * self.video.byte_count, f"{job}: {received} bytes received")
            expect(self.stored_value(f'min_over_time(up{{job="{job}"}}[1m])') == 1, f"a scrape of {job} failed")
        interruptions = self.stored_value('kedge_upload_interruptions_total{job="service"}')
        expect(interruptions > 0, "Prometheus has no interruption")
        return f"Prometheus has these sums: {self.completed} uploads, {interruptions:.0f} interrupted bodies"

    @staticmethod
    def stored_value(query: str) -> float:
        """The value that Prometheus has; -1 for none."""
        address = f"{PROMETHEUS}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=5) as answer:
            result = json.load(answer)["data"]["result"]
        return float(result[0]["value"][1]) if result else -1

    def keep_secrets_out_of_logs(self) -> str:
        audit, log = (path.read_text(encoding="utf-8") for path in (self.audit, self.log))
        made = {line.get("linkId") for line in map(json.loads, audit.splitlines()) if line["action"] == "POST /links"}
        expect(made == set(self.linked), f"the audit log has the links {made}, not {self.linked}")
        for secret in ("kl1.", "eyJ", *self.tokens.values()):
            expect(secret not in audit and secret not in log, f"a log has {secret[:6]}…")
        return f"the audit log has all {len(made)} links that were made, and no log has a secret"


def tell(demo: Demo) -> int:
    """Runs all steps and prints a line for each; returns the exit status."""
    began = time.monotonic()
    try:
        for step in demo.steps():
            sentence = step()
            print(f"{time.monotonic() - began:5.1f} s  {sentence}", flush=True)
    except KeyboardInterrupt:
        return 130
    except (Violation, Unavailable, OSError, http.client.HTTPException) as error:
        print(f"demo-identity: {error}", file=sys.stderr)
        if demo.log.exists():
            print("".join(demo.log.read_text(encoding="utf-8").splitlines(True)[-20:]), file=sys.stderr)
        return 1
    return demo.status


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    # The cleanup of an interrupt, also for a plain end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for program in ("ip", "tc", "ss", "nsenter", "curl", "openssl"):
            find_program(program)
        enter_namespace()
    except Unavailable as error:
        return skipped("namespaces", error)
    scratch = Scratch("demo")
    try:
        demo = Demo(Path(sys.argv[1]).resolve(), scratch.path)
        try:
            return tell(demo)
        finally:
            demo.stop()
    finally:
        scratch.remove()


if __name__ == "__main__":
    sys.exit(main())

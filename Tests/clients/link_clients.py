"""Lets programs that exist upload and download by links, as they are, and kills them on the way.

    link_clients.py --binary PATH_TO_KEDGE [--mib 24] [--seed N] [--only NAME]

None of them knows links: where an address is expected, they get one with a link, and no other credential. An upload
that began with a JSON Web Token goes on by the link of its session after the token has expired. `python3` must have
the packages of requirements.txt here. All bytes that come back are compared with those that were sent.
"""

import argparse
import http.client
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet", "conformance", "identity")]

import curl
from browser import Browser, PageServer
from faulty_proxy import FaultyProxy
from forger import AUDIENCE, Issuer, make_keys
from link_downloads import LARGEST_LOSS, Command, check_resumed, curl_range, killed, moved
from link_downloads import aria2 as aria2_command
from link_downloads import curl as curl_command
from links import LinkedService
from metered_link import MeteredLink
from nodes import wait_for
from processes import Scratch, Unavailable, find_program, free_port
from service import MEBIBYTE, Source, Violation, download, expect
from tusclient.client import TusClient

# A token counts for a minute more than it says, because clocks may differ.
TOLERANCE_SECONDS = 60
UNBOUNDED = 1 << 60


class Trial:
    """The scenarios; each returns a sentence, or raises."""

    def __init__(self, service: LinkedService, issuer: Issuer, pages: PageServer, source: Source,
                 directory: Path, seed: int) -> None:
        self.service = service
        self.issuer = issuer
        self.pages = pages
        self.browser = Browser(pages)
        self.source = source
        self.directory = directory
        self.seed = seed
        self._file = ""

    def scenarios(self) -> dict[str, Callable[[], str]]:
        ways = {"LINK": self.as_argument, "@FILE": self.as_file, "-": self.as_input}
        uploads = {f"kedge upload --server {name}": lambda way=way: self.upload_with_kedge(way)
                   for name, way in ways.items()}
        downloads = {f"kedge download {name}": lambda way=way: self.download_with_kedge(way)
                     for name, way in ways.items()}
        return {
            "curl -T": self.upload_with_curl, "curl with IETF fields": self.resume_with_curl,
            "curl -r": self.range_with_curl, "curl -C": self.download_with_curl, "aria2": self.download_with_aria2,
            "page: tus-js-client": self.upload_from_page,
            "page: tus-js-client in parts": self.upload_from_page_in_parts,
            "page: in parts with a JWT": self.upload_from_page_with_token, "page: <video>": self.watch_film,
            **uploads, **downloads,
            "kedge upload outlives its JWT": self.outlive_token_natively,
            "tuspy outlives its JWT": self.outlive_token_by_tus,
        }

    def folder(self, name: str) -> Path:
        """A new directory."""
        path = self.directory / f"{name}-{random.randrange(1 << 48):x}"
        path.mkdir()
        return path

    def file_link(self) -> str:
        """A link to the file, which curl uploads once."""
        self._file = self._file or self._upload_with_curl()
        return self.service.get_link(self._file)

    def _upload_with_curl(self) -> str:
        put = self.service.make_link(op="put", maxFileSize=self.source.byte_count)["url"]
        run = subprocess.run(
            ["curl", "--silent", "--show-error", "--fail-with-body", "--request", "POST",
             "--upload-file", self.source.path, put], capture_output=True, text=True, timeout=120, check=False)
        expect(run.returncode == 0, f"curl ended with {run.returncode}: {run.stderr}{run.stdout}")
        return str(json.loads(run.stdout)["remoteFileId"])

    def upload_with_curl(self) -> str:
        self.service.check_file(self._upload_with_curl(), self.source)
        return "same bytes"

    def resume_with_curl(self) -> str:
        put = self.service.make_link(op="put", fileSize=self.source.byte_count)["url"]
        upload = curl.create(put, self.source)
        expect("?link=kl1." in upload, "Location has no link")
        kept = curl.kill_midway(upload, self.source)
        file = curl.resume(upload, kept, self.source, self.directory)
        self.service.check_file(file_id(file), self.source)
        return f"killed after {kept >> 20} MiB"

    def range_with_curl(self) -> str:
        curl_range(self.file_link(), self.source)
        return "same bytes"

    def download_with_curl(self) -> str:
        folder = self.folder("curl")
        with MeteredLink(self.service.node.port) as link:
            command = curl_command(moved(self.file_link(), link.url), "copy", folder)
            again = check_resumed(link, command, folder / "copy", self.source)
        return f"killed, received {again >> 20} MiB more"

    def download_with_aria2(self) -> str:
        folder = self.folder("aria2")
        find_program("aria2c")
        # Slow enough that its note of the progress is that of a moment before the kill.
        with MeteredLink(self.service.node.port, bytes_per_second=self.source.byte_count // 8) as link:
            command = aria2_command(moved(self.file_link(), link.url), "copy", folder)
            again = check_resumed(link, command, folder / "copy", self.source, folder / "copy.aria2")
            expect(link.most_connections >= 4, f"{link.most_connections} connections at a time")
        return f"{link.most_connections} connections, killed, received {again >> 20} MiB more"

    def over_bad_link(self, scenario: str, path: str, **more: str) -> tuple[dict[str, Any], int]:
        """Returns the page's report of an upload over a bad link, and the number of cut connections."""
        with FaultyProxy(self.service.node.port, self.seed) as proxy:
            answer = self.browser.run(scenario, proxy.url, endpoint=moved(path, proxy.url), **more)
        expect(proxy.cut_count > 0, "no connection was cut; the file is too small")
        return answer, proxy.cut_count

    def check_page_upload(self, url: str, token: str | None = None) -> None:
        """Downloads the upload of a page, whose address has a link."""
        expect("?link=kl1." in url, f"the upload's address has no link: {url.partition('?')[0]}")
        self.service.check_file(self.service.file_of(moved(url, self.service.url)), self.source, token)

    def page_link(self, **members: Any) -> str:
        """A link for tus-js-client, of which only the page's own origin may make use."""
        link = self.service.make_link(
            op="put", origins=[self.pages.origin], mimeTypes=["application/*"], **members)
        return link["tusUrl"]

    def upload_from_page(self) -> str:
        answer, cuts = self.over_bad_link("tus", self.page_link(fileSize=self.source.byte_count))
        self.check_page_upload(answer["url"])
        return f"{cuts} connections cut"

    def upload_from_page_in_parts(self) -> str:
        link = self.service.make_link(
            op="put", origins=[self.pages.origin], uses=4, maxFileSize=self.source.byte_count)
        answer, cuts = self.over_bad_link("tusInParts", link["tusUrl"])
        expect(answer["linkCount"] >= 3, f"Upload-Concat names {answer['linkCount']} links")
        self.check_page_upload(answer["url"])
        return f"{cuts} connections cut"

    def upload_from_page_with_token(self) -> str:
        token = self.issuer.token("p256", "ES256")
        answer, cuts = self.over_bad_link("tusInParts", f"{self.service.url}/tus/", token=token)
        expect(answer["linkCount"] >= 3, f"Upload-Concat names {answer['linkCount']} links")
        self.check_page_upload(answer["url"], token)
        return f"{cuts} connections cut"

    def watch_film(self) -> str:
        put = self.service.make_link(
            op="put", origins=[self.pages.origin], mimeTypes=["video/*"], fileExtensions=["webm"])["url"]
        film = self.browser.run("sendFilm", self.service.url, endpoint=put)
        get = self.service.get_link(film["file"], disposition="inline", origins=[self.pages.origin])
        expect(download(get).sha256 == film["sha256"], "the film came back with other bytes")
        shares = []
        for more in ({"crossorigin": "yes"}, {}):
            with MeteredLink(self.service.node.port, bytes_per_second=8 * MEBIBYTE) as link:
                self.browser.run("watch", self.service.url, film=moved(get, link.url), **more)
            shares.append(link.byte_count / film["byteCount"])
        # It came to the end of the film without what is before.
        expect(max(shares) < 0.8, f"the player read {max(shares):.0%} of the film")
        return f"seeks in {film['byteCount'] >> 20} MiB, reads {max(shares):.0%} of it"

    def as_argument(self, link: str, _: Path) -> tuple[str, str]:
        return link, ""

    def as_file(self, link: str, folder: Path) -> tuple[str, str]:
        (folder / "link.txt").write_text(f"{link}\n", encoding="utf-8")
        return f"@{folder / 'link.txt'}", ""

    def as_input(self, link: str, _: Path) -> tuple[str, str]:
        return "-", f"{link}\n"

    def kedge_upload(self, server: str, folder: Path, rate: int, text: str = "",
                     token: str | None = None) -> Command:
        return Command(
            [self.service.binary, "upload", self.source.path, "--quiet", "--server", server, "--chunk-size", "1M",
             "--bwlimit", f"{rate}", "--state-directory", folder / "state"], folder, text,
            {"KEDGE_TOKEN": token} if token else {})

    def upload_with_kedge(self, way: Callable[[str, Path], tuple[str, str]]) -> str:
        """One use: the second run goes on with the upload of the first."""
        folder = self.folder("upload")
        put = self.service.make_link(op="put", fileSize=self.source.byte_count, fileName="source.bin")["url"]
        with FaultyProxy(self.service.node.port, self.seed, UNBOUNDED, UNBOUNDED) as proxy:
            server, text = way(moved(put, proxy.url), folder)
            command = self.kedge_upload(server, folder, self.source.byte_count // 3, text)
            with killed(command.start()) as process:
                expect(wait_for(lambda: proxy.byte_count > self.source.byte_count // 2, 60),
                       f"nothing is sent: {command.log.read_text()}")
                command.kill(process)
            output = command.finish()
        sent = proxy.byte_count
        expect(sent < self.source.byte_count * (1 + LARGEST_LOSS), f"{sent} bytes were sent in all")
        expect("kl1." not in output + command.log.read_text(encoding="utf-8"), "the link is printed")
        self.service.check_file(output.strip(), self.source)
        return f"killed, {sent - self.source.byte_count} bytes besides the file"

    def download_with_kedge(self, way: Callable[[str, Path], tuple[str, str]]) -> str:
        folder = self.folder("download")
        # Slow enough that the client has noted most of what came before the kill.
        with MeteredLink(self.service.node.port, bytes_per_second=self.source.byte_count // 8) as link:
            name, text = way(moved(self.file_link(), link.url), folder)
            command = Command(
                [self.service.binary, "download", name, "--quiet", "--output", folder / "copy",
                 "--state-directory", folder / "state"], folder, text)
            again = check_resumed(link, command, folder / "copy", self.source)
        expect("kl1." not in command.log.read_text(encoding="utf-8"), "the link is printed")
        return f"killed, received {again >> 20} MiB more"

    def brief_token(self) -> str:
        """A token of sixty seconds that expires in some more."""
        now = int(time.time())
        begin = now - 60 - TOLERANCE_SECONDS + 5
        return self.issuer.token("p256", "ES256", self.issuer.claims(iat=begin, exp=begin + 60))

    def is_refused(self, token: str) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.service.node.port, timeout=60)
        connection.request("GET", "/files", headers={"Authorization": f"Bearer {token}"})
        status = connection.getresponse().status
        connection.close()
        expect(status in (200, 401), f"a token is answered {status}")
        return status == 401

    def outlive_token_natively(self) -> str:
        folder = self.folder("brief")
        token = self.brief_token()
        with FaultyProxy(self.service.node.port, self.seed, UNBOUNDED, UNBOUNDED) as proxy:
            command = self.kedge_upload(proxy.url, folder, self.source.byte_count // 20, token=token)
            with killed(command.start()) as process:
                expect(wait_for(lambda: self.is_refused(token), 30), "the token does not expire")
                expired = proxy.byte_count
                expect(expired > 0, f"nothing is sent: {command.log.read_text()}")
                expect(wait_for(lambda: proxy.byte_count > expired + 3 * MEBIBYTE, 60), "it stops with its token")
                command.kill(process)
            output = command.finish()
        sent = proxy.byte_count
        expect(sent < self.source.byte_count * (1 + LARGEST_LOSS), f"{sent} bytes were sent in all")
        self.service.check_file(output.strip(), self.source, self.issuer.token("p256", "ES256"))
        return f"expired after {expired >> 20} MiB, killed, resumed"

    def outlive_token_by_tus(self) -> str:
        token = self.brief_token()
        client = TusClient(f"{self.service.url}/tus/", headers={"Authorization": f"Bearer {token}"})
        begun = client.uploader(str(self.source.path), chunk_size=4 * MEBIBYTE, metadata={"filename": "source.bin"})
        begun.upload_chunk()
        expect(wait_for(lambda: self.is_refused(token), 30), "the token does not expire")
        begun.upload_chunk()
        # Another process knows only the address; its headers still have the token.
        resumed = client.uploader(str(self.source.path), chunk_size=4 * MEBIBYTE, url=begun.url)
        expect(resumed.offset == 8 * MEBIBYTE, f"it goes on at {resumed.offset}")
        resumed.upload()
        self.service.check_file(
            self.service.file_of(str(begun.url)), self.source, self.issuer.token("p256", "ES256"))
        return "expired after 4 MiB"


def file_id(address: str) -> str:
    """The id at the end of the address of a file."""
    return address.partition("?")[0].rpartition("/")[2]


def run(trial: Trial, only: str | None) -> int:
    failed = 0
    for name, scenario in trial.scenarios().items():
        if only is not None and only not in name:
            continue
        started = time.monotonic()
        try:
            outcome = scenario()
        except Violation as violation:
            failed += 1
            outcome = f"FAILED: {violation}"
        except Exception as error:  # noqa: BLE001  foreign clients raise what they like
            failed += 1
            outcome = f"FAILED: {type(error).__name__}: {error}"
        print(f"{name + ':':<30} {outcome} ({time.monotonic() - started:.1f} s)", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=24, help="size of the file, in MiB")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only", help="only scenarios whose name has this in it")
    options = parser.parse_args()
    print(f"clients with links, {options.mib} MiB, seed {options.seed}", flush=True)
    scratch = Scratch("links")
    source = Source(scratch.path / "source.bin", options.seed, options.mib)
    issuer = Issuer(free_port())
    issuer.keys = make_keys()
    issuer.start()
    try:
        pages = PageServer(source)
        service = LinkedService(options.binary.resolve(), scratch.path, [
            "--oidc-issuers", issuer.url, "--oidc-audience", AUDIENCE, "--cors-allowed-origins", pages.origin])
        try:
            service.start()
            failed = run(Trial(service, issuer, pages, source, scratch.path, options.seed), options.only)
            log = service.node.log.read_text(encoding="utf-8", errors="replace")
            if "kl1." in log or "eyJ" in log:
                failed += 1
                print("the log of the service has a link or token", file=sys.stderr)
            # A server that cannot drain fails the test as well.
            service.stop()
        finally:
            service.kill()
            pages.stop()
    except (Unavailable, Violation) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        issuer.stop()
        scratch.remove()
    if failed:
        print(f"{failed} failed; repeat with seed {options.seed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

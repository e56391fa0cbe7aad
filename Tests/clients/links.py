"""Clients that others wrote, with a link instead of the endpoint's address and no other credential."""

import json
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from service import Service, Source, download, expect
from uploaders import UPLOADERS

# Those that use the address as it is, with its query. aiotus names parts by their paths alone, without their links.
NAMES = ("tuspy", "aiotus")


class LinkedService(Service):
    """A service with tokens. Only the test has one, to make links."""

    def __init__(self, binary: Path, directory: Path, options: Sequence[str] = ()) -> None:
        super().__init__(binary, directory, ["--identity-mode", "tokens", *options])
        self.token = ""

    def start(self) -> None:
        made = subprocess.run(
            [self.binary, "token", "create", "tests", "--owner", "tests", "--scopes", "user",
             "--data", self.data], capture_output=True, text=True, timeout=60, check=False)
        expect(made.returncode == 0, f"kedge token create ended with {made.returncode}: {made.stderr}")
        self.token = made.stdout.strip()
        super().start()

    def make_link(self, token: str | None = None, **members: Any) -> dict[str, str]:
        """Makes a link with the token of the test, or another one; returns the answer of the service."""
        request = urllib.request.Request(
            f"{self.url}/links", json.dumps(members | {"expiresInSeconds": 3600}).encode(),
            {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))

    def file_of(self, upload: str) -> str:
        """The id of the file that an upload has become, by the upload's own link."""
        request = urllib.request.Request(
            upload, headers={"Tus-Resumable": "1.0.0"}, method="HEAD")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.headers["Content-Location"]).removeprefix("/files/")

    def get_link(self, file: str, token: str | None = None, **members: Any) -> str:
        """The address that gives a file to everyone who has it."""
        return self.make_link(token, op="get", fileId=file, **members)["url"]

    def check_file(self, file: str, source: Source, token: str | None = None) -> None:
        """Downloads a file by link and compares it with its source."""
        found = download(self.get_link(file, token))
        expect(found.byte_count == source.byte_count,
               f"{found.byte_count} bytes came back of {source.byte_count}")
        expect(found.sha256 == source.sha256, "the bytes that came back are not those that were sent")


def check_links(service: LinkedService, name: str, proxy: str, source: Source) -> None:
    """Uploads and downloads the source by links through the proxy."""
    put = service.make_link(op="put", uses=100, maxFileSize=source.byte_count)
    upload = UPLOADERS[name](proxy + put["tusUrl"].removeprefix(service.url), source.path)
    expect("?link=kl1." in upload, f"the upload's address has no link: {upload.partition('?')[0]}")
    service.check_file(service.file_of(upload), source)

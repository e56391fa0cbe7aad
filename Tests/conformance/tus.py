"""A server of tus 1.0.0 as the checks see it: requests that are right unless a check wants them wrong."""

import base64
import hashlib
import time
import zlib
from collections.abc import Callable
from functools import cached_property

from checks import Check, Failed, Skipped, describe, expect, expect_number, expect_status
from wire import Answer, Connection, Settings, ask, fetch, resolve

VERSION = "1.0.0"
MEDIA_TYPE = "application/offset+octet-stream"
GONE = (403, 404, 410)
# Large enough that a server sees it in several pieces, small enough to be quick.
LONG = 1 << 20
PROBE = b"Are there downloads? " * 53


def crc32c(data: bytes) -> bytes:
    """The Castagnoli checksum, most significant byte first; slow, and only for small bodies."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return (value ^ 0xFFFFFFFF).to_bytes(4, "big")


ALGORITHMS: dict[str, Callable[[bytes], bytes]] = {
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
    "sha512": lambda data: hashlib.sha512(data).digest(),
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).digest(),
    # The specification does not say how these two numbers become bytes; this is the usual way.
    "crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "crc32c": crc32c,
}


def checksum(algorithm: str, data: bytes) -> str:
    return f"{algorithm} {base64.b64encode(ALGORITHMS[algorithm](data)).decode()}"


def metadata(pairs: dict[str, bytes | None]) -> str:
    """The text of Upload-Metadata; a key without a value has none at all."""
    return ",".join(
        name if value is None else f"{name} {base64.b64encode(value).decode()}"
        for name, value in pairs.items())


def parse_metadata(text: str) -> dict[str, bytes]:
    pairs = (pair.strip().partition(" ") for pair in text.split(","))
    return {name: base64.b64decode(value) for name, _, value in pairs}


NAMED = metadata({"filename": b"conformance.bin", "filetype": b"application/octet-stream"})


def words(text: str | None) -> list[str]:
    """The members of a comma-separated list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


class TusServer:
    """The server under test."""

    def __init__(self, url: str, settings: Settings, event_timeout: float = 0.0, origin: str | None = None) -> None:
        self.url = url
        self.settings = settings
        # Seconds that a check may wait for an upload to expire.
        self.event_timeout = event_timeout
        # Origin of a page for the checks of CORS.
        self.origin = origin
        self.offer = self.ask("OPTIONS", Tus_Resumable=None)
        self.extensions = words(self.offer.get("Tus-Extension"))
        self.algorithms = words(self.offer.get("Tus-Checksum-Algorithm"))

    def excuse(self, item: Check) -> str | None:
        """Why a check does not apply, or nothing when it does."""
        missing = [name for name in item.needs if name not in self.extensions]
        if missing:
            return f"not advertised: {', '.join(missing)}"
        if item.without in self.extensions:
            return f"advertised: {item.without}"
        return None

    # Requests

    def fields(self, fields: dict[str, str | None]) -> dict[str, str]:
        """Fields with the protocol's version. `None` leaves a field out; `_` stands for `-`."""
        merged = {"Tus-Resumable": VERSION}
        merged |= {name.replace("_", "-"): value for name, value in fields.items()}
        return {name: str(value) for name, value in merged.items() if value is not None}

    def ask(self, method: str, url: str | None = None, body: bytes | None = None,
            trailers: dict[str, str] | None = None, chunked: bool = False,
            **fields: str | None) -> Answer:
        return ask(url or self.url, method, self.fields(fields), self.settings, body,
                   trailers, chunked)

    def post(self, body: bytes = b"", **fields: str | None) -> Answer:
        """A creation. Some servers cannot do without a name: whether metadata may be left out is a check of
        its own, and is not held against a server anywhere else."""
        return self.ask("POST", body=body, **{"Upload_Metadata": NAMED, **fields})

    def head(self, url: str, **fields: str | None) -> Answer:
        return self.ask("HEAD", url, **fields)

    def get(self, url: str, **fields: str | None) -> Answer:
        return fetch(url, self.fields(fields), self.settings)

    def patch(self, url: str, offset: int | None, body: bytes = b"", **fields: str | None) -> Answer:
        fields = {"Content_Type": MEDIA_TYPE, **fields}
        if offset is not None:
            fields.setdefault("Upload_Offset", str(offset))
        return self.ask("PATCH", url, body, **fields)

    # Uploads that most checks begin with

    def location(self, answer: Answer) -> str:
        expect_status(answer, 201, "creation")
        expect(answer.get("Location") is not None, "creation: no Location")
        return resolve(self.url, answer.get("Location"))

    def create(self, length: int, **fields: str | None) -> str:
        """A new upload's address."""
        if "creation" not in self.extensions:
            raise Skipped("the server offers no creation")
        return self.location(self.post(Upload_Length=str(length), **fields))

    def create_deferred(self) -> str:
        return self.location(self.post(Upload_Defer_Length="1"))

    def filled(self, data: bytes, **fields: str | None) -> str:
        """A complete upload's address."""
        url = self.create(len(data), **fields)
        if data:
            expect_status(self.patch(url, 0, data), 204, "PATCH of all bytes")
        return url

    def offset(self, url: str) -> int:
        answer = self.head(url)
        expect_status(answer, (200, 204), "HEAD")
        text = answer.get("Upload-Offset")
        expect(text is not None and text.isdigit(), f"HEAD: Upload-Offset is {text!r}")
        return int(text)

    def expect_offset(self, url: str, offset: int, after: str) -> None:
        found = self.offset(url)
        expect(found == offset, f"HEAD {after}: Upload-Offset is {found}, expected {offset}")

    def cut(self, url: str, body: bytes, count: int, **fields: str | None) -> None:
        """A PATCH of the whole body whose connection dies after `count` bytes."""
        all_fields = self.fields({
            "Content_Type": MEDIA_TYPE, "Upload_Offset": "0", **fields})
        with Connection(url, self.settings) as connection:
            connection.send_head("PATCH", {**all_fields, "Content-Length": str(len(body))})
            connection.send_body(body[:count])
            connection.settle()
        # The server needs a moment, too, to see the end.
        time.sleep(0.2)

    def finish(self, url: str, data: bytes) -> None:
        """Sends what is missing, from the announced offset, until the upload is complete."""
        deadline = time.monotonic() + self.settings.timeout
        while True:
            offset = self.offset(url)
            if offset == len(data):
                return
            answer = self.patch(url, offset, data[offset:])
            if answer.status == 204:
                expect_number(answer, "Upload-Offset", len(data), "PATCH of the rest")
                return
            if time.monotonic() > deadline:
                raise Failed(f"the announced offset {offset} is not taken: {describe(answer)}")
            # A server may still be busy with the end of the broken request.
            time.sleep(0.5)

    @cached_property
    def has_downloads(self) -> bool:
        """Whether GET gives an upload's bytes. tus leaves it open what GET is for, if for anything."""
        answer = self.get(self.filled(PROBE))
        # As many bytes that are others are a fault of downloads; any other number is another thing.
        return answer.status == 200 and len(answer.body) == len(PROBE)

    def expect_bytes(self, url: str, data: bytes) -> None:
        """Compares what was stored, if the server has downloads."""
        if not self.has_downloads:
            return
        answer = self.get(url)
        expect_status(answer, 200, "GET of a complete upload")
        expect(answer.body == data, f"GET: {len(answer.body)} bytes that are not those sent")

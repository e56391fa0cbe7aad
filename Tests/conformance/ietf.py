"""A server of the IETF draft "Resumable Uploads for HTTP" as the checks see it, in each of its dialects.

The draft changes names and rules between interop versions. `Dialect` holds the differences; a check says with
`first` and `last` which versions have its requirement. Sections are those of the newest draft with numbered
text at hand (-11); older ones have the same subjects under other numbers.
"""

import json
import time
from dataclasses import dataclass
from functools import cached_property

from checks import Check, Inapplicable, expect, expect_field, expect_status, expect_success
from wire import Answer, Connection, Settings, WireError, ask, fetch, resolve

# "final" is the form without Upload-Draft-Interop-Version, which the RFC will have.
VERSIONS = ("3", "4", "5", "6", "7", "8", "9", "final")
FINAL = 10
DRAFTS = {3: "-01", 4: "-02", 5: "-03", 6: "-04, -05", 7: "-06 to -08", 8: "-09 to -11", 9: "-12"}
LONG = 1 << 20
PROBE = b"Are there downloads? " * 53


@dataclass(frozen=True)
class Dialect:
    """One interop version, or the final form."""

    number: int

    @classmethod
    def of(cls, text: str) -> "Dialect":
        return cls(FINAL if text == "final" else int(text))

    @property
    def title(self) -> str:
        if self.number == FINAL:
            return "IETF resumable upload, without a version"
        return f"IETF resumable upload, interop {self.number} (draft {DRAFTS[self.number]})"

    @property
    def version(self) -> str | None:
        return None if self.number == FINAL else str(self.number)

    @property
    def completeness(self) -> str:
        return "Upload-Incomplete" if self.number == 3 else "Upload-Complete"

    @property
    def media_type(self) -> str | None:
        """Before version 6 an append had no media type of its own."""
        return "application/partial-upload" if self.number >= 6 else None

    def completes(self, complete: bool) -> str:
        """The value of `completeness`."""
        return "?1" if complete != (self.number == 3) else "?0"

    def has(self, item: Check) -> bool:
        return item.first <= self.number <= item.last


class IetfServer:
    """The server under test, asked in one dialect."""

    def __init__(self, url: str, dialect: Dialect, settings: Settings, event_timeout: float = 0.0) -> None:
        self.url = url
        self.dialect = dialect
        self.settings = settings
        # Seconds that a check may wait for a server to report progress.
        self.event_timeout = event_timeout

    def at_least(self, number: int) -> bool:
        return self.dialect.number >= number

    # Requests

    def fields(self, complete: bool | None = None, offset: int | str | None = None,
               length: int | None = None, more: dict[str, str | None] | None = None) -> dict[str, str]:
        """The dialect's fields. `more` adds others, or takes away with `None`; `_` stands for `-`."""
        fields: dict[str, str | None] = {"Upload-Draft-Interop-Version": self.dialect.version}
        if complete is not None:
            fields[self.dialect.completeness] = self.dialect.completes(complete)
        if offset is not None:
            fields["Upload-Offset"] = str(offset)
        if length is not None:
            fields["Upload-Length"] = str(length)
        fields |= {name.replace("_", "-"): value for name, value in (more or {}).items()}
        return {name: str(value) for name, value in fields.items() if value is not None}

    def post(self, body: bytes, complete: bool | None, length: int | None = None,
             chunked: bool = False, **more: str | None) -> Answer:
        more = {"Content_Type": "application/octet-stream", **more}
        fields = self.fields(complete, length=length, more=more)
        return ask(self.url, "POST", fields, self.settings, body, chunked=chunked)

    def patch(self, url: str, offset: int | str | None, body: bytes, complete: bool | None,
              length: int | None = None, chunked: bool = False, **more: str | None) -> Answer:
        more = {"Content_Type": self.dialect.media_type, **more}
        fields = self.fields(complete, offset, length, more)
        return ask(url, "PATCH", fields, self.settings, body, chunked=chunked)

    def head(self, url: str) -> Answer:
        return ask(url, "HEAD", self.fields(), self.settings)

    def delete(self, url: str) -> Answer:
        return ask(url, "DELETE", self.fields(), self.settings)

    def options(self) -> Answer:
        return ask(self.url, "OPTIONS", self.fields(), self.settings)

    # Uploads that most checks begin with

    def create(self, length: int | None = None, body: bytes = b"") -> str:
        """The address of a new upload that is not complete."""
        answer = self.post(body, False, length)
        expect_success(answer, "creation")
        expect(answer.get("Location") is not None, "creation: no Location")
        return resolve(self.url, answer.get("Location"))

    def state(self, url: str) -> tuple[int, bool]:
        """The announced offset, and whether the upload is complete."""
        answer = self.head(url)
        expect_success(answer, "HEAD")
        text = answer.get("Upload-Offset")
        expect(text is not None and text.isdigit(), f"HEAD: Upload-Offset is {text!r}")
        return int(text), self.is_complete(answer, "HEAD")

    def is_complete(self, answer: Answer, doing: str) -> bool:
        text = answer.get(self.dialect.completeness)
        expect(text in ("?0", "?1"), f"{doing}: {self.dialect.completeness} is {text!r}")
        return text == self.dialect.completes(True)

    def expect_completeness(self, answer: Answer, complete: bool, doing: str) -> None:
        expect_field(answer, self.dialect.completeness, self.dialect.completes(complete), doing)

    def expect_state(self, url: str, offset: int, complete: bool, after: str) -> None:
        found = self.state(url)
        expect(found == (offset, complete),
               f"HEAD {after}: offset {found[0]}, complete {found[1]}; expected {offset}, {complete}")

    def expect_open(self, url: str, offset: int, after: str) -> None:
        self.expect_state(url, offset, False, after)

    def interim(self, answer: Answer) -> list[Answer]:
        return answer.interim_with(104)

    def announced(self, answers: list[Answer]) -> str | None:
        """The upload's address from the first interim answer that has one."""
        location = next((a.get("Location") for a in answers if "Location" in a), None)
        return None if location is None else resolve(self.url, location)

    def cut(self, url: str, body: bytes, count: int, offset: int = 0) -> None:
        """A completing append whose connection dies after `count` bytes."""
        fields = self.fields(True, offset, more={"Content_Type": self.dialect.media_type})
        with Connection(url, self.settings) as connection:
            connection.send_head("PATCH", {**fields, "Content-Length": str(len(body))})
            connection.send_body(body[:count])
            connection.settle()
        # The server needs a moment, too, to see the end.
        time.sleep(0.2)

    def finish(self, url: str, data: bytes) -> Answer:
        """Sends what is missing, from the announced offset, and completes the upload."""
        for _ in range(3):
            offset, complete = self.state(url)
            expect(not complete, "the upload counts as complete although its end never came")
            answer = self.patch(url, offset, data[offset:], True)
            if answer.status != 409:
                expect_success(answer, "append of the rest")
                return answer
            # A server may still be busy with the end of the broken request.
            time.sleep(0.5)
        raise WireError(f"the announced offset {offset} is not taken")

    def result(self, answer: Answer) -> Answer | None:
        """Fetches the resource that the completing answer points to."""
        location = answer.get("Content-Location") or answer.get("Location")
        return None if location is None else fetch(resolve(self.url, location), self.fields(), self.settings)

    @cached_property
    def has_downloads(self) -> bool:
        """Whether completing answers point to the bytes. What a target makes of an upload is its own affair."""
        found = self.result(self.post(PROBE, True))
        # As many bytes that are others are a fault of downloads; any other number is another thing.
        return found is not None and found.status == 200 and len(found.body) == len(PROBE)

    def expect_bytes(self, answer: Answer, data: bytes) -> None:
        """Compares what was stored, if the server has downloads."""
        if not self.has_downloads:
            return
        found = self.result(answer)
        expect(found is not None, "the completing answer has no Location, though one to a whole upload has")
        expect_status(found, 200, "GET of a complete upload")
        expect(found.body == data, f"GET: {len(found.body)} bytes that are not those sent")


def limits(answer: Answer, doing: str) -> dict[str, int]:
    """The members of Upload-Limit, which must be a dictionary of integers."""
    text = answer.get("Upload-Limit")
    expect(text is not None, f"{doing}: no Upload-Limit")
    members = {}
    for member in text.split(","):
        key, _, value = member.strip().partition("=")
        expect(key.replace("-", "").isalpha() and key == key.lower() and value.isdigit(),
               f"{doing}: Upload-Limit is {text!r}")
        members[key] = int(value)
    return members


def problem(answer: Answer) -> dict:
    """The problem document of an answer, which a server may leave out."""
    if not (answer.get("Content-Type") or "").startswith("application/problem+json"):
        raise Inapplicable("the answer has no problem document")
    document = json.loads(answer.body)
    expect(isinstance(document, dict), f"the problem document is {document!r}")
    return document


def speaks(url: str, settings: Settings) -> bool:
    """Whether a server creates an upload resource here when it is asked to in any dialect."""
    for version in reversed(VERSIONS):
        server = IetfServer(url, Dialect.of(version), settings)
        answer = server.post(b"", False)
        if 200 <= answer.status < 300 and "Location" in answer:
            found = server.head(resolve(url, answer.get("Location")))
            if "Upload-Offset" in found and server.dialect.completeness in found:
                return True
    return False

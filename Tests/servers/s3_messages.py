"""Messages between the parts of the stand-in for S3: requests, answers, errors."""

import dataclasses
import hashlib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape

PIECE_BYTE_COUNT = 1 << 20
COPY_SOURCE = "x-amz-copy-source"


class S3Error(Exception):
    """A refusal, as S3 words it."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message or code


class Dropped(Exception):
    """The connection ends without an answer."""


@dataclasses.dataclass
class Segment:
    """A stretch of a stored object; objects of many parts are never copied together."""

    path: Path
    byte_count: int


@dataclasses.dataclass
class Answer:
    """Goes out as it is. `segments` follow the body, from `first` on, `byte_count` bytes."""

    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""
    segments: list[Segment] = dataclasses.field(default_factory=list)
    first: int = 0
    byte_count: int = 0
    files: list[BinaryIO] = dataclasses.field(default_factory=list)
    """The segments opened, so that they can be sent although the object is deleted meanwhile."""

    def open_segments(self) -> None:
        """Opens the files of the bytes; the caller holds the lock, so that no request deletes them."""
        self.files = [open(segment.path, "rb") for segment in self.segments]

    def stretches(self) -> Iterator[tuple[BinaryIO, int, int]]:
        """Yields the ranges to send: file, offset and count."""
        skip, left = self.first, self.byte_count
        for segment, file in zip(self.segments, self.files, strict=True):
            count = min(segment.byte_count - skip, left)
            if count > 0:
                yield file, skip, count
                left -= count
            skip = max(0, skip - segment.byte_count)

    def close(self) -> None:
        """Lets the segments go."""
        for file in self.files:
            file.close()


class Body:
    """A request's body, taken at most once. Nothing of it is ever in memory as a whole, unless asked for."""

    def __init__(self, source: BinaryIO, byte_count: int) -> None:
        self._source = source
        self.byte_count = byte_count
        self._left = byte_count
        self.sha256 = hashlib.sha256()
        self.md5 = hashlib.md5(usedforsecurity=False)
        self.wants_md5 = False
        self.is_held = False
        """The sender waits to be asked for it."""

    def pieces(self) -> Iterator[bytes]:
        """The rest of the body; raises `Dropped` when the sender leaves before its end."""
        while self._left > 0:
            piece = self._source.read(min(self._left, PIECE_BYTE_COUNT))
            if not piece:
                raise Dropped
            self._left -= len(piece)
            self.sha256.update(piece)
            if self.wants_md5:
                self.md5.update(piece)
            yield piece

    def drain(self) -> None:
        """Takes what is left, so that an answer is not lost in a reset."""
        if not self.is_held:
            for _ in self.pieces():
                pass

    def text(self) -> bytes:
        """A small body as a whole."""
        if self.byte_count > 4 << 20:
            raise S3Error(400, "MaxMessageLengthExceeded")
        return b"".join(self.pieces())


@dataclasses.dataclass
class Request:
    """A request, taken apart. Header names are in lower case."""

    method: str
    raw_path: str
    raw_query: str
    headers: dict[str, str]
    body: Body
    bucket: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        pairs = urllib.parse.parse_qsl(
            self.raw_query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=False)
        self.query = dict(pairs)
        self.query_pairs = pairs

    def find_place(self, buckets: set[str]) -> None:
        """Bucket and key, named by the path or by the first label of the host."""
        path = urllib.parse.unquote(self.raw_path)
        label = self.headers.get("host", "").split(":")[0].split(".")[0]
        if label in buckets:
            self.bucket, self.key = label, path[1:]
        else:
            self.bucket, _, self.key = path[1:].partition("/")

    @property
    def operation(self) -> str:
        """The name that S3's documentation has for it."""
        table = KEY_OPERATIONS if self.key else BUCKET_OPERATIONS if self.bucket else SERVICE_OPERATIONS
        for method, parameter, name in table:
            if method == self.method and (not parameter or parameter in self.query):
                is_copy = name == "UploadPart" and COPY_SOURCE in self.headers
                return "UploadPartCopy" if is_copy else name
        raise S3Error(405, "MethodNotAllowed")


SERVICE_OPERATIONS = [("GET", "", "ListBuckets")]
BUCKET_OPERATIONS = [
    ("GET", "uploads", "ListMultipartUploads"),
    ("GET", "location", "GetBucketLocation"),
    ("GET", "list-type", "ListObjectsV2"),
    ("PUT", "", "CreateBucket"),
    ("HEAD", "", "HeadBucket"),
    ("POST", "delete", "DeleteObjects"),
]
KEY_OPERATIONS = [
    ("PUT", "uploadId", "UploadPart"),
    ("POST", "uploads", "CreateMultipartUpload"),
    ("POST", "uploadId", "CompleteMultipartUpload"),
    ("GET", "uploadId", "ListParts"),
    ("DELETE", "uploadId", "AbortMultipartUpload"),
    ("PUT", "", "PutObject"),
    ("GET", "", "GetObject"),
    ("HEAD", "", "HeadObject"),
    ("DELETE", "", "DeleteObject"),
]


def element(name: str, *content: str | int | None) -> str:
    """An XML element around text or elements; nothing at all around None."""
    if content == (None,):
        return ""
    return f"<{name}>{''.join(map(str, content))}</{name}>"


def text(value: str) -> str:
    """Text inside an element."""
    return escape(value)


def document(name: str, *content: str) -> bytes:
    """A whole XML document."""
    namespace = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}<{name} {namespace}>{''.join(content)}</{name}>".encode()


def error_answer(error: S3Error, resource: str) -> Answer:
    """A refusal as it goes out. Its document has no namespace."""
    content = "".join((
        element("Code", text(error.code)), element("Message", text(error.message)),
        element("Resource", text(resource)), element("RequestId", "0123456789ABCDEF"),
    ))
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{content}</Error>'.encode()
    return Answer(error.status, {"Content-Type": "application/xml"}, body)

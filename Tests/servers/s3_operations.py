"""Operations of the stand-in for S3."""

import base64
import email.utils
import hashlib
import re
import urllib.parse
import xml.etree.ElementTree
from collections.abc import Callable

from s3_lists import list_objects, list_parts, list_uploads, xml_answer
from s3_messages import COPY_SOURCE, Answer, Request, S3Error, Segment, element, text
from s3_signature import UNSIGNED
from s3_storage import NamedPart, Storage, Stored, Upload

CHECKSUM = "x-amz-checksum-sha256"
KEPT_HEADERS = ("content-type", "content-disposition", "content-encoding", "cache-control")


class Operations:
    """Does what a request asks for that was found to be properly signed."""

    def __init__(self, storage: Storage, page_size: int) -> None:
        self._storage = storage
        self._page_size = page_size
        self._table: dict[str, Callable[[Request, str], Answer]] = {
            "ListBuckets": self._list_buckets,
            "CreateBucket": self._create_bucket,
            "HeadBucket": self._head_bucket,
            "GetBucketLocation": self._get_bucket_location,
            "ListObjectsV2": lambda request, _: list_objects(storage, request, page_size),
            "ListMultipartUploads": lambda request, _: list_uploads(storage, request, page_size),
            "ListParts": lambda request, _: list_parts(storage, request, page_size),
            "DeleteObjects": self._delete_objects,
            "CreateMultipartUpload": self._create_upload,
            "UploadPart": self._upload_part,
            "UploadPartCopy": self._copy_part,
            "CompleteMultipartUpload": self._complete_upload,
            "AbortMultipartUpload": self._abort_upload,
            "PutObject": self._put_object,
            "GetObject": self._get_object,
            "HeadObject": self._get_object,
            "DeleteObject": self._delete_object,
        }

    def perform(self, request: Request, payload: str) -> Answer:
        """Does it. `payload` is what the body's SHA-256 must be, or `UNSIGNED`."""
        if COPY_SOURCE in request.headers and request.operation != "UploadPartCopy":
            raise S3Error(501, "NotImplemented", "copies of objects")
        return self._table[request.operation](request, payload)

    # Buckets

    def _list_buckets(self, _request: Request, _payload: str) -> Answer:
        with self._storage.lock:
            names = sorted(self._storage.buckets)
        return xml_answer(
            "ListAllMyBucketsResult",
            element("Buckets", *(element("Bucket", element("Name", name)) for name in names)))

    def _create_bucket(self, request: Request, _payload: str) -> Answer:
        if not re.fullmatch("[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", request.bucket):
            raise S3Error(400, "InvalidBucketName")
        with self._storage.lock:
            self._storage.buckets.setdefault(request.bucket, {})
        return Answer()

    def _head_bucket(self, request: Request, _payload: str) -> Answer:
        self._storage.objects(request.bucket)
        return Answer()

    def _get_bucket_location(self, request: Request, _payload: str) -> Answer:
        self._storage.objects(request.bucket)
        return xml_answer("LocationConstraint")

    def _delete_objects(self, request: Request, payload: str) -> Answer:
        if CHECKSUM not in request.headers and "content-md5" not in request.headers:
            raise S3Error(400, "InvalidRequest", "a checksum is needed")
        entries = parse_xml(take_text(request, payload), "Delete")
        deleted = [find_text(entry, "Key") for entry in entries if local_name(entry) == "Object"]
        for key in deleted:
            self._storage.delete(request.bucket, key)
        return xml_answer(
            "DeleteResult",
            *(element("Deleted", element("Key", text(key))) for key in deleted))

    # Multipart uploads

    def _create_upload(self, request: Request, _payload: str) -> Answer:
        algorithm = request.headers.get("x-amz-checksum-algorithm")
        if algorithm not in (None, "SHA256"):
            raise S3Error(501, "NotImplemented", f"checksums with {algorithm}")
        upload_id = self._storage.begin_upload(
            Upload(request.bucket, request.key, kept_headers(request), algorithm == "SHA256"))
        return xml_answer(
            "InitiateMultipartUploadResult", element("Bucket", request.bucket),
            element("Key", text(request.key)), element("UploadId", upload_id))

    def _upload_part(self, request: Request, payload: str) -> Answer:
        number, upload_id = asked_part(request)
        self._storage.upload(request.bucket, request.key, upload_id)
        part = self._take(request, payload)
        self._put_part(request, number, upload_id, part)
        return Answer(200, tag_headers(part))

    def _copy_part(self, request: Request, payload: str) -> Answer:
        number, upload_id = asked_part(request)
        if take_text(request, payload):
            raise S3Error(400, "InvalidRequest", "a copy has no body")
        upload = self._storage.upload(request.bucket, request.key, upload_id)
        part = self._copied(request, upload.has_checksums)
        self._put_part(request, number, upload_id, part)
        return xml_answer(
            "CopyPartResult", element("LastModified", "2026-01-01T00:00:00.000Z"),
            element("ETag", text(part.tag)), element("ChecksumSHA256", part.checksum))

    def _put_part(self, request: Request, number: int, upload_id: str, part: Stored) -> None:
        try:
            self._storage.put_part(request.bucket, request.key, upload_id, number, part)
        except S3Error:
            part.discard()
            raise

    def _copied(self, request: Request, has_checksum: bool) -> Stored:
        """A range of an object as new bytes."""
        source = urllib.parse.unquote(request.headers[COPY_SOURCE]).removeprefix("/")
        with self._storage.lock:
            stored = self._storage.find(*source.split("/", 1))
            if request.headers.get("x-amz-copy-source-if-match", stored.tag) != stored.tag:
                raise S3Error(412, "PreconditionFailed")
            answer = Answer(byte_count=stored.byte_count, segments=stored.segments)
            asked = request.headers.get("x-amz-copy-source-range")
            if asked is not None:
                # Unlike a read, a copy is never of less than was asked for.
                match = re.fullmatch("bytes=([0-9]+)-([0-9]+)", asked)
                if match is None or not int(match[1]) <= int(match[2]) < stored.byte_count:
                    raise S3Error(400, "InvalidArgument", "x-amz-copy-source-range")
                if stored.byte_count <= self._storage.least_part_byte_count:
                    raise S3Error(400, "InvalidRequest", "too small for a range of it")
                answer.first, answer.byte_count = int(match[1]), int(match[2]) - int(match[1]) + 1
            answer.open_segments()
        path, digest = self._storage.new_file(), hashlib.sha256()
        try:
            with open(path, "wb") as file:
                for segment, offset, count in answer.stretches():
                    segment.seek(offset)
                    piece = segment.read(count)
                    digest.update(piece)
                    file.write(piece)
        finally:
            answer.close()
        checksum = base64_text(digest.digest()) if has_checksum else None
        return Stored([Segment(path, answer.byte_count)], answer.byte_count, checksum)

    def _complete_upload(self, request: Request, payload: str) -> Answer:
        named = [
            NamedPart(
                part_number(entry), find_text(entry, "ETag"),
                find_text(entry, "ChecksumSHA256") or None)
            for entry in parse_xml(take_text(request, payload), "CompleteMultipartUpload")
        ]
        stored = self._storage.complete(
            request.bucket, request.key, request.query["uploadId"], named, request.headers)
        return xml_answer(
            "CompleteMultipartUploadResult", element("Bucket", request.bucket),
            element("Key", text(request.key)), element("ETag", text(stored.tag)),
            element("ChecksumSHA256", stored.checksum))

    def _abort_upload(self, request: Request, _payload: str) -> Answer:
        self._storage.abort(request.bucket, request.key, request.query["uploadId"])
        return Answer(204)

    # Objects

    def _put_object(self, request: Request, payload: str) -> Answer:
        stored = self._take(request, payload)
        stored.headers = kept_headers(request)
        try:
            self._storage.put(request.bucket, request.key, stored, request.headers)
        except S3Error:
            stored.discard()
            raise
        return Answer(200, tag_headers(stored))

    def _delete_object(self, request: Request, _payload: str) -> Answer:
        self._storage.delete(request.bucket, request.key)
        return Answer(204)

    def _get_object(self, request: Request, _payload: str) -> Answer:
        with self._storage.lock:
            stored = self._storage.find(request.bucket, request.key)
            answer = read_answer(request, stored)
            if request.method == "GET" and answer.status in (200, 206):
                answer.segments = stored.segments
                answer.open_segments()
        return answer

    def _take(self, request: Request, payload: str) -> Stored:
        """Writes the body to a file and compares it with everything that was said about it."""
        self._storage.objects(request.bucket)
        path = self._storage.new_file()
        request.body.wants_md5 = "content-md5" in request.headers
        try:
            with open(path, "wb") as file:
                for piece in request.body.pieces():
                    file.write(piece)
            check_body(request, payload)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        count = request.body.byte_count
        return Stored([Segment(path, count)], count, request.headers.get(CHECKSUM))


def asked_part(request: Request) -> tuple[int, str]:
    """The number of the part that a request brings, and its upload."""
    number = request.query.get("partNumber", "")
    if not number.isdecimal() or not 1 <= int(number) <= 10_000:
        raise S3Error(400, "InvalidArgument", "partNumber")
    return int(number), request.query["uploadId"]


def take_text(request: Request, payload: str) -> bytes:
    """A small body, checked."""
    request.body.wants_md5 = "content-md5" in request.headers
    body = request.body.text()
    check_body(request, payload)
    return body


def check_body(request: Request, payload: str) -> None:
    """The body has the digests that the request says it has."""
    digest = request.body.sha256.digest()
    if payload not in (UNSIGNED, digest.hex()):
        raise S3Error(400, "XAmzContentSHA256Mismatch")
    if request.headers.get(CHECKSUM, base64_text(digest)) != base64_text(digest):
        raise S3Error(400, "BadDigest", CHECKSUM)
    md5 = base64_text(request.body.md5.digest())
    if request.body.wants_md5 and request.headers["content-md5"] != md5:
        raise S3Error(400, "BadDigest", "Content-MD5")


def base64_text(digest: bytes) -> str:
    """A digest as headers carry it."""
    return base64.b64encode(digest).decode()


def wrong_checksum() -> str:
    """The checksum of something else."""
    return base64_text(hashlib.sha256(b"something else").digest())


def kept_headers(request: Request) -> dict[str, str]:
    """Returns the headers that are stored and returned with the object."""
    return {
        name: value for name, value in request.headers.items()
        if name in KEPT_HEADERS or name.startswith("x-amz-meta-")
    }


def tag_headers(stored: Stored) -> dict[str, str]:
    """The answer to a write."""
    headers = {"ETag": stored.tag}
    if stored.checksum is not None:
        headers[CHECKSUM] = stored.checksum
    return headers


def read_answer(request: Request, stored: Stored) -> Answer:
    """Conditions and the range of a read; the bytes are added by the caller."""
    if request.headers.get("if-match", stored.tag) not in (stored.tag, "*"):
        raise S3Error(412, "PreconditionFailed")
    if request.headers.get("if-none-match") in (stored.tag, "*"):
        return Answer(304, {"ETag": stored.tag})
    answer = Answer(200, stored.headers | {
        "ETag": stored.tag, "Accept-Ranges": "bytes",
        "Last-Modified": email.utils.formatdate(stored.changed, usegmt=True),
    }, byte_count=stored.byte_count)
    for name, value in request.query.items():
        if name.startswith("response-"):
            answer.headers[name.removeprefix("response-")] = value
    if request.headers.get("x-amz-checksum-mode") == "ENABLED" and stored.checksum is not None:
        answer.headers[CHECKSUM] = stored.checksum
    choose_range(request.headers.get("range", ""), stored.byte_count, answer)
    return answer


def choose_range(value: str, byte_count: int, answer: Answer) -> None:
    """Narrows an answer to one range; what is no range is passed over, as S3 does."""
    match = re.fullmatch("bytes=([0-9]*)-([0-9]*)", value)
    if match is None or match.groups() == ("", ""):
        return
    first, last = match.groups()
    start = int(first) if first else max(0, byte_count - int(last))
    end = min(int(last), byte_count - 1) if first and last else byte_count - 1
    if start >= byte_count or (first and last and int(last) < start):
        raise S3Error(416, "InvalidRange")
    answer.status, answer.first, answer.byte_count = 206, start, end - start + 1
    answer.headers["Content-Range"] = f"bytes {start}-{end}/{byte_count}"
    # The checksum is one of the whole object.
    answer.headers.pop(CHECKSUM, None)


def parse_xml(body: bytes, name: str) -> list[xml.etree.ElementTree.Element]:
    """The children of a document's root."""
    try:
        root = xml.etree.ElementTree.fromstring(body)
    except xml.etree.ElementTree.ParseError as error:
        raise S3Error(400, "MalformedXML") from error
    if local_name(root) != name:
        raise S3Error(400, "MalformedXML")
    return list(root)


def local_name(node: xml.etree.ElementTree.Element) -> str:
    """A name without its namespace, which clients may leave out."""
    return node.tag.rpartition("}")[2]


def find_text(node: xml.etree.ElementTree.Element, name: str) -> str:
    """The text of a child; empty when there is none."""
    return next((child.text or "" for child in node if local_name(child) == name), "")


def part_number(node: xml.etree.ElementTree.Element) -> int:
    """The number of a part that is named in a request."""
    number = find_text(node, "PartNumber")
    if not number.isdecimal():
        raise S3Error(400, "MalformedXML", "PartNumber")
    return int(number)

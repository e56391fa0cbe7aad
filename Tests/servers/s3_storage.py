"""Buckets, objects and multipart uploads of the stand-in for S3, with the bytes in files."""

import base64
import dataclasses
import hashlib
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from s3_messages import S3Error, Segment


def new_tag() -> str:
    """Returns an ETag that no client can take for a hash of the bytes."""
    return f'"tag-{secrets.token_urlsafe(15)}"'


@dataclasses.dataclass
class Stored:
    """Bytes in files, and what was said about them: an object, or a part of one."""

    segments: list[Segment]
    byte_count: int
    checksum: str | None = None
    """SHA-256 in base64, with the count of parts behind it for an object of several."""
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    tag: str = dataclasses.field(default_factory=new_tag)
    changed: float = dataclasses.field(default_factory=time.time)

    def discard(self) -> None:
        """Removes the files; readers that have them open go on."""
        for segment in self.segments:
            segment.path.unlink(missing_ok=True)


@dataclasses.dataclass
class Upload:
    """A multipart upload that is under way."""

    bucket: str
    key: str
    headers: dict[str, str]
    has_checksums: bool
    parts: dict[int, Stored] = dataclasses.field(default_factory=dict)
    begun: float = dataclasses.field(default_factory=time.time)


@dataclasses.dataclass
class NamedPart:
    """One part, as the request that completes an upload names it."""

    number: int
    tag: str
    checksum: str | None


class Storage:
    """Everything that is stored. Each method holds `lock`; a caller that combines several takes it first."""

    def __init__(self, directory: Path, least_part_byte_count: int) -> None:
        self.lock = threading.RLock()
        self.directory = directory
        self.least_part_byte_count = least_part_byte_count
        self.buckets: dict[str, dict[str, Stored]] = {}
        self.uploads: dict[str, Upload] = {}

    def new_file(self) -> Path:
        """A name for bytes that arrive."""
        return self.directory / secrets.token_hex(16)

    def objects(self, bucket: str) -> dict[str, Stored]:
        """A bucket's objects by key."""
        with self.lock:
            if bucket not in self.buckets:
                raise S3Error(404, "NoSuchBucket")
            return self.buckets[bucket]

    def find(self, bucket: str, key: str) -> Stored:
        """An object."""
        with self.lock:
            stored = self.objects(bucket).get(key)
            if stored is None:
                raise S3Error(404, "NoSuchKey")
            return stored

    def damage(self, bucket: str, key: str, offset: int, part: int | None = None) -> None:
        """Flips a bit of an object at rest, or of a part of a multipart upload that is under way:
        size, tag and checksum stay."""
        with self.lock:
            stored = self.find(bucket, key) if part is None else self.find_part(bucket, key, part)
            for segment in stored.segments:
                if offset < segment.byte_count:
                    with segment.path.open("r+b") as file:
                        file.seek(offset)
                        byte = file.read(1)[0]
                        file.seek(offset)
                        file.write(bytes([byte ^ 1]))
                    return
                offset -= segment.byte_count

    def find_part(self, bucket: str, key: str, number: int) -> Stored:
        """A part of the latest upload under the key that has it."""
        with self.lock:
            for upload in reversed(self.uploads.values()):
                if (upload.bucket, upload.key) == (bucket, key) and number in upload.parts:
                    return upload.parts[number]
            raise S3Error(404, "NoSuchUpload")

    def put(self, bucket: str, key: str, stored: Stored, conditions: dict[str, str]) -> None:
        """Replaces an object as a whole, if the conditions hold at this moment."""
        with self.lock:
            objects = self.objects(bucket)
            check_write(objects.get(key), conditions)
            if key in objects:
                objects[key].discard()
            objects[key] = stored

    def delete(self, bucket: str, key: str) -> None:
        """Deletes an object; that there is none is no error."""
        with self.lock:
            stored = self.objects(bucket).pop(key, None)
            if stored is not None:
                stored.discard()

    def begin_upload(self, upload: Upload) -> str:
        """Begins a multipart upload; returns its id."""
        with self.lock:
            self.objects(upload.bucket)
            upload_id = secrets.token_urlsafe(32)
            self.uploads[upload_id] = upload
            return upload_id

    def upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        """An upload under its own key."""
        with self.lock:
            upload = self.uploads.get(upload_id)
            if upload is None or (upload.bucket, upload.key) != (bucket, key):
                raise S3Error(404, "NoSuchUpload")
            return upload

    def put_part(self, bucket: str, key: str, upload_id: str, number: int, part: Stored) -> None:
        """Takes a part in place of an earlier one of its number. The last that ends stays."""
        with self.lock:
            upload = self.upload(bucket, key, upload_id)
            if upload.has_checksums != (part.checksum is not None):
                raise S3Error(400, "InvalidRequest", "Checksum Type mismatch occurred")
            if number in upload.parts:
                upload.parts[number].discard()
            upload.parts[number] = part

    def abort(self, bucket: str, key: str, upload_id: str) -> None:
        """Ends an upload and removes its parts."""
        with self.lock:
            upload = self.upload(bucket, key, upload_id)
            del self.uploads[upload_id]
            for part in upload.parts.values():
                part.discard()

    def complete(
        self, bucket: str, key: str, upload_id: str, named: list[NamedPart],
        conditions: dict[str, str],
    ) -> Stored:
        """Makes an object of the named parts, and removes the others."""
        with self.lock:
            upload = self.upload(bucket, key, upload_id)
            parts = self._chosen(upload, named)
            stored = Stored(
                [segment for part in parts for segment in part.segments],
                sum(part.byte_count for part in parts), combined_checksum(parts), upload.headers)
            self.put(bucket, key, stored, conditions)
            del self.uploads[upload_id]
            for part in upload.parts.values():
                if part not in parts:
                    part.discard()
            return stored

    def _chosen(self, upload: Upload, named: list[NamedPart]) -> list[Stored]:
        if not named:
            raise S3Error(400, "MalformedXML", "no parts")
        numbers = [part.number for part in named]
        if numbers != sorted(set(numbers)):
            raise S3Error(400, "InvalidPartOrder")
        parts = []
        for name in named:
            part = upload.parts.get(name.number)
            if part is None or part.tag.strip('"') != name.tag.strip('"'):
                raise S3Error(400, "InvalidPart", f"part {name.number}")
            if upload.has_checksums and name.checksum is None:
                raise S3Error(400, "InvalidRequest", f"part {name.number} needs its checksum")
            if name.checksum not in (None, part.checksum):
                raise S3Error(400, "InvalidPart", f"checksum of part {name.number}")
            parts.append(part)
        if any(part.byte_count < self.least_part_byte_count for part in parts[:-1]):
            raise S3Error(400, "EntityTooSmall")
        return parts

    def state(self) -> dict[str, Any]:
        """All that is stored, as JSON."""
        with self.lock:
            return {
                "objects": [
                    {"bucket": bucket, "key": key, "byteCount": stored.byte_count, "tag": stored.tag}
                    for bucket, objects in self.buckets.items() for key, stored in objects.items()
                ],
                "uploads": [
                    {
                        "bucket": upload.bucket, "key": upload.key, "uploadID": upload_id,
                        "parts": [
                            {"number": number, "byteCount": part.byte_count}
                            for number, part in sorted(upload.parts.items())
                        ],
                    }
                    for upload_id, upload in self.uploads.items()
                ],
            }


def combined_checksum(parts: list[Stored]) -> str | None:
    """The checksum of the parts' checksums, as S3 has it for an object of several."""
    if any(part.checksum is None for part in parts):
        return None
    together = b"".join(base64.b64decode(part.checksum or "") for part in parts)
    digest = base64.b64encode(hashlib.sha256(together).digest()).decode()
    return f"{digest}-{len(parts)}"


def check_write(present: Stored | None, conditions: dict[str, str]) -> None:
    """If-None-Match and If-Match of a request that writes."""
    if conditions.get("if-none-match") == "*" and present is not None:
        raise S3Error(412, "PreconditionFailed")
    expected = conditions.get("if-match")
    if expected is not None:
        if present is None:
            raise S3Error(404, "NoSuchKey")
        if present.tag != expected:
            raise S3Error(412, "PreconditionFailed")

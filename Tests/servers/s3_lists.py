"""The lists of the stand-in for S3, a page at a time."""

import datetime
import urllib.parse
from collections.abc import Callable

from s3_messages import Answer, Request, S3Error, document, element, text
from s3_storage import Storage, Stored


def xml_answer(name: str, *content: str) -> Answer:
    """An answer whose body is a document."""
    return Answer(200, {"Content-Type": "application/xml"}, document(name, *content))


def time_text(seconds: float) -> str:
    """A time in a list."""
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def page_size(request: Request, parameter: str, most: int) -> int:
    """How many entries to give at once: what was asked for, and never more than the server's own limit."""
    wish = request.query.get(parameter, str(most))
    if not wish.isdecimal():
        raise S3Error(400, "InvalidArgument", parameter)
    return min(int(wish), most)


def key_writer(request: Request) -> Callable[[str], str]:
    """How keys are written: percent-encoded when the request asks for it."""
    if request.query.get("encoding-type") == "url":
        return lambda key: urllib.parse.quote(key, safe="/-_.~*")
    return text


def list_objects(storage: Storage, request: Request, most: int) -> Answer:
    """ListObjectsV2, with prefix, delimiter, start-after and continuation."""
    write = key_writer(request)
    prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
    size = page_size(request, "max-keys", most)
    token = request.query.get("continuation-token")
    # Opaque to clients; here, all keys up to the one behind it are done.
    after = urllib.parse.unquote(token) if token else request.query.get("start-after", "")
    with storage.lock:
        objects = storage.objects(request.bucket)
        entries = list_entries(objects, prefix, delimiter, after)
        page = entries[:size]
        is_cut = len(entries) > size
        content = [
            element("Contents", element("Key", write(key)), *about(objects[key]))
            if not is_prefix else element("CommonPrefixes", element("Prefix", write(key)))
            for key, is_prefix in page
        ]
    last = f"{page[-1][0]}\U0010ffff" if page and page[-1][1] else page[-1][0] if page else ""
    next_token = urllib.parse.quote(last, safe="") if is_cut and page else None
    return xml_answer(
        "ListBucketResult", element("Name", request.bucket), element("Prefix", write(prefix)),
        element("EncodingType", request.query.get("encoding-type")),
        element("KeyCount", len(page)), element("MaxKeys", size),
        element("IsTruncated", "true" if is_cut else "false"),
        element("NextContinuationToken", next_token), *content)


def list_entries(
    objects: dict[str, Stored], prefix: str, delimiter: str, after: str
) -> list[tuple[str, bool]]:
    """Keys and common prefixes in order, each with whether it is a prefix."""
    entries: dict[str, bool] = {}
    for key in sorted(objects):
        if key <= after or not key.startswith(prefix):
            continue
        rest = key[len(prefix):]
        if delimiter and delimiter in rest:
            entries[prefix + rest.split(delimiter)[0] + delimiter] = True
        else:
            entries[key] = False
    return list(entries.items())


def about(stored: Stored) -> list[str]:
    """Elements of an object or part in a list."""
    return [
        element("LastModified", time_text(stored.changed)), element("ETag", text(stored.tag)),
        element("Size", stored.byte_count),
    ]


def list_uploads(storage: Storage, request: Request, most: int) -> Answer:
    """ListMultipartUploads, by key and then by when they began."""
    write = key_writer(request)
    prefix = request.query.get("prefix", "")
    size = page_size(request, "max-uploads", most)
    key_marker = request.query.get("key-marker", "")
    id_marker = request.query.get("upload-id-marker", "")
    with storage.lock:
        storage.objects(request.bucket)
        found = sorted(
            (upload.key, upload.begun, upload_id) for upload_id, upload in storage.uploads.items()
            if upload.bucket == request.bucket and upload.key.startswith(prefix))
    if key_marker:
        # Uploads of one key come in the order in which they began, which the marker's id does not show.
        marked = [place for place, entry in enumerate(found) if entry[2] == id_marker]
        rest = [entry for entry in found if entry[0] > key_marker]
        found = found[marked[0] + 1:] if marked else rest
    page, is_cut = found[:size], len(found) > size
    last_key, last_id = (write(page[-1][0]), page[-1][2]) if is_cut and page else (None, None)
    return xml_answer(
        "ListMultipartUploadsResult", element("Bucket", request.bucket),
        element("EncodingType", request.query.get("encoding-type")),
        element("KeyMarker", write(key_marker)), element("UploadIdMarker", text(id_marker)),
        element("NextKeyMarker", last_key), element("NextUploadIdMarker", last_id),
        element("MaxUploads", size), element("IsTruncated", "true" if is_cut else "false"),
        *(
            element(
                "Upload", element("Key", write(key)), element("UploadId", upload_id),
                element("Initiated", time_text(begun)))
            for key, begun, upload_id in page
        ))


def list_parts(storage: Storage, request: Request, most: int) -> Answer:
    """ListParts, by number."""
    upload_id = request.query["uploadId"]
    size = page_size(request, "max-parts", most)
    after = request.query.get("part-number-marker", "0")
    if not after.isdecimal():
        raise S3Error(400, "InvalidArgument", "part-number-marker")
    marker = int(after)
    with storage.lock:
        upload = storage.upload(request.bucket, request.key, upload_id)
        found = sorted((number, part) for number, part in upload.parts.items() if number > marker)
    page, is_cut = found[:size], len(found) > size
    return xml_answer(
        "ListPartsResult", element("Bucket", request.bucket), element("Key", text(request.key)),
        element("UploadId", upload_id), element("PartNumberMarker", marker),
        element("NextPartNumberMarker", page[-1][0] if page else marker),
        element("MaxParts", size), element("IsTruncated", "true" if is_cut else "false"),
        *(
            element(
                "Part", element("PartNumber", number), *about(part),
                element("ChecksumSHA256", part.checksum))
            for number, part in page
        ))

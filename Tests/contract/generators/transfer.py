"""Uploads and downloads through a generated client, by each protocol of the service.

The client is an object with a method for each step, which calls the generated code alone.
"""

import hashlib
import random

CHUNK = 4096
UNKNOWN = "0" * 32


def digest(data):
    return hashlib.sha256(data).hexdigest()


def check(actual, expected, subject):
    if actual != expected:
        raise AssertionError(f"{subject} is {actual!r:.200}, expected {expected!r:.200}")


def put_chunk(client, session, data, index, skip=0, count=None):
    """Sends `count` bytes of a chunk after its first `skip` ones, or all the rest of it."""
    whole = data[index * CHUNK : (index + 1) * CHUNK]
    body = whole[skip:] if count is None else whole[skip : skip + count]
    first = index * CHUNK + skip
    return client.put_chunk(
        session,
        index,
        body,
        f"bytes {first}-{first + len(body) - 1}/{len(data)}",
        "sha256=" + digest(whole),
    )


def check_file(client, file, name, data):
    meta = client.get_file_meta(file)
    check((meta.size, meta.sha256), (len(data), digest(data)), "the size and digest")
    check(meta.file_name, name, "the name")
    check(client.download_file(file), data, "the download")
    check(client.download_file(file, "bytes=10-19"), data[10:20], "the range")


def transfer_in_chunks(client, data):
    created = client.create_session("déjà vu.bin", len(data), CHUNK, {"album": "summer"})
    check(created.total_chunks, 3, "the number of chunks")
    session = created.session_id
    check(put_chunk(client, session, data, 2).received_chunk_count, 1, "the number of chunks")
    check(put_chunk(client, session, data, 1, count=100).received_bytes, 100, "the partial")
    status, problem = put_chunk(client, session, data, 1, skip=200)
    check((status, problem.code), (409, "OFFSET_MISMATCH"), "the problem")
    check(problem.expected_offset, CHUNK + 100, "the expected offset")
    put_chunk(client, session, data, 1, skip=100)
    status, problem = client.finalize_session(session, digest(data))
    check((status, problem.code), (409, "MISSING_CHUNKS"), "the problem")
    check(problem.missing_ranges, [[0, 0]], "the missing chunks")
    put_chunk(client, session, data, 0)
    check(client.get_session(session).received_ranges, [[0, 2]], "the received chunks")
    finished = client.finalize_session(session, digest(data))
    check(finished.etag, f'"sha256-{digest(data)}"', "the entity tag")
    check_file(client, finished.remote_file_id, "déjà vu.bin", data)


def transfer_whole(client, data):
    check_file(client, client.create_file(data, 'attachment; filename="a.bin"'), "a.bin", data)


def transfer_by_tus(client, data):
    # With first bytes: OpenAPI Generator refuses to send a request without the optional body.
    upload = client.create_tus_upload(len(data), data[:2000]).rpartition("/")[2]
    check(client.append_tus_upload(upload, 2000, data[2000:5000]), 5000, "the offset")
    check(client.head_tus_upload(upload), 5000, "the offset")
    check(client.append_tus_upload(upload, 5000, data[5000:]), len(data), "the offset")
    check(client.download_tus_upload(upload), data, "the download")


def transfer_resumably(client, data):
    upload = client.create_resumable_upload(data[:5000]).rpartition("/")[2]
    check(client.get_resumable_upload(upload), 5000, "the offset")
    file = client.append_resumable_upload(upload, 5000, data[5000:])
    check(client.download_file(file), data, "the download")


def run(client):
    data = random.Random(1).randbytes(2 * CHUNK + 1000)
    status, problem = client.get_session(UNKNOWN)
    check((status, problem.code), (404, "SESSION_NOT_FOUND"), "the problem")
    transfer_in_chunks(client, data)
    transfer_whole(client, data)
    transfer_by_tus(client, data)
    transfer_resumably(client, data)

"""Holds known answers of a running Kedge server against openapi/kedge.yaml.

Generated requests seldom hit a chunk that fits its session or a tag that fits its file. This script
does on purpose what they cannot: it provokes each answer by name, and checks its status, its code,
its headers and its schema.

    check_answers.py CONTRACT SERVER_URL

The server must take chunks of 1024 bytes and no files above one GiB. Ends with status 1 after the
first answer that is not as it should be.
"""

import base64
import hashlib
import http.client
import socket
import sys
import uuid
from urllib.parse import urlsplit

import requests
import schemathesis

CHUNK = 1024
UNKNOWN = "0" * 32


def digest(data):
    return hashlib.sha256(data).hexdigest()


def digest_field(data):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


class Checker:
    """Sends requests and checks that each answer is the expected one and keeps the contract."""

    def __init__(self, contract, server):
        self.schema = schemathesis.openapi.from_path(contract)
        self.server = server
        self.http = requests.Session()
        self.count = 0

    def ask(self, method, template, expected, code=None, path=None, **request):
        """One request; `template` is the path as the contract writes it."""
        response = self.http.request(
            method, self.server + (path or template), timeout=20, **request
        )
        name = f"{method} {template} -> {response.status_code}"
        if response.status_code != expected:
            raise AssertionError(f"{name}, expected {expected}: {response.text[:400]}")
        if code is not None:
            problem = response.json()
            if (problem["code"], problem["status"]) != (code, expected):
                raise AssertionError(f"{name}: expected {code}, got {problem}")
            if problem["requestId"] != response.headers["X-Request-Id"]:
                raise AssertionError(f"{name}: the request id differs from the header")
        if method == "HEAD" and response.content:
            raise AssertionError(f"{name}: an answer to HEAD has a body")
        self.schema[template][method].validate_response(response)
        self.count += 1
        return response


class Upload:
    """One session, with requests that fit it."""

    PATH = "/uploads/sessions/{sessionId}"

    def __init__(self, checker, data, **members):
        self.checker = checker
        self.data = data
        body = {"fileName": "déjà vu.bin", "fileSize": len(data), "chunkSize": CHUNK, **members}
        answer = checker.ask("POST", "/uploads/sessions", 201, json=body)
        self.id = answer.json()["sessionId"]
        self.path = answer.headers["Location"]

    def chunk(self, index):
        return self.data[index * CHUNK : (index + 1) * CHUNK]

    def put(self, index, expected, code=None, body=None, skip=0, headers=None):
        whole = self.chunk(index)
        body = whole[skip:] if body is None else body
        first = index * CHUNK + skip
        last = index * CHUNK + len(whole) - 1
        all_headers = {
            "Content-Type": "application/octet-stream",
            "Content-Range": f"bytes {first}-{last}/{len(self.data)}",
            "X-Chunk-Hash": f"sha256={digest(whole)}",
            **(headers or {}),
        }
        return self.checker.ask(
            "PUT",
            self.PATH + "/chunks/{index}",
            expected,
            code,
            path=f"{self.path}/chunks/{index}",
            data=body,
            headers={name: value for name, value in all_headers.items() if value is not None},
        )

    def status(self, expected=200, code=None):
        return self.checker.ask("GET", self.PATH, expected, code, path=self.path)

    def finalize(self, expected, code=None, **request):
        template = self.PATH + "/finalize"
        return self.checker.ask(
            "POST", template, expected, code, path=self.path + "/finalize", **request
        )

    def cancel(self, expected, code=None):
        return self.checker.ask("DELETE", self.PATH, expected, code, path=self.path)

    def break_off(self, index, byte_count):
        """Sends the first bytes of a chunk, then closes the connection."""
        whole = self.chunk(index)
        address = urlsplit(self.checker.server)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
        connection.putrequest("PUT", f"{self.path}/chunks/{index}")
        first = index * CHUNK
        connection.putheader(
            "Content-Range", f"bytes {first}-{first + len(whole) - 1}/{len(self.data)}"
        )
        connection.putheader("X-Chunk-Hash", f"sha256={digest(whole)}")
        connection.putheader("Content-Length", str(len(whole)))
        connection.endheaders()
        connection.send(whole[:byte_count])
        connection.close()
        # The server saves what it has once it sees the end; the status shows when.
        for _ in range(500):
            partials = self.status().json()["partialChunks"]
            if partials:
                return partials
        raise AssertionError("no partial was kept")


def check_sessions(checker):
    data = bytes(range(256)) * 14
    upload = Upload(checker, data)
    upload.finalize(409, "MISSING_CHUNKS")
    upload.put(3, 201)
    upload.put(0, 201)
    upload.put(0, 200)
    other = bytes(CHUNK)
    upload.put(
        0, 409, "CHUNK_CONFLICT", body=other, headers={"X-Chunk-Hash": "sha256=" + digest(other)}
    )
    upload.put(1, 422, "CHUNK_HASH_MISMATCH", body=other)
    upload.put(1, 400, "CHUNK_HASH_REQUIRED", headers={"X-Chunk-Hash": None})
    upload.put(1, 400, "RANGE_MISMATCH", headers={"Content-Range": "bytes 0-1023/3584"})
    upload.put(1, 400, "LENGTH_MISMATCH", body=b"short")
    inside = {"Content-Range": f"bytes 0-{CHUNK - 1}/{len(data)}"}
    upload.put(4, 400, "CHUNK_OUT_OF_BOUNDS", body=other, headers=inside)
    kept = upload.break_off(1, 300)
    received = kept[0]["receivedBytes"]
    problem = upload.put(1, 409, "OFFSET_MISMATCH", skip=received + 1).json()
    if problem["expectedOffset"] != CHUNK + received:
        raise AssertionError(f"expectedOffset is not after the partial {kept}: {problem}")
    upload.put(1, 201, skip=received)
    part = {"Content-Range": f"bytes {2 * CHUNK}-{2 * CHUNK + 99}/{len(data)}"}
    for _ in range(2):
        answer = upload.put(2, 202, body=upload.chunk(2)[:100], headers=part).json()
        if answer["receivedBytes"] != 100:
            raise AssertionError(f"a part of 100 bytes is reported as {answer}")
    upload.put(
        2, 201, headers={"X-Chunk-Hash": None, "Content-Digest": digest_field(upload.chunk(2))}
    )
    upload.finalize(422, "INTEGRITY_MISMATCH", json={"fileHashSha256": digest(b"")})
    upload.finalize(400, "BAD_REQUEST", json={"fileHashSha256": "no digest"})
    upload.finalize(415, "UNSUPPORTED_MEDIA_TYPE", data=b"x=1")
    first = upload.finalize(200, json={"fileHashSha256": digest(data)}).json()
    again = upload.finalize(200).json()
    if first != again or first["fileHashSha256"] != digest(data):
        raise AssertionError(f"finalize is not idempotent: {first} {again}")
    if upload.status().json()["remoteFileId"] != first["remoteFileId"]:
        raise AssertionError("the status does not name the file")
    upload.cancel(409, "SESSION_CLOSED")

    canceled = Upload(checker, data)
    canceled.cancel(204)
    canceled.cancel(204)
    canceled.put(0, 409, "SESSION_CLOSED")
    canceled.finalize(409, "SESSION_CLOSED")

    empty = Upload(checker, b"")
    empty.finalize(200)

    checker.ask(
        "GET", Upload.PATH, 404, "SESSION_NOT_FOUND", path=f"/uploads/sessions/{UNKNOWN}"
    )
    return data, first["remoteFileId"]


def check_creation(checker):
    def create(expected, code=None, **request):
        return checker.ask("POST", "/uploads/sessions", expected, code, **request)

    body = {"fileName": "a.bin", "fileSize": 10}
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = create(201, json=body, headers=key).json()
    again = create(201, json=body, headers=key).json()
    if first["sessionId"] != again["sessionId"]:
        raise AssertionError("the same key made two sessions")
    create(422, "IDEMPOTENCY_CONFLICT", json={**body, "fileSize": 11}, headers=key)
    create(400, "BAD_REQUEST", json={**body, "fileName": "../etc"})
    create(400, "BAD_REQUEST", data=b"{", headers={"Content-Type": "application/json"})
    create(413, "FILE_TOO_LARGE", json={**body, "fileSize": 1 << 40})
    create(413, "REQUEST_TOO_LARGE", json={**body, "metadata": {"a": "b" * 70_000}})
    create(415, "UNSUPPORTED_MEDIA_TYPE", data=b"fileName=a")


def check_files(checker, data, file_id):
    template = "/files/{fileId}"
    path = f"/files/{file_id}"

    def get(expected, code=None, method="GET", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return checker.ask(method, template, expected, code, path=path, headers=named)

    etag = f'"sha256-{digest(data)}"'
    whole = get(200)
    if whole.content != data or whole.headers["ETag"] != etag:
        raise AssertionError("the download is not the upload")
    if get(206, Range="bytes=10-19").content != data[10:20]:
        raise AssertionError("the range holds other bytes")
    parts = get(206, Range="bytes=0-1,5-6")
    if not parts.headers["Content-Type"].startswith("multipart/byteranges; boundary="):
        raise AssertionError("several ranges are not answered in parts")
    get(206, Range="bytes=0-1", If_Range=etag)
    get(200, Range="bytes=0-1", If_Range='"other"')
    get(304, If_None_Match=etag)
    get(412, "PRECONDITION_FAILED", If_Match='"other"')
    get(416, "RANGE_NOT_SATISFIABLE", Range=f"bytes={len(data)}-")
    get(200, Range="bytes=x")
    head = get(200, method="HEAD")
    if head.headers["Content-Length"] != str(len(data)):
        raise AssertionError("HEAD reports another length")
    get(304, method="HEAD", If_None_Match=etag)
    get(412, method="HEAD", If_Match='"other"')

    meta = checker.ask("GET", template + "/meta", 200, path=path + "/meta").json()
    chunks = checker.ask("GET", template + "/chunks", 200, path=path + "/chunks").json()
    expected = [
        digest(data[start : start + meta["chunkSize"]])
        for start in range(0, len(data), meta["chunkSize"])
    ]
    if chunks["sha256"] != expected:
        raise AssertionError("the chunk digests are not those of the chunks")

    checker.ask("DELETE", template, 204, path=path)
    checker.ask("DELETE", template, 204, path=path)
    get(410, "FILE_GONE")
    get(410, method="HEAD")
    checker.ask("GET", template + "/meta", 410, "FILE_GONE", path=path + "/meta")
    checker.ask("GET", template + "/chunks", 410, "FILE_GONE", path=path + "/chunks")
    for method in ("GET", "DELETE"):
        checker.ask(method, template, 404, "FILE_NOT_FOUND", path=f"/files/{UNKNOWN}")
    checker.ask("HEAD", template, 404, path=f"/files/{UNKNOWN}")


def check_whole_files(checker):
    def create(expected, code=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return checker.ask("POST", "/files", expected, code, data=b"hello", headers=named)

    name = "attachment; filename=\"x.txt\"; filename*=UTF-8''%E2%82%AC.txt"
    stored = create(
        201, Content_Disposition=name, Content_Type="text/plain", Repr_Digest=digest_field(b"hello")
    ).json()
    meta = checker.ask(
        "GET", "/files/{fileId}/meta", 200, path=f"/files/{stored['remoteFileId']}/meta"
    ).json()
    if (meta["fileName"], meta["mimeType"]) != ("€.txt", "text/plain"):
        raise AssertionError(f"name or type got lost: {meta}")
    create(201)
    create(422, "INTEGRITY_MISMATCH", Content_Digest=digest_field(b"other"))
    create(400, "BAD_REQUEST", Content_Disposition="attachment; filename*=UTF-8''%FF")
    create(400, "BAD_REQUEST", Repr_Digest="sha-256=:x:")

    page = checker.ask("GET", "/files", 200, params={"limit": 1}).json()
    rest = checker.ask("GET", "/files", 200, params={"after": page["next"]}).json()
    if page["files"][0] in rest["files"]:
        raise AssertionError("a page repeats the one before")
    for query in ({"limit": 0}, {"limit": 1001}, {"limit": "1e3"}, {"after": "zz"}):
        checker.ask("GET", "/files", 400, "BAD_REQUEST", params=query)


def check_head_framing(checker):
    """An error on HEAD must not leave a body on the connection: it would be read as the next answer."""
    address = urlsplit(checker.server)
    # HTTP libraries hide such a body, so this looks at the bytes.
    for path, status in ((f"/files/{UNKNOWN}", 404), ("/healthz", 405), ("/nothing", 404)):
        with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
            connection.sendall(
                f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(f"HTTP/1.1 {status} ".encode()):
            raise AssertionError(f"HEAD {path} -> {head[:40]}, expected {status}")
        if body:
            raise AssertionError(f"HEAD {path} -> {status} has a body of {len(body)} bytes")


def check_addresses(checker):
    checker.ask("GET", "/healthz", 200)
    checker.ask("GET", "/readyz", 200)
    named = checker.ask("GET", "/healthz", 200, headers={"X-Request-Id": "my-id.1"})
    if named.headers["X-Request-Id"] != "my-id.1":
        raise AssertionError("the request id is not taken over")
    missing = checker.http.get(checker.server + "/nothing", timeout=20)
    if (missing.status_code, missing.json()["code"]) != (404, "ROUTE_NOT_FOUND"):
        raise AssertionError(f"an unknown path answers {missing.status_code}")
    wrong = checker.http.patch(checker.server + "/files", timeout=20)
    if (wrong.status_code, wrong.json()["code"]) != (405, "METHOD_NOT_ALLOWED"):
        raise AssertionError(f"a wrong method answers {wrong.status_code}")
    if wrong.headers.get("Allow") != "GET, OPTIONS, POST":
        raise AssertionError(f"Allow is {wrong.headers.get('Allow')}")


def main():
    contract, server = sys.argv[1:]
    checker = Checker(contract, server)
    check_addresses(checker)
    check_creation(checker)
    data, file_id = check_sessions(checker)
    check_files(checker, data, file_id)
    check_whole_files(checker)
    check_head_framing(checker)
    print(f"{checker.count} known answers keep the contract")


if __name__ == "__main__":
    main()

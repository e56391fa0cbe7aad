#!/usr/bin/env python3
"""Uploads a file in chunks. Run again after an interruption, it sends only what is missing.

    kedge_upload.py FILE [SERVER]      SERVER is http://127.0.0.1:8080 by default
"""
import hashlib
import http.client
import json
import pathlib
import sys
import time
import urllib.error
import urllib.request
import uuid

path, server = pathlib.Path(sys.argv[1]), (sys.argv[2:] or ["http://127.0.0.1:8080"])[0]
# Holds the Idempotency-Key, by which every run finds the same session, until the file is uploaded.
key_file = path.with_name(path.name + ".kedge-key")
# The session is over, has a file that is no longer there, or belongs to an earlier version of this file.
OVER = {"FILE_DAMAGED", "FILE_GONE", "IDEMPOTENCY_CONFLICT",
        "SESSION_CLOSED", "SESSION_EXPIRED", "SESSION_NOT_FOUND"}
# The file has changed since it was hashed.
CHANGED = {"CHUNK_CONFLICT", "INTEGRITY_MISMATCH", "RANGE_MISMATCH"}


def request(method, address, body=None, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    query = urllib.request.Request(server + address, body, fields, method=method)
    with urllib.request.urlopen(query, timeout=60) as response:
        return json.load(response)


def upload(file, size, digest):
    if not key_file.exists():
        key_file.write_text(str(uuid.uuid4()))
    wanted = json.dumps({"fileName": path.name, "fileSize": size, "fileHashSha256": digest}).encode()
    created = request("POST", "/uploads/sessions", wanted, Content_Type="application/json",
                      Idempotency_Key=key_file.read_text())
    address = f"/uploads/sessions/{created['sessionId']}"
    session = request("GET", address)
    begun = {chunk["index"]: chunk["receivedBytes"] for chunk in session["partialChunks"]}
    for index in sorted(set(range(session["totalChunks"])) - set(session["receivedChunks"])):
        first, skip = index * session["chunkSize"], begun.get(index, 0)
        file.seek(first)
        chunk = file.read(session["chunkSize"])
        receipt = request("PUT", f"{address}/chunks/{index}", chunk[skip:],
                          Content_Range=f"bytes {first + skip}-{first + len(chunk) - 1}/{size}",
                          X_Chunk_Hash="sha256=" + hashlib.sha256(chunk).hexdigest())
        print(f"{receipt['receivedBytes']} of {size} bytes", file=sys.stderr)
    while "remoteFileId" not in (result := request("POST", f"{address}/finalize")):
        time.sleep(1)
    return request("GET", f"/files/{result['remoteFileId']}/meta")


with path.open("rb") as file:
    digest, size = hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size
    while True:
        pause = 1
        try:
            stored = upload(file, size, digest)
            break
        except urllib.error.HTTPError as error:
            text = error.read()
            code = json.loads(text)["code"] if b'"code"' in text else ""  # That of a proxy has no code.
            pause = int(error.headers.get("Retry-After", pause))
            if code in OVER:
                key_file.unlink()
            elif code in CHANGED or error.code in (400, 403, 404, 405, 413, 415):
                sys.exit(f"{error}: {text.decode(errors='replace')}")
        except (OSError, http.client.HTTPException) as error:
            print(f"{error}; trying again", file=sys.stderr)
        time.sleep(pause)
if stored["sha256"] != digest:
    sys.exit(f"the server has {stored['sha256']} instead of {digest}")
key_file.unlink()
print(stored["remoteFileId"], digest)

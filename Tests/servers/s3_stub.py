"""A strict stand-in for S3 that fails on request.

    s3_stub.py --directory D --access-key K --secret-key S [--bucket B]... [--port P] [--region R]
               [--min-part-bytes N] [--page-size N]

Prints one line of JSON with its port when it listens, and ends when its standard input does. It checks what
S3 checks: signature, digests of bodies, part rules, conditions. Buckets are named by the path or by the first
label of the host. `POST /_faults` takes rules (see s3_faults.py), `DELETE /_faults` removes them, and
`POST /_damage` flips a bit of a stored object or part, `GET /_state` returns what is stored and what was asked.
"""

import argparse
import contextlib
import datetime
import email.utils
import json
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import s3_signature
from s3_faults import Counts, Faults, Rule
from s3_messages import Answer, Body, Dropped, Request, S3Error, error_answer
from s3_operations import CHECKSUM, Operations, wrong_checksum
from s3_storage import Storage


class Stub(ThreadingHTTPServer):
    """The server and everything that its connections share."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, port: int, key: s3_signature.Key, storage: Storage, page_size: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.key = key
        self.storage = storage
        self.operations = Operations(storage, page_size)
        self.faults = Faults()
        self.counts = Counts()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints every error but those of clients that leave, which are frequent here."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Stub
    protocol_version = "HTTP/1.1"
    # An answer's head and body leave together.
    wbufsize = 64 << 10
    disable_nagle_algorithm = True
    timeout = 120
    skew = datetime.timedelta()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are counted, not logged."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The Date header, from the clock that requests are judged by."""
        return email.utils.formatdate(time.time() + self.skew.total_seconds(), usegmt=True)

    def handle_expect_100(self) -> bool:
        """Answered later, when nothing speaks against taking the body."""
        return True

    def do_GET(self) -> None:
        """Every method goes the same way."""
        self.skew = datetime.timedelta()
        try:
            if self.path.startswith("/_"):
                answer = self._control()
            else:
                answer = self._serve(self._request())
            self._send(answer)
        except (Dropped, ConnectionError, TimeoutError):
            self._drop()

    do_PUT = do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815

    def _request(self) -> Request:
        raw_path, _, raw_query = self.path.partition("?")
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            name = name.lower()
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        length = headers.get("content-length", "0")
        body = Body(self.rfile, int(length) if length.isdecimal() else 0)
        body.is_held = headers.get("expect", "").lower() == "100-continue"
        request = Request(self.command, raw_path, raw_query, headers, body)
        with self.server.storage.lock:
            request.find_place(set(self.server.storage.buckets))
        return request

    def _serve(self, request: Request) -> Answer:
        """Does what is asked, or what a rule says instead."""
        resource = request.raw_path
        try:
            operation = request.operation
        except S3Error as error:
            return self._refuse(request, error, resource)
        with self.server.counts.request(operation):
            fault = self.server.faults.take(operation, request.key)
            if fault is not None:
                self.server.counts.note_fault(fault.action)
            try:
                return self._perform(request, fault)
            except S3Error as error:
                return self._refuse(request, error, resource)

    def _refuse(self, request: Request, error: S3Error, resource: str) -> Answer:
        self.server.counts.note_error(error.code)
        request.body.drain()
        # A body that is still to come would be taken for the next request.
        self.close_connection |= request.body.is_held
        return error_answer(error, resource)

    def _perform(self, request: Request, fault: Rule | None) -> Answer:
        action = fault.action if fault else ""
        if fault and action == "hang":
            time.sleep(fault.seconds_each)
        if fault and action == "skewedClock":
            self.skew = datetime.timedelta(seconds=fault.seconds_each)
        if action == "dropUnread":
            raise Dropped
        payload = self._admit(request)
        if fault and action in ("status", "errorInOK", "dropUndone"):
            request.body.drain()
            if action == "dropUndone":
                raise Dropped
            answer = error_answer(S3Error(fault.status, fault.code), request.raw_path)
            answer.status = fault.status if action == "status" else 200
            return answer
        answer = self.server.operations.perform(request, payload)
        request.body.drain()
        if action == "dropDone":
            answer.close()
            raise Dropped
        if action == "wrongChecksum":
            answer.headers[CHECKSUM] = wrong_checksum()
        self.cut_after = fault.byte_count if fault and action == "cut" else None
        return answer

    def _admit(self, request: Request) -> str:
        """Checks everything that can be without the body, and asks for it."""
        now = datetime.datetime.now(datetime.UTC) + self.skew
        payload = s3_signature.check(request, self.server.key, now)
        if request.method in ("PUT", "POST") and "content-length" not in request.headers:
            raise S3Error(411, "MissingContentLength")
        if request.body.is_held:
            request.body.is_held = False
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        return payload

    cut_after: int | None = None

    def _send(self, answer: Answer) -> None:
        cut_after, self.cut_after = self.cut_after, None
        try:
            if self.close_connection:
                answer.headers["Connection"] = "close"
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            count = answer.byte_count if answer.byte_count else len(answer.body)
            if answer.status not in (204, 304):
                self.send_header("Content-Length", str(count))
            self.send_header("x-amz-request-id", "0123456789ABCDEF")
            self.end_headers()
            if self.command != "HEAD":
                self._send_body(answer, cut_after)
            self.wfile.flush()
        finally:
            answer.close()

    def _send_body(self, answer: Answer, cut_after: int | None) -> None:
        left = cut_after if cut_after is not None else len(answer.body) + answer.byte_count
        self.wfile.write(answer.body[:left])
        self.wfile.flush()
        left -= len(answer.body)
        for file, offset, count in answer.stretches():
            if left > 0:
                self.connection.sendfile(file, offset, min(count, left))
            left -= count
        if cut_after is not None:
            raise Dropped

    def _drop(self) -> None:
        self.close_connection = True
        # Buffered bytes must not go out either.
        self.wfile = open(os.devnull, "wb")  # noqa: SIM115
        with contextlib.suppress(OSError):  # the other side was faster
            self.connection.shutdown(socket.SHUT_RDWR)

    def _control(self) -> Answer:
        if (self.command, self.path) == ("GET", "/_state"):
            state = self.server.storage.state() | self.server.counts.state()
            return Answer(200, {"Content-Type": "application/json"}, json.dumps(state).encode())
        if (self.command, self.path) == ("POST", "/_damage"):
            where = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
            self.server.storage.damage(**where)
            return Answer(204)
        if self.path != "/_faults" or self.command not in ("POST", "DELETE"):
            return Answer(404)
        if self.command == "DELETE":
            self.server.faults.clear()
            return Answer(204)
        text = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            self.server.faults.add(json.loads(text))
        except (TypeError, ValueError) as error:
            return Answer(400, {"Content-Type": "text/plain"}, str(error).encode())
        return Answer(204)


def main() -> None:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--access-key", required=True)
    parser.add_argument("--secret-key", required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--bucket", action="append", default=[])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--min-part-bytes", type=int, default=5 << 20)
    parser.add_argument("--page-size", type=int, default=1000)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    storage = Storage(options.directory, options.min_part_bytes)
    storage.buckets = {name: {} for name in options.bucket}
    key = s3_signature.Key(options.access_key, options.secret_key, options.region)
    stub = Stub(options.port, key, storage, options.page_size)
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    print(json.dumps({"port": stub.server_address[1]}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

"""Links between a client and the service: one notes each chunk and breaks off one of them, one is slow."""

import contextlib
import http.client
import http.server
import re
import socket
import sys
import threading
import time
from dataclasses import dataclass, field

HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "expect", "host"}
CHUNK = re.compile(r"/uploads/sessions/\w+/chunks/(\d+)$")


@dataclass
class Sent:
    """A body of a chunk, and the status that the client got for it; 0 if it got none."""

    index: int
    first: int
    byte_count: int
    status: int = 0


@dataclass
class Notes:
    """The bodies of one run of a client, in the order in which they began."""

    sent: list[Sent] = field(default_factory=list)

    @property
    def acknowledged(self) -> set[int]:
        """Indexes of the complete chunks."""
        return {sent.index for sent in self.sent if sent.status in (200, 201)}

    @property
    def byte_count(self) -> int:
        return sum(sent.byte_count for sent in self.sent)


class Relay:
    """Sends requests on to the service, whole, and its responses back.

    `break_after(COUNT)`: after that many complete chunks, half of each further body goes to the service, and
    the client gets no response.
    """

    def __init__(self, service_port: int) -> None:
        self.service_port = service_port
        self.notes = Notes()
        self.has_broken = threading.Event()
        self._left: int | None = None
        self._lock = threading.Lock()
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                relay._pass(self)

            do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                if not isinstance(sys.exc_info()[1], ConnectionError):  # A client that was killed.
                    super().handle_error(*_)

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def break_after(self, count: int) -> None:
        self._left = count

    def heal(self) -> Notes:
        """Lets everything pass again; returns the notes until now and begins new ones."""
        with self._lock:
            notes, self.notes = self.notes, Notes()
            self._left = None
        return notes

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _pass(self, request: http.server.BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        sent = self._note(request, len(body))
        if sent is not None and self._is_to_break():
            self._send_half(request, headers, body)
            self.has_broken.set()
            request.close_connection = True
            threading.Event().wait(30)  # Until the client is killed.
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.service_port, timeout=30)
        try:
            headers["Content-Length"] = str(len(body))
            connection.request(request.command, request.path, body or None, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if sent is not None:
            with self._lock:
                sent.status = response.status
                if self._left is not None and sent.status in (200, 201):
                    self._left -= 1
        request.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in HOP_BY_HOP:
                request.send_header(name, value)
        if request.command != "HEAD":
            request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _note(self, request: http.server.BaseHTTPRequestHandler, byte_count: int) -> Sent | None:
        chunk = CHUNK.search(request.path)
        if request.command != "PUT" or chunk is None:
            return None
        first = int(re.match(r"bytes (\d+)-", request.headers["Content-Range"])[1])
        sent = Sent(int(chunk[1]), first, byte_count)
        with self._lock:
            self.notes.sent.append(sent)
        return sent

    def _is_to_break(self) -> bool:
        with self._lock:
            return self._left is not None and self._left <= 0

    def _send_half(
        self, request: http.server.BaseHTTPRequestHandler, headers: dict[str, str], body: bytes
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.service_port, timeout=30)
        connection.putrequest(request.command, request.path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        connection.send(body[: len(body) // 2])
        connection.close()


class SlowLink:
    """Passes so many bytes a second of each connection to the service, and everything back."""

    PIECE = 16 * 1024

    def __init__(self, service_port: int, bytes_per_second: int) -> None:
        self._service_port = service_port
        self._bytes_per_second = bytes_per_second
        # Bytes that went to the service on all connections.
        self.byte_count = 0
        self._lock = threading.Lock()
        self._listener = socket.socket()
        # The link would be fast for as many bytes as fit into its buffers.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.PIECE)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "SlowLink":
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept is not woken by close alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # The listener is closed.
            while True:
                client, _ = self._listener.accept()
                service = socket.create_connection(("127.0.0.1", self._service_port))
                pause = self.PIECE / self._bytes_per_second
                for source, target, seconds in ((client, service, pause), (service, client, 0)):
                    threading.Thread(target=self._pass, args=(source, target, seconds), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, seconds: float) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(self.PIECE):
                target.sendall(piece)
                if seconds:
                    with self._lock:
                        self.byte_count += len(piece)
                    time.sleep(seconds)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

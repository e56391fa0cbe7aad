"""A small HTTP server in memory on which the two reference servers stand. Only for the suite's own test."""

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 16 * 1024


class Broken(Exception):
    """The connection ended before the body did."""


class Refusal(Exception):
    """Ends a request with this answer."""

    def __init__(self, status: int, fields: dict[str, str] | None = None, body: bytes = b"") -> None:
        super().__init__(status)
        self.reply = Reply(status, fields or {}, body)


@dataclass
class Reply:
    status: int
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Upload:
    """The state of an upload in both protocols."""

    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    data: bytearray = field(default_factory=bytearray)
    length: int | None = None
    complete: bool = False
    metadata: str | None = None
    digest: str | None = None
    concat: str | None = None
    parts: list["Upload"] = field(default_factory=list)
    expires: float = 0.0
    # The request that may write. A newer one takes its place.
    writer: object = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def begin(self) -> object:
        with self.lock:
            self.writer = object()
            return self.writer

    def write(self, writer: object, piece: bytes) -> bool:
        """Appends unless a newer request has taken over."""
        with self.lock:
            if self.writer is not writer:
                return False
            self.data += piece
            return True


class Request:
    """A request whose body is read when it is asked for."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.handler = handler
        self.method = handler.command
        self.path = handler.path
        self.trailers: dict[str, str] = {}
        self.body_read = False

    def get(self, name: str) -> str | None:
        return self.handler.headers.get(name)

    @property
    def length(self) -> int | None:
        text = self.get("Content-Length")
        return None if text is None else int(text)

    def interim(self, status: int, fields: dict[str, str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.handler.wfile.write(f"HTTP/1.1 {status} Interim\r\n{lines}\r\n".encode("latin-1"))
        self.handler.wfile.flush()

    def pieces(self) -> Iterator[bytes]:
        self.body_read = True
        if "chunked" in (self.get("Transfer-Encoding") or ""):
            yield from self._chunks()
        else:
            left = self.length or 0
            while left:
                piece = self.handler.rfile.read1(min(left, PIECE))
                if not piece:
                    raise Broken
                left -= len(piece)
                yield piece

    def _chunks(self) -> Iterator[bytes]:
        read = self.handler.rfile
        while count := int(read.readline().strip() or b"0", 16):
            yield read.read(count)
            read.readline()
        while line := read.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            self.trailers[name.strip().lower()] = value.strip()


class Application:
    """Answers requests. Mutants replace its steps."""

    # Whether 100 (Continue) is sent to those who wait for it.
    continues = True

    def handle(self, request: Request) -> Reply:
        try:
            reply = self.answer(request)
        except Refusal as refusal:
            reply = refusal.reply
        return self.mend(request, reply)

    def answer(self, request: Request) -> Reply:
        raise NotImplementedError

    def mend(self, request: Request, reply: Reply) -> Reply:
        """The last word on every answer."""
        return reply


def serve(application: Application) -> ThreadingHTTPServer:
    """Serves on a free port of loopback, in a thread, until `shutdown`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Says nothing."""

        def handle_expect_100(self) -> bool:
            return super().handle_expect_100() if application.continues else True

        def respond(self) -> None:
            self.close_connection = True
            request = Request(self)
            try:
                reply = application.handle(request)
            except (Broken, ConnectionError):
                return
            self.send_response(reply.status)
            for name, value in reply.fields.items():
                self.send_header(name, value)
            if reply.status not in (204, 304):
                self.send_header("Content-Length", str(len(reply.body)))
            self.send_header("Connection", "close")
            self.end_headers()
            if request.method != "HEAD":
                self.wfile.write(reply.body)
            if not request.body_read:
                self.drain()

        def drain(self) -> None:
            """Takes what is still coming, so that closing does not destroy the answer on its way."""
            self.connection.settimeout(0.05)
            try:
                while self.connection.recv(PIECE):
                    pass
            except OSError:
                pass

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = respond

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server

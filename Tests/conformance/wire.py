"""HTTP/1.1 as bytes on a socket, for tests that must see what clients hide.

Ordinary clients throw interim answers away, finish a body although the answer is already there, and cannot
break off in the middle. Here every request has a connection of its own, and all of this shows.
"""

import select
import socket
import ssl
import time
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

PIECE = 64 * 1024
# How long a server that did not answer may take to come to itself, in seconds.
RECOVERY = 60.0
# Redirects in a row that a download may take.
LONGEST_JOURNEY = 4
LARGEST_HEAD = 64 * 1024


class WireError(Exception):
    """The server did not answer, or what it sent is not HTTP."""


class NoConnection(WireError):
    """No server accepts connections there, or none any more."""


@dataclass
class Answer:
    """One message from the server: a final answer with those before it, or an interim one."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes = b""
    interim: list["Answer"] = field(default_factory=list)
    # Bytes of the body that were sent before the answer came.
    sent: int = 0
    seconds: float = 0.0

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def get(self, name: str) -> str | None:
        """The field's value; several lines are joined by commas, as HTTP reads them."""
        values = [value for key, value in self.fields if key == name.lower()]
        return ", ".join(values) if values else None

    def interim_with(self, status: int) -> list["Answer"]:
        return [answer for answer in self.interim if answer.status == status]


@dataclass
class Settings:
    """Settings of every request to the server under test."""

    timeout: float = 15.0
    fields: dict[str, str] = field(default_factory=dict)
    verify: bool = True


class Connection:
    """One connection for one request."""

    def __init__(self, url: str, settings: Settings) -> None:
        parts = urlsplit(url)
        self.url = url
        self.settings = settings
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.host = parts.netloc.rpartition("@")[2]
        self.buffer = b""
        self.interim: list[Answer] = []
        self.started = time.monotonic()
        secure = parts.scheme == "https"
        try:
            self.socket = socket.create_connection(
                (parts.hostname, parts.port or (443 if secure else 80)), settings.timeout)
            if secure:
                self.socket = self._tls().wrap_socket(self.socket, server_hostname=parts.hostname)
        except OSError as error:
            raise NoConnection(f"no connection to {parts.netloc}: {error}") from error

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if not self.settings.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # Sending

    def send_head(self, method: str, fields: dict[str, str]) -> None:
        """The request line and the fields; those of the settings come first and give way."""
        # An answer to an overridden method may be framed as that method's or as the real one's.
        self.method = fields.get("X-HTTP-Method-Override", method)
        given = {name.lower() for name in fields}
        common = {"Host": self.host, "Connection": "close", **self.settings.fields}
        merged = {name: value for name, value in common.items() if name.lower() not in given}
        lines = [f"{method} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**merged, **fields}.items()]
        self.send("\r\n".join(lines).encode("utf-8") + b"\r\n\r\n")

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise WireError(f"the connection broke while sending: {error}") from error

    def send_body(self, body: bytes) -> int:
        """Sends the body piece by piece until it ends or the final answer comes; returns how much was sent."""
        sent = 0
        while sent < len(body):
            if self._has_final():
                break
            try:
                self.socket.sendall(body[sent : sent + PIECE])
            except OSError:
                # An early answer may be in the buffer although the server reads no more.
                break
            sent = min(sent + PIECE, len(body))
        return sent

    def send_chunked(self, body: bytes, trailers: dict[str, str]) -> None:
        for start in range(0, len(body), PIECE):
            piece = body[start : start + PIECE]
            self.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers.items())
        self.send(b"0\r\n" + lines.encode() + b"\r\n")

    def settle(self) -> None:
        """Gives sent bytes the time to arrive, because a connection that dies loses those under way."""
        time.sleep(0.2)

    # Receiving

    def can_read(self, seconds: float) -> bool:
        if self.buffer or (isinstance(self.socket, ssl.SSLSocket) and self.socket.pending()):
            return True
        return bool(select.select([self.socket], [], [], seconds)[0])

    def _more(self) -> bool:
        try:
            data = self.socket.recv(PIECE)
        except TimeoutError as error:
            raise WireError(f"no answer within {self.settings.timeout:g} s") from error
        except OSError as error:
            raise WireError(f"the connection broke while receiving: {error}") from error
        self.buffer += data
        return bool(data)

    def _until(self, end: bytes) -> bytes:
        while end not in self.buffer:
            if len(self.buffer) > LARGEST_HEAD:
                raise WireError("the head of the answer does not end")
            if not self._more():
                raise WireError("the connection was closed before an answer came")
        found, _, self.buffer = self.buffer.partition(end)
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not self._more():
                raise WireError(f"the body ends after {len(self.buffer)} of {count} bytes")
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read_head(self) -> Answer:
        """The next message's status and fields, interim or final."""
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        parts = lines[0].split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
            raise WireError(f"not a status line: {lines[0]!r}")
        fields = []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise WireError(f"not a field line: {line!r}")
            fields.append((name.strip().lower(), value.strip()))
        return Answer(int(parts[1]), fields)

    def _has_final(self) -> bool:
        """Whether the final answer, or the end, is there already; takes interim answers out of the way."""
        while self.can_read(0):
            if b"\r\n\r\n" not in self.buffer:
                if not self._more():
                    return True
            elif self.buffer.split(b" ", 2)[1].startswith(b"1"):
                self.interim.append(self.read_head())
            else:
                return True
        return False

    def read_interim(self, seconds: float) -> Answer | None:
        """The next interim answer if one comes in time; it is kept for the final answer, too."""
        if not self.can_read(seconds):
            return None
        head = self.read_head()
        if head.status >= 200:
            raise WireError(f"the final answer {head.status} came where an interim one was awaited")
        self.interim.append(head)
        return head

    def read_answer(self) -> Answer:
        """The final answer with its body, and all interim ones that came before it."""
        while (answer := self.read_head()).status < 200:
            self.interim.append(answer)
        answer.interim = self.interim
        answer.body = self._read_body(answer)
        answer.seconds = time.monotonic() - self.started
        return answer

    def _read_body(self, answer: Answer) -> bytes:
        if self.method == "HEAD" or answer.status in (204, 304):
            return b""
        if "chunked" in (answer.get("transfer-encoding") or ""):
            return self._read_chunks()
        length = answer.get("content-length")
        if length is not None:
            if not length.isdigit():
                raise WireError(f"Content-Length is {length!r}")
            return self._exactly(int(length))
        while self._more():
            pass
        return self.buffer

    def _read_chunks(self) -> bytes:
        body = b""
        while count := int(self._until(b"\r\n").partition(b";")[0], 16):
            body += self._exactly(count)
            self._exactly(2)
        while self._until(b"\r\n"):
            pass
        return body


def ask(
    url: str,
    method: str,
    fields: dict[str, str],
    settings: Settings,
    body: bytes | None = None,
    trailers: dict[str, str] | None = None,
    chunked: bool = False,
) -> Answer:
    """One request and its final answer. Without a body no Content-Length is sent."""
    fields = dict(fields)
    chunked = chunked or trailers is not None
    with Connection(url, settings) as connection:
        if chunked:
            fields["Transfer-Encoding"] = "chunked"
        elif body is not None:
            fields.setdefault("Content-Length", str(len(body)))
        if trailers:
            fields["Trailer"] = ", ".join(trailers)
        connection.send_head(method, fields)
        sent = 0
        if chunked:
            connection.send_chunked(body or b"", trailers or {})
        elif body:
            sent = connection.send_body(body)
        answer = connection.read_answer()
        answer.sent = sent
        return answer


def fetch(url: str, fields: dict[str, str], settings: Settings) -> Answer:
    """GET, wherever the server sends its readers. Others than it are shown the range, and nothing else."""
    answer = ask(url, "GET", fields, settings)
    elsewhere = Settings(settings.timeout, verify=settings.verify)
    for _ in range(LONGEST_JOURNEY):
        if answer.status not in (301, 302, 303, 307, 308) or "Location" not in answer:
            break
        url = resolve(url, answer.get("Location") or "")
        answer = ask(url, "GET", {"Range": fields["Range"]} if "Range" in fields else {}, elsewhere)
    return answer


def wait_for_answer(url: str, settings: Settings) -> None:
    """Waits for a server that is busy with what was done to it; gives up in silence."""
    deadline = time.monotonic() + RECOVERY
    while time.monotonic() < deadline:
        try:
            ask(url, "OPTIONS", {}, settings)
            return
        except NoConnection:
            return
        except WireError:
            time.sleep(0.2)


def resolve(url: str, location: str) -> str:
    """The upload's address from a Location, which may be relative to the request's."""
    return urljoin(url, location)


def like(url: str) -> str:
    """Returns an address of the same form for no upload: one letter or digit of the last part differs."""
    before, slash, name = url.rstrip("/").rpartition("/")
    place = next(index for index in range(len(name) // 3, len(name)) if name[index].isalnum())
    other = "1" if name[place] != "1" else "2"
    return before + slash + name[:place] + other + name[place + 1 :]

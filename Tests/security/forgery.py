"""Links that were changed, and links that are used by many requests at once."""

import itertools
import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO

from world import CONTENT, JSON, TUS, Answer, Fields, World, encoded, expect

UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
RACERS = 50


def in_query(data: bytes) -> str:
    """Writes a byte as it is where a query permits that, and percent-encoded otherwise."""
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in data)


def changed(link: str) -> Iterator[tuple[str, bytes]]:
    """Yields every truncation of a link at either end, and the link with each of its bits flipped."""
    data = link.encode()
    for length in range(len(data)):
        yield f"its first {length} characters", data[:length]
        yield f"without its first {length + 1} characters", data[length + 1:]
    for place in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        yield f"with bit {place} flipped", bytes(flipped)


class Forgery:
    """Sends links that no service has signed."""

    def __init__(self, world: World, step: int) -> None:
        """Sends one of `step` changes in a row."""
        self.world = world
        self._step = step

    def run(self) -> int:
        """Sends the forgeries; returns their number."""
        upload = self.world.complete_upload()
        # None has a body: the service may end a connection whose body it has refused.
        requests: list[tuple[str, str, Fields, str]] = [
            ("POST", "/tus/", [*TUS, ("Upload-Length", "9")], self.world.link("put")),
            ("GET", f"/uploads/sessions/{upload.session}", [], self.world.link("session", sessionId=upload.session)),
            ("GET", f"/files/{upload.file}/meta", [], self.world.link("get", fileId=upload.file)),
        ]
        failures: list[str] = []
        count = 0
        for method, path, fields, link in requests:
            changes = list(itertools.islice(changed(link), 0, None, self._step))
            paths = [f"{path}?link={in_query(data)}" for _, data in changes]
            for (name, _), answer in zip(changes, self._pipelined(method, paths, fields), strict=True):
                count += 1
                self.world.transcript.add(f"{method} {path}", answer, False)
                if str(answer) != "403 LINK_INVALID":
                    failures.append(f"{method} {path}, a link {name}: {answer}")
            # Only now, because the first use of a put link is its last.
            answer = self.world.ask(method, f"{path}?link={link}", fields)
            expect(answer.status in (200, 201), f"{method} {path} with the link itself: {answer}")
        expect(not failures, f"{len(failures)} forged links passed or failed otherwise:\n  "
               + "\n  ".join(failures[:20]))
        return count

    def _pipelined(self, method: str, paths: list[str], fields: Fields) -> Iterator[Answer]:
        """Sends requests before the answers to earlier ones have come, which saves most of the time."""
        lines = [f"{name}: {value}" for name, value in [("Host", "127.0.0.1"), *fields]]
        rest = "\r\n".join([*lines, "", ""])
        with (
            socket.create_connection(("127.0.0.1", self.world.node.port), timeout=60) as connection,
            connection.makefile("rb") as stream,
        ):
            for batch in _batches(paths, 50):
                connection.sendall("".join(f"{method} {path} HTTP/1.1\r\n{rest}" for path in batch).encode())
                for _ in batch:
                    yield _answer(stream)


def _batches(paths: list[str], count: int) -> Iterator[list[str]]:
    for start in range(0, len(paths), count):
        yield paths[start: start + count]


def _answer(stream: BinaryIO) -> Answer:
    """Reads an answer with an announced length."""
    status = stream.readline().split(b" ", 2)
    expect(len(status) > 1, "a connection has ended before its answers")
    fields = []
    while line := stream.readline().rstrip():
        name, _, value = line.decode().partition(": ")
        fields.append((name, value))
    length = next((value for name, value in fields if name.lower() == "content-length"), "0")
    return Answer(int(status[1]), fields, stream.read(int(length)))


class Races:
    """Uses one-use links by many requests at once."""

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self) -> int:
        """Runs all races; returns the number of requests."""
        def native(number: int) -> tuple[str, Fields, bytes]:
            return "/uploads/sessions", JSON, encoded({"fileName": f"race-{number}", "fileSize": len(CONTENT)})

        def tus(number: int) -> tuple[str, Fields, bytes]:
            return "/tus/", [*TUS, ("Upload-Length", str(len(CONTENT) + number))], b""

        def whole(number: int) -> tuple[str, Fields, bytes]:
            fields = [("Content-Type", "text/plain"),
                      ("Content-Disposition", f'attachment; filename="race-{number}"')]
            return "/files", fields, CONTENT

        def resumable(number: int) -> tuple[str, Fields, bytes]:
            fields = [("Upload-Complete", "?0"), ("Upload-Length", str(len(CONTENT) + number))]
            return "/files", fields, CONTENT[:9]

        for name, request in {"native": native, "tus": tus, "whole file": whole, "IETF": resumable}.items():
            self._race(f"{name}, different requests", [request(number) for number in range(RACERS)])
            self._race(f"{name}, equal requests", [request(0)] * RACERS)
        return 8 * RACERS

    def _race(self, name: str, requests: list[tuple[str, Fields, bytes]]) -> None:
        link = self.world.link("put")
        before = self._upload_ids()
        answers: list[Answer | BaseException] = []
        start = threading.Barrier(RACERS)

        def create(path: str, fields: Fields, body: bytes) -> None:
            connection = self.world.connect()
            try:
                start.wait(60)
                answers.append(connection.ask("POST", f"{path}?link={link}", fields, body))
            except Exception as error:
                answers.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=create, args=request) for request in requests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        summary = sorted({str(answer) for answer in answers})
        made = self._upload_ids() - before
        expect(len(made) == 1, f"race, {name}: {len(made)} uploads by a one-use link; {summary}")
        self._note_links(answers)
        accepted = [answer for answer in answers if isinstance(answer, Answer) and answer.status == 201]
        expect(bool(accepted), f"race, {name}: no request succeeded; {summary}")
        if requests[0] != requests[1]:
            expect(len(accepted) == 1, f"race, {name}: {len(accepted)} requests succeeded; {summary}")
            # A bucket takes fewer bodies at once than there are requests.
            expect(set(summary) <= {"201", "403 LINK_EXPIRED", "429 BUSY"}, f"race, {name}: {summary}")

    def _upload_ids(self) -> set[str]:
        """The ids of all sessions and files of the owner."""
        found = set()
        for path, members, member in [("/uploads/sessions", "sessions", "sessionId"),
                                      ("/files", "files", "remoteFileId")]:
            after = ""
            while True:
                page = self.world.made(200, "GET", f"{path}?limit=100{after}", []).json()
                found |= {item[member] for item in page[members]}
                if not page.get("next"):
                    break
                after = f"&after={page['next']}"
        return found

    def _note_links(self, answers: list[Answer | BaseException]) -> None:
        """Adds the links in the answers to the secrets."""
        for answer in answers:
            if isinstance(answer, Answer) and answer.status == 201:
                text = answer.field("Location").partition("?link=")[2]
                if text:
                    self.world.add_link(text)

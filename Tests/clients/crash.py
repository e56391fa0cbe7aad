"""Kills the service in the middle of a PATCH, in tus and in the IETF protocol."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ietf import Dialect, IetfServer
from service import Service, Source, Violation, expect
from tus import MEDIA_TYPE, TusServer
from wire import Connection, Settings, WireError

PIECE = 256 * 1024
# How long a whole file takes; much longer than the service lives.
PACE_SECONDS = 6.0
SETTINGS = Settings(timeout=30)


class TusClient:
    """The requests of tus that the test needs."""

    name = "tus"

    def __init__(self, service: Service) -> None:
        self.server = TusServer(service.url + "/tus/", SETTINGS)

    def create(self, length: int) -> str:
        return self.server.create(length)

    def offset(self, url: str) -> int:
        return self.server.offset(url)

    def fields(self, offset: int) -> dict[str, str]:
        return self.server.fields({"Upload_Offset": str(offset), "Content_Type": MEDIA_TYPE})

    def finish(self, url: str, offset: int, data: bytes) -> str:
        answer = self.server.patch(url, offset, data)
        expect(answer.status == 204, f"PATCH of the rest: {answer.status}")
        return url


class IetfClient:
    """The requests of IETF uploads that the test needs."""

    name = "IETF"

    def __init__(self, service: Service) -> None:
        self.server = IetfServer(service.url + "/files", Dialect(9), SETTINGS)

    def create(self, length: int) -> str:
        return self.server.create(length)

    def offset(self, url: str) -> int:
        return self.server.state(url)[0]

    def fields(self, offset: int) -> dict[str, str]:
        return self.server.fields(
            True, offset, more={"Content_Type": self.server.dialect.media_type})

    def finish(self, url: str, offset: int, data: bytes) -> str:
        answer = self.server.patch(url, offset, data, True)
        expect(200 <= answer.status < 300, f"the last append: {answer.status}")
        return self.server.url + "/" + (
            answer.get("Content-Location") or answer.get("Location") or "").rpartition("/")[2]


class Sending(threading.Thread):
    """A PATCH of all that is left, at a pace, until it ends or the service does."""

    def __init__(self, client: TusClient | IetfClient, url: str, offset: int, source: Source) -> None:
        super().__init__(daemon=True)
        self.client, self.url, self.offset, self.source = client, url, offset, source
        # One past the last byte that the system was asked to send.
        self.end = offset

    def run(self) -> None:
        left = self.source.byte_count - self.offset
        pause = PACE_SECONDS * PIECE / self.source.byte_count
        try:
            with Connection(self.url, SETTINGS) as connection:
                fields = {**self.client.fields(self.offset), "Content-Length": str(left)}
                connection.send_head("PATCH", fields)
                while self.end < self.source.byte_count:
                    piece = self.source.read(self.end, PIECE)
                    self.end += len(piece)
                    connection.send(piece)
                    time.sleep(pause)
        except WireError:
            pass  # the service was killed, which is what this is for


class Trial:
    """One upload that is hit again and again."""

    def __init__(self, service: Service, client: TusClient | IetfClient, source: Source,
                 chooser: random.Random) -> None:
        self.service, self.client, self.source, self.chooser = service, client, source, chooser
        self.url = client.create(source.byte_count)
        self.announced = 0

    def round(self) -> None:
        """Kills the service in the middle of a PATCH that goes on from an announced offset."""
        # Asking makes the service acknowledge what came before, which it must not invalidate afterwards.
        with self._sending():
            self._announce(self.announced, self.source.byte_count)
        promised = self.announced
        with self._sending() as sending:
            expect(sending.is_alive(), "the PATCH ended before the service was killed")
            self.service.kill()
        self.service.start()
        self._announce(promised, sending.end)
        # The announced bytes were durable, and there were no others: the offset is neither lower nor higher.
        self.service.kill()
        self.service.start()
        self._announce(self.announced, self.announced)

    @contextmanager
    def _sending(self) -> Iterator[Sending]:
        sending = Sending(self.client, self.url, self.announced, self.source)
        sending.start()
        time.sleep(self.chooser.uniform(0.2, 0.5))
        yield sending
        sending.join(10)
        if sending.is_alive():
            raise Violation("a PATCH that was ended does not end")

    def _announce(self, least: int, most: int) -> None:
        offset = self.client.offset(self.url)
        if not least <= offset <= most:
            raise Violation(f"the service announces {offset}; it must be {least} to {most}")
        self.announced = offset


def check_crash(service: Service, client: TusClient | IetfClient, source: Source,
                chooser: random.Random, rounds: int = 3) -> tuple[str, int]:
    """Kills the service twice a round; returns where the upload can be downloaded, and the offset from which
    it went on after the last kill."""
    trial = Trial(service, client, source, chooser)
    for _ in range(rounds):
        trial.round()
    expect(trial.announced > 0, "nothing was announced before the kills")
    return client.finish(trial.url, trial.announced, source.read(trial.announced)), trial.announced

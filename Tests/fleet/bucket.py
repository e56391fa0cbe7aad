"""The object store of a fleet, which can be made to answer 503."""

import contextlib
from pathlib import Path

from nodes import Gate
from object_stores import ObjectStore, RcloneServer, StubServer


class Bucket:
    """A stand-in, or rclone behind a gate."""

    def __init__(self, kind: str, directory: Path, cleanup: contextlib.ExitStack) -> None:
        self.store: StubServer | RcloneServer
        self.stub: StubServer | None = None
        self._gate: Gate | None = None
        if kind == "stub":
            self.store = self.stub = StubServer()
            cleanup.callback(self.store.stop)
            port = self.store.port
        else:
            self.store = RcloneServer()
            cleanup.callback(self.store.stop)
            self._gate = Gate(directory / "gate", self.store.port)
            cleanup.callback(self._gate.stop)
            port = self._gate.port
        self.url = self.address(self.store, port)
        self.environment = self.credentials(self.store)

    @staticmethod
    def address(store: ObjectStore, port: int) -> str:
        """Returns the value for `kedge serve --bytes`."""
        return f"s3://{store.bucket}?endpoint=http://127.0.0.1:{port}"

    @staticmethod
    def credentials(store: ObjectStore) -> dict[str, str]:
        """The environment that a node needs."""
        return {
            "AWS_ACCESS_KEY_ID": store.access_key, "AWS_SECRET_ACCESS_KEY": store.secret_key,
            "AWS_REGION": "us-east-1",
        }

    def shut(self) -> None:
        """From now on everything is answered 503."""
        if self.stub is not None:
            self.stub.fail({"operation": "*", "action": "status", "status": 503, "code": "SlowDown"})
        elif self._gate is not None:
            self._gate.shut()

    def open(self) -> None:
        """From now on it works again."""
        if self.stub is not None:
            self.stub.heal()
        elif self._gate is not None:
            self._gate.open()

    def left(self) -> list[str]:
        """Everything that is stored."""
        return self.store.left()

    def outage_count(self) -> int | None:
        """Requests that met the outage; None when the store does not count them."""
        return None if self.stub is None else int(self.stub.state()["faults"].get("status", 0))

    def refusals(self) -> dict[str, int]:
        """Requests that the stand-in found wrong, by code."""
        return {} if self.stub is None else dict(self.stub.state()["errors"])

"""Every mix of stores: SQLite or PostgreSQL for rows, disk or a bucket for bytes, and a bucket that sends
readers to itself."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bucket import Bucket
from postgres import PostgresServer
from transfers import Violation


@dataclass(frozen=True)
class StoreMix:
    """Where one node keeps rows and bytes."""

    name: str
    rows: str
    bytes: str
    # With what the node shows itself to the bucket.
    environment: dict[str, str]

    @property
    def options(self) -> list[str]:
        """Options of `kedge serve`, `fsck` and `scrub` for these stores."""
        return ["--metadata", self.rows, "--bytes", self.bytes]

    @property
    def shares_rows(self) -> bool:
        """Whether another node can have the same rows."""
        return self.rows != "sqlite"

    @property
    def redirects(self) -> bool:
        """Whether readers are sent to the bucket."""
        return "redirect=on" in self.bytes

    @property
    def prefix(self) -> str | None:
        """The mix's part of the bucket; none with bytes on disk."""
        return None if self.bytes == "disk" else self.bytes.partition("?")[0].split("/", 3)[3]

    def check_whole(self, binary: Path, data: Path, commands: Sequence[str] = ("fsck", "scrub")) -> None:
        """Runs the commands while no node runs; raises `Violation` when they find anything."""
        for command in commands:
            done = subprocess.run(
                [binary, command, "--data", data, *self.options], capture_output=True, text=True,
                env={"PATH": "/usr/bin:/bin", "HOME": str(data.parent)} | self.environment, timeout=120)
            if done.returncode != 0:
                raise Violation(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")


class Stores:
    """The servers that the mixes need, until `cleanup` ends."""

    def __init__(self, directory: Path, cleanup: contextlib.ExitStack) -> None:
        self._database = PostgresServer()
        cleanup.callback(self._database.stop)
        self.bucket = Bucket("stub", directory, cleanup)

    def mixes(self, purpose: str = "") -> Iterator[StoreMix]:
        """Each mix, empty: with a database and a part of the bucket of its own for each purpose."""
        address, _, query = self.bucket.url.partition("?")
        objects = f"{address}/{{}}?{query}"
        places = {"disk": "disk", "a bucket": objects, "a bucket that redirects": objects + "&redirect=on"}
        for row_name, make_rows in (("SQLite", lambda: "sqlite"), ("PostgreSQL", self._database.make_database)):
            for byte_name, template in places.items():
                name = f"{row_name} and {byte_name}"
                slug = f"{name} {purpose}".strip().replace(" ", "-").lower()
                yield StoreMix(name, make_rows(), template.format(slug), self.bucket.environment)

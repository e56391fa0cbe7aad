"""Compares an upload through one node to an object store with rclone's to the same store.

    throughput.py --binary KEDGE [--mib M] [--runs N] [--least RATIO]

The store is `rclone serve s3`, the records are in PostgreSQL, everything is on this machine. The runs of both
alternate. Fails when the median of the node's rates is less than that part of rclone's.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from bucket import Bucket  # noqa: E402
from nodes import Node, wait_for  # noqa: E402
from object_stores import ObjectStore, RcloneServer  # noqa: E402
from postgres import PostgresServer  # noqa: E402
from processes import VENV_PROGRAMS, Scratch, Unavailable, find_program  # noqa: E402
from transfers import Client, Source, Violation  # noqa: E402


class Rclone:
    """The client that Kedge is compared with."""

    def __init__(self, store: ObjectStore, directory: Path) -> None:
        self._program = find_program("rclone", VENV_PROGRAMS)
        self._target = f"store:{store.bucket}/rclone-file"
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(directory), "RCLONE_CONFIG": "/dev/null",
            "RCLONE_CONFIG_STORE_TYPE": "s3", "RCLONE_CONFIG_STORE_PROVIDER": "Rclone",
            "RCLONE_CONFIG_STORE_ENDPOINT": store.endpoint,
            "RCLONE_CONFIG_STORE_ACCESS_KEY_ID": store.access_key,
            "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY": store.secret_key,
        }

    def upload(self, source: Source) -> None:
        """Uploads the file."""
        self._run("copyto", source.path, self._target)

    def delete(self) -> None:
        """Deletes what was uploaded."""
        self._run("deletefile", self._target)

    def _run(self, *arguments: str | Path) -> None:
        done = subprocess.run(
            [self._program, *arguments], env=self._environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise Violation(f"rclone {arguments[0]}: {done.stderr}")


class Comparison:
    """Both ways to the same store."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack
    ) -> None:
        self._options = options
        self._directory = directory
        self._store = RcloneServer()
        cleanup.callback(self._store.stop)
        database = PostgresServer()
        cleanup.callback(database.stop)
        places = ["--metadata", database.url, "--bytes", Bucket.address(self._store, self._store.port)]
        self._node = Node(
            options.binary, directory, [*places, "--sweep-interval-seconds", "1"],
            Bucket.credentials(self._store))
        cleanup.callback(self._node.kill)
        self._node.start()
        self._node.wait_until_ready()
        self._client = Client(options.binary, directory, f"http://127.0.0.1:{self._node.port}")
        self._rclone = Rclone(self._store, directory)

    def run(self) -> float:
        """The ratio of the medians."""
        rates: dict[str, list[float]] = {"kedge": [], "rclone": []}
        for number in range(self._options.runs):
            # Another file each time: bytes that are known already would only be compared.
            source = Source(self._directory / f"file-{number}", f"throughput-{number}", self._options.mib)
            for name in ("kedge", "rclone") if number % 2 == 0 else ("rclone", "kedge"):
                rate = self._kedge_rate(source) if name == "kedge" else self._rclone_rate(source)
                print(f"{name:<7} {rate:6.1f} MiB/s", flush=True)
                rates[name].append(rate)
            source.path.unlink()
        kedge, rclone = statistics.median(rates["kedge"]), statistics.median(rates["rclone"])
        print(f"medians of {self._options.runs}: kedge {kedge:.1f}, rclone {rclone:.1f} MiB/s")
        return kedge / rclone

    def _kedge_rate(self, source: Source) -> float:
        begun = self._begin()
        upload = self._client.upload(source)
        try:
            upload.child.process.wait()
        finally:
            upload.child.end(signal.SIGKILL)
        rate = self._options.mib / (time.monotonic() - begun)
        upload.check()
        self._client.delete(upload)
        if not wait_for(lambda: not self._store.left(), 120):
            raise Violation(f"a deleted file stays in the bucket: {self._store.left()}")
        return rate

    def _rclone_rate(self, source: Source) -> float:
        begun = self._begin()
        self._rclone.upload(source)
        rate = self._options.mib / (time.monotonic() - begun)
        self._rclone.delete()
        return rate

    def _begin(self) -> float:
        """Syncs all earlier writes, so that this measurement does not wait for them, and returns the time."""
        os.sync()
        return time.monotonic()


def main() -> int:
    """Compares; what was started ends, however it goes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=lambda path: Path(path).resolve(), required=True)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.8, help="part of rclone's rate that is enough")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    scratch = Scratch("throughput")
    try:
        with contextlib.ExitStack() as cleanup:
            ratio = Comparison(options, scratch.path, cleanup).run()
    except KeyboardInterrupt:
        print("throughput: interrupted", file=sys.stderr)
        return 130
    except (Violation, Unavailable) as error:
        print(f"throughput: {error}", file=sys.stderr)
        return 1
    finally:
        scratch.remove()
    print(f"throughput: {ratio:.2f} of rclone's rate, {options.least} is enough")
    return 0 if ratio >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())

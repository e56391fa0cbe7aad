"""Shows that every mix of stores does the same.

    mixes.py --binary KEDGE [--mib M]

SQLite or PostgreSQL for rows, disk or a bucket for bytes, and a bucket that sends readers to itself: each takes a file
while its node is killed, gives it back, and is found whole by `kedge fsck` and `kedge scrub`. Rows that are about
other bytes are refused.
"""

import argparse
import contextlib
import hashlib
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from bucket import Bucket  # noqa: E402
from nodes import Node, wait_for  # noqa: E402
from postgres import PostgresServer  # noqa: E402
from processes import Scratch, Unavailable  # noqa: E402
from transfers import Client, Source, Violation  # noqa: E402


class Mix:
    """One node on one mix of stores."""

    def __init__(
        self, binary: Path, directory: Path, places: list[str], environment: dict[str, str]
    ) -> None:
        directory.mkdir()
        self.directory = directory
        self._binary = binary
        self._places = places
        self._environment = environment
        self.node = Node(binary, directory, places, environment)

    def check(self, source: Source) -> None:
        """Brings a file in and out; raises `Violation`."""
        self.node.start()
        self.node.wait_until_ready()
        client = Client(self._binary, self.directory, f"http://127.0.0.1:{self.node.port}")
        upload = client.upload(source)
        time.sleep(0.4)
        was_running = upload.is_running
        self.node.kill()
        self.node.start()
        if not wait_for(lambda: not upload.is_running, 120):
            raise Violation("the upload does not end")
        upload.check()
        client.check_download(upload, self.directory / "copy")
        self._check_plain_get(upload.file_id, source)
        self.node.kill()
        for command in ("fsck", "scrub"):
            self._run_check(command)
        moment = "during" if was_running else "after"
        print(f"  killed {moment} the upload; downloads, fsck and scrub: whole", flush=True)

    def _check_plain_get(self, file_id: str, source: Source) -> None:
        """What a browser would do, redirects and all."""
        url = f"http://127.0.0.1:{self.node.port}/files/{file_id}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            found = hashlib.file_digest(answer, "sha256").hexdigest()
            was_redirected = answer.geturl() != url
        if found != source.sha256:
            raise Violation("a plain GET gives other bytes")
        if was_redirected != any("redirect=on" in place for place in self._places):
            raise Violation(f"redirected: {was_redirected}")

    def _run_check(self, command: str) -> None:
        data = ["--data", str(self.directory / f"node-{self.node.port}")]
        done = subprocess.run(
            [self._binary, command, *data, *self._places], capture_output=True, text=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory)} | self._environment,
            timeout=120)
        if done.returncode != 0:
            raise Violation(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")

    def expect_refusal(self, what: str) -> None:
        """A node on these places does not start; raises `Violation` when it does."""
        self.node.start()
        assert self.node.child is not None
        if not wait_for(lambda: self.node.child is not None and not self.node.child.is_running, 30):
            raise Violation(f"a node started on {what}")
        if "rows are about bytes in" not in self.node.log.read_text():
            raise Violation(f"a node ended for another reason: {self.node.log.read_text()}")
        print(f"  {what}: refused")


def run(options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack) -> None:
    """All mixes; raises `Violation`."""
    database = PostgresServer()
    cleanup.callback(database.stop)
    bucket = Bucket("stub", directory, cleanup)
    source = Source(directory / "source", "mixes", options.mib)
    rows = {"SQLite": lambda: "sqlite", "PostgreSQL": database.make_database}
    # Each mix has a part of the bucket for itself.
    address = bucket.url.split("?")
    objects = f"{address[0]}/{{}}?{address[1]}"
    redirecting = objects + "&redirect=on"
    places = {"disk": "disk", "a bucket": objects, "a bucket that redirects": redirecting}
    for row_name, metadata in rows.items():
        for byte_name, template in places.items():
            name = f"{row_name} and {byte_name}"
            print(name, flush=True)
            slug = name.replace(" ", "-").lower()
            arguments = ["--metadata", metadata(), "--bytes", template.format(slug)]
            mix = Mix(options.binary, directory / slug, arguments, bucket.environment)
            cleanup.callback(mix.node.kill)
            mix.check(source)
            if row_name == "PostgreSQL":
                other = Mix(options.binary, directory / f"{slug}-2", [
                    *arguments[:3], "disk",
                ], bucket.environment)
                cleanup.callback(other.node.kill)
                other.expect_refusal("its rows with another disk")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=48)
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    try:
        with contextlib.ExitStack() as cleanup:
            scratch = Scratch("mixes")
            cleanup.callback(scratch.remove)
            run(options, scratch.path, cleanup)
    except (Violation, Unavailable) as error:
        sys.exit(f"mixes: {error}")
    print("mixes: all the same")


if __name__ == "__main__":
    main()

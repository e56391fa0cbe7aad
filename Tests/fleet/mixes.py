"""Shows that every mix of stores does the same.

    mixes.py --binary KEDGE [--mib M]

Each takes a file while its node is killed, gives it back, and is found whole by `kedge fsck` and `kedge scrub`. Rows
that are about other bytes are refused. What the protocols promise on every mix is shown by
`Tests/clients/every_mix.py`.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from nodes import Node, wait_for  # noqa: E402
from processes import Scratch, Unavailable  # noqa: E402
from stores import StoreMix, Stores  # noqa: E402
from transfers import Client, Source, Violation  # noqa: E402


class Mix:
    """One node on one mix of stores."""

    def __init__(self, binary: Path, directory: Path, places: StoreMix) -> None:
        directory.mkdir()
        self.directory = directory
        self._binary = binary
        self._places = places
        self.node = Node(binary, directory, places.options, places.environment)

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
        self._places.check_whole(self._binary, self.directory / f"node-{self.node.port}")
        moment = "during" if was_running else "after"
        print(f"  killed {moment} the upload; downloads, fsck and scrub: whole", flush=True)

    def _check_plain_get(self, file_id: str, source: Source) -> None:
        """Downloads as a browser does, and follows redirects."""
        url = f"http://127.0.0.1:{self.node.port}/files/{file_id}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            found = hashlib.file_digest(answer, "sha256").hexdigest()
            was_redirected = answer.geturl() != url
        if found != source.sha256:
            raise Violation("a plain GET gives other bytes")
        if was_redirected != self._places.redirects:
            raise Violation(f"redirected: {was_redirected}")

    def expect_refusal(self, what: str) -> None:
        """A node on these places does not start; raises `Violation` when it does."""
        self.node.start()
        assert self.node.child is not None
        if not wait_for(lambda: self.node.child is not None and not self.node.child.is_running, 30):
            raise Violation(f"a node started on {what}")
        if "rows belong to bytes in" not in self.node.log.read_text():
            raise Violation(f"a node ended for another reason: {self.node.log.read_text()}")
        print(f"  {what}: refused")


def run(options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack) -> None:
    """All mixes; raises `Violation`."""
    source = Source(directory / "source", "mixes", options.mib)
    for number, places in enumerate(Stores(directory, cleanup).mixes()):
        print(places.name, flush=True)
        mix = Mix(options.binary, directory / f"mix-{number}", places)
        cleanup.callback(mix.node.kill)
        mix.check(source)
        if places.shares_rows:
            elsewhere = dataclasses.replace(places, bytes="disk")
            other = Mix(options.binary, directory / f"mix-{number}-elsewhere", elsewhere)
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

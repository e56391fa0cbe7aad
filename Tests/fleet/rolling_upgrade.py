"""Shows that a fleet upgrades node by node, and that the sums of owners are right afterwards.

    rolling_upgrade.py --older KEDGE --newer KEDGE [--uploads N] [--seed N]

Nodes of the version before share a PostgreSQL and a bucket. While uploads run, nodes of the new version join, of which
the first migrates the database, and then the older ones leave. Every request of an upload goes to another node, so an
older one continues the work of a newer one and the other way round: natively, by tus and as IETF uploads, with cancels
and deletes. The commands of both versions upload through a load balancer meanwhile. No client may get an answer that
it does not expect. At the end the sums of the owner must be those of the files and sessions that are left, and
`kedge fsck` must find nothing; it must find a sum that is then made wrong.
"""

import argparse
import contextlib
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "support", "conformance")]

from access_log import AccessLog
from bucket import Bucket
from mixed_traffic import Crowd, Pool, Traffic
from nodes import Balancer, Node
from postgres import PostgresServer
from processes import Scratch, Unavailable
from skipping import skipped
from stores import StoreMix
from transfers import Client, Source, Violation

WORKERS = 6
NODES = 2
OWNER = "anonymous"
MEBIBYTES = 24


class Upgrade:
    """One run."""

    def __init__(self, options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack) -> None:
        self.options = options
        self.directory = directory
        self.cleanup = cleanup
        self.database = PostgresServer()
        cleanup.callback(self.database.stop)
        bucket = Bucket("stub", directory, cleanup)
        self.places = StoreMix("PostgreSQL and a bucket", self.database.url, bucket.url, bucket.environment)
        self.older = [self._node(options.older) for _ in range(NODES)]
        self.newer = [self._node(options.newer) for _ in range(NODES)]
        self.pool = Pool()
        self.traffic = [Traffic(self.pool, f"{options.seed}-{number}") for number in range(WORKERS)]
        self.crowd = Crowd(self.traffic)
        # Files that the commands uploaded.
        self._command_byte_count = 0

    def _node(self, binary: Path) -> Node:
        node = Node(binary, self.directory, self.places.options, self.places.environment)
        self.cleanup.callback(node.kill)
        return node

    def run(self) -> None:
        """All of it; raises `Violation`."""
        self._start(self.older)
        schema = self._schema()
        self.crowd.start()
        self._phase("older", self.older)
        self._start(self.newer)
        if self._schema() == schema:
            raise Violation("the newer version does not migrate; take an older one")
        self._phase("both", self.older + self.newer)
        for node in self.older:
            self._stop(node)
        self._phase("newer", self.newer)
        self.crowd.stop()
        for each in self.traffic:
            each.finish_open()
            each.check_files()
        for node in self.newer:
            self._stop(node)
        self._check_sums()
        self._check_fsck()

    def _start(self, nodes: list[Node]) -> None:
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_until_ready()
            self.pool.add(node)

    def _stop(self, node: Node) -> None:
        """Takes the node out of service, as an operator does."""
        self.pool.remove(node)
        assert node.child is not None
        node.child.end(signal.SIGTERM, 60)
        if node.child.process.returncode != 0:
            raise Violation(f"a node ended with {node.child.process.returncode}: {node.child.complaint()}")

    def _schema(self) -> str:
        return self.database.query("SELECT max(number) FROM schema_migration").strip()

    def _phase(self, name: str, nodes: list[Node]) -> None:
        """Lets both commands transfer a file by these nodes, while the crowd makes its uploads."""
        directory = self.directory / name
        directory.mkdir()
        balancer = Balancer(directory, [node.port for node in nodes])
        self.cleanup.callback(balancer.stop)
        commands = [Client(binary, directory, balancer.url) for binary in (self.options.older, self.options.newer)]
        sources = [Source(directory / f"source-{number}", f"{self.options.seed}-{name}-{number}", MEBIBYTES)
                   for number in range(len(commands))]
        uploads = [command.upload(source) for command, source in zip(commands, sources, strict=True)]
        self.crowd.wait_for(self.options.uploads, 300)
        # The command of the other version downloads it.
        for upload, command in zip(uploads, reversed(commands), strict=True):
            upload.child.process.wait(120)
            upload.check()
            self._command_byte_count += upload.source.byte_count
            command.check_download(upload, directory / "copy")
        balancer.stop()
        self._check_answers(balancer)
        print(f"  {name} nodes: {self.crowd.count} uploads so far, and both commands", flush=True)

    def _check_answers(self, balancer: Balancer) -> None:
        log = AccessLog(balancer.access_log)
        log.read()
        if not log.statuses or max(log.statuses) >= 400:
            raise Violation(f"the commands were answered {log.statuses}")

    def _check_sums(self) -> None:
        """The sums that the database keeps are those that the answers of the service imply."""
        files = [size for each in self.traffic for size in each.files.values()]
        sessions = [size for each in self.traffic for size in each.open.values()]
        parts = [size for each in self.traffic for size in each.parts]
        row = self.database.query(
            f"SELECT stored_bytes, open_sessions, reserved_bytes FROM owner WHERE owner = '{OWNER}'")
        stored, count, reserved = [int(text) for text in row.strip().split("|")]
        expected = (sum(files) + self._command_byte_count, len(sessions) + len(parts))
        if (stored, count) != expected:
            raise Violation(f"stored bytes and open sessions are {stored} and {count}, and not {expected}")
        # A node of the older version does not release the bytes of parts that it puts together.
        if not sum(sessions) <= reserved <= sum(sessions) + sum(parts):
            raise Violation(f"{reserved} bytes are reserved, for sessions of {sum(sessions)} bytes")
        print(f"  {len(files)} files, {len(sessions)} sessions: the sums are right", flush=True)

    def _fsck(self) -> tuple[int, list[str]]:
        """The exit status, and the kinds of findings."""
        done = subprocess.run(
            [self.options.newer, "fsck", "--json", "--data", self.directory / "fsck", *self.places.options],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory)} | self.places.environment,
            capture_output=True, text=True, timeout=120, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if not any(line["type"] == "summary" for line in lines):
            raise Violation(f"fsck ended with {done.returncode}: {done.stderr}")
        return done.returncode, [line["kind"] for line in lines if line["type"] == "finding" and not line["notice"]]

    def _check_fsck(self) -> None:
        status, kinds = self._fsck()
        if status != 0 or kinds:
            raise Violation(f"fsck ended with {status} and finds {kinds}")
        self.database.query(f"UPDATE owner SET stored_bytes = stored_bytes + 1 WHERE owner = '{OWNER}'")
        _, kinds = self._fsck()
        if kinds != ["quotaDrift"]:
            raise Violation(f"fsck finds {kinds} where a sum is wrong")
        print("  fsck: whole", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--older", help="a binary of the version before; without one the test is skipped")
    parser.add_argument("--newer", type=Path, required=True)
    parser.add_argument("--uploads", type=int, default=60, help="least number of uploads in each phase")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    options = parser.parse_args()
    if not options.older:
        return skipped("older-version", "--older names no binary of the version before")
    options.older, options.newer = Path(options.older).resolve(), options.newer.resolve()
    print(f"rolling upgrade, seed {options.seed}", flush=True)
    scratch = Scratch("upgrade")
    try:
        with contextlib.ExitStack() as cleanup:
            Upgrade(options, scratch.path, cleanup).run()
    except (Violation, Unavailable) as error:
        print(f"rolling upgrade, seed {options.seed}: {error}", file=sys.stderr)
        return 1
    finally:
        scratch.remove()
    print("rolling upgrade: no error, and the sums are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Shows a fleet in a storm keep its promises.

    storm.py --binary KEDGE [--files N] [--mib M] [--seconds S] [--s3 stub|rclone] [--seed N]

Several nodes share a PostgreSQL and a bucket behind a load balancer that sends each request to the next of
them. While files are uploaded, a node at random is killed every few seconds and started again, PostgreSQL is
killed once, and the object store answers 503 for ten seconds. One upload is given up half-way. Then every file
is downloaded and deleted, and the sweep has to remove all that there was. Every upload has to complete
with the right SHA-256 in the session in which it began, no acknowledged chunk may be sent again, nothing may be
left over, and no node may take more memory than it is allowed.
"""

import argparse
import contextlib
import random
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from access_log import AccessLog, check_itself  # noqa: E402
from bucket import Bucket  # noqa: E402
from nodes import Balancer, Fleet, Node, wait_for  # noqa: E402
from postgres import PostgresServer  # noqa: E402
from processes import Scratch, Unavailable  # noqa: E402
from transfers import MEBIBYTE, Client, Source, Upload, Violation  # noqa: E402

LARGEST_NODE_BYTES = 96 * MEBIBYTE
OUTAGE_SECONDS = 10
# Parts of the upload after which PostgreSQL is killed and the object store goes away.
KILL_AT, OUTAGE_AT = 0.3, 0.6
# Say whose bytes the rows are about, and which run of the database this is.
KEPT_TABLES = {"byte_place", "server_life"}
# The rows of other tables that are left over.
CONDITIONS = {
    "file": "WHERE deleted_at IS NULL",
    "owner": "WHERE stored_bytes <> 0 OR reserved_bytes <> 0 OR open_sessions <> 0",
}


class Storm:
    """One run."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, cleanup: contextlib.ExitStack
    ) -> None:
        self.options = options
        self._chooser = random.Random(options.seed)
        self.files = directory / "files"
        self.files.mkdir()
        self.database = PostgresServer()
        cleanup.callback(self.database.stop)
        self.bucket = Bucket(options.s3, directory, cleanup)
        lifetime = ["--session-lifetime-seconds", str(options.lifetime)]
        places = ["--metadata", self.database.url, "--bytes", self.bucket.url]
        sweep = ["--session-grace-seconds", "1", "--sweep-interval-seconds", "1"]
        self.fleet = Fleet([
            Node(options.binary, directory, [*places, *lifetime, *sweep], self.bucket.environment)
            for _ in range(options.nodes)
        ])
        cleanup.callback(self.fleet.stop)
        self.fleet.start()
        self.balancer = Balancer(directory, [node.port for node in self.fleet.nodes])
        cleanup.callback(self.balancer.stop)
        self.log = AccessLog(self.balancer.access_log)
        self.client = Client(options.binary, directory, self.balancer.url)
        self._cleanup = cleanup
        self._uploads: list[Upload] = []
        self._report: list[tuple[str, str]] = []
        self._outage_end = 0.0
        self._kill_done = self._outage_done = False
        self._chunks_a_file = 0

    def run(self) -> None:
        """All of it; raises `Violation`."""
        self._give_up_one()
        self._upload_all()
        self._check_log()
        for upload in self._uploads:
            self.client.check_download(upload, self.files / "copy")
        self._note("downloads", f"{len(self._uploads)} files with the right SHA-256")
        for upload in self._uploads:
            self.client.delete(upload)
        self._expect_nothing_left()
        self._check_memory()

    def print_report(self) -> None:
        """Prints the measurements that were made."""
        for name, text in self._report:
            print(f"{name + ':':<15} {text}")

    def _note(self, name: str, text: str) -> None:
        self._report.append((name, text))

    def _source(self, name: str, mebibytes: int) -> Source:
        return Source(self.files / name, f"{self.options.seed}-{name}", mebibytes)

    def _start(self, source: Source) -> Upload:
        upload = self.client.upload(source)
        self._cleanup.callback(upload.child.end, signal.SIGKILL)
        return upload

    def _give_up_one(self) -> None:
        """Begins an upload and stops its client for good, so that the sweep has one to expire."""
        # Large enough not to be done before it can be given up.
        upload = self._start(self._source("given-up", max(self.options.mib, 200)))

        def has_begun() -> bool:
            self.log.read()
            return self.log.acknowledged_count >= 2 or not upload.is_running

        if not wait_for(has_begun, 60) or not upload.is_running:
            raise Violation(f"the first upload did not begin: {upload.child.complaint()}")
        upload.child.end(signal.SIGKILL)
        session = next(iter(self.log.sendings))[0]
        chunk_byte_count = int(self.client.session(session)["chunkSize"])
        self._chunks_a_file = self.options.mib * MEBIBYTE // chunk_byte_count + 1

    def _upload_all(self) -> None:
        names = [f"file-{number:03}" for number in range(self.options.files)]
        waiting = [self._source(name, self.options.mib) for name in names]
        begun = time.monotonic()
        deadline = begun + self.options.limit
        next_kill = begun + self._pause()
        running: list[Upload] = []
        while waiting or running:
            while waiting and len(running) < self.options.at_once:
                running.append(self._start(waiting.pop(0)))
            for upload in [upload for upload in running if not upload.is_running]:
                running.remove(upload)
                upload.check()
                upload.source.path.unlink()
                self._uploads.append(upload)
            now = time.monotonic()
            if now > next_kill:
                self.fleet.kill_one(self._chooser)
                next_kill = now + self._pause()
            self._strike_elsewhere()
            self._expect_no_other_deaths()
            if now > deadline:
                count = len(waiting) + len(running)
                raise Violation(f"{count} files were not uploaded within {self.options.limit} s")
            time.sleep(0.05)
        self._end_outage()
        seconds = time.monotonic() - begun
        total = self.options.files * self.options.mib
        self._note(
            "uploads",
            f"{len(self._uploads)} of {self.options.mib} MiB in {seconds:.0f} s, "
            f"{total / seconds:.0f} MiB/s")
        self._note("nodes", f"{len(self.fleet.nodes)}, killed {self.fleet.kill_count} times")
        met = self.bucket.outage_count()
        counted = "" if met is None else f", {met} requests met it"
        self._note("object store", f"503 for {OUTAGE_SECONDS} s{counted}")
        if not (self._kill_done and self._outage_done) or self.fleet.kill_count == 0 or met == 0:
            raise Violation("the uploads were over before the storm; take more or larger files")

    def _pause(self) -> float:
        return float(self.options.seconds) * self._chooser.uniform(0.5, 1.5)

    def _strike_elsewhere(self) -> None:
        """Kills the database and shuts the object store, each once, when it is their turn."""
        self.log.read()
        done = self.log.acknowledged_count / (self.options.files * self._chunks_a_file)
        if done >= KILL_AT and not self._kill_done:
            self._kill_done = True
            begun = time.monotonic()
            self.database.kill()
            time.sleep(1)
            self.database.restart()
            self._note("PostgreSQL", f"killed, back after {time.monotonic() - begun:.1f} s")
        if done >= OUTAGE_AT and not self._outage_done:
            self._outage_done = True
            self._outage_end = time.monotonic() + OUTAGE_SECONDS
            self.bucket.shut()
        if self._outage_end and time.monotonic() > self._outage_end:
            self._end_outage()

    def _end_outage(self) -> None:
        if self._outage_end:
            self._outage_end = 0
            self.bucket.open()

    def _expect_no_other_deaths(self) -> None:
        dead = self.fleet.dead_nodes()
        if dead:
            raise Violation(f"a node ended by itself: {dead[0].child and dead[0].child.complaint()}")

    def _check_log(self) -> None:
        self.log.read()
        again = self.log.sent_again()
        self._note(
            "chunks", f"{self.log.acknowledged_count} acknowledged, {self.log.failed_count} requests "
            f"failed, {len(again)} sent again after their acknowledgement")
        counts = ", ".join(f"{status}: {count}" for status, count in sorted(self.log.statuses.items()))
        self._note("answers", counts)
        if again:
            raise Violation(f"an acknowledged chunk was sent again: {again[0]}")
        if self.log.lost_sessions:
            line = next(iter(self.log.lost_sessions.values()))
            raise Violation(f"a session was lost, so its upload began anew: {line}")
        refusals = self.bucket.refusals()
        if refusals:
            self._note("S3 refusals", str(refusals))

    def _expect_nothing_left(self) -> None:
        begun = time.monotonic()
        for node in self.fleet.nodes:
            node.wait_until_ready()
        wait_for(lambda: not self.bucket.left() and not self._rows_left(), self.options.lifetime + 60)
        objects, rows = self.bucket.left(), self._rows_left()
        seconds = time.monotonic() - begun
        self._note(
            "left over", f"{len(objects)} objects, {sum(rows.values())} rows after {seconds:.0f} s")
        if objects:
            raise Violation(f"left over in the bucket: {objects[:5]}")
        if rows:
            raise Violation(f"left over in tables: {rows}")

    def _rows_left(self) -> dict[str, int]:
        """Rows by table. A deleted file keeps its row, so that its id is never used again, and an owner has one for
        its limits: only one that still counts something is left over."""
        names = self.database.query(
            "SELECT relname FROM pg_stat_user_tables WHERE relname !~ 'migration'").split()
        counts = {}
        for name in names:
            condition = CONDITIONS.get(name, "")
            counts[name] = int(self.database.query(f'SELECT count(*) FROM "{name}" {condition}'))
        return {name: count for name, count in counts.items() if count and name not in KEPT_TABLES}

    def _check_memory(self) -> None:
        peak = self.fleet.peak_bytes
        allowed = LARGEST_NODE_BYTES // MEBIBYTE
        self._note("memory", f"{peak / MEBIBYTE:.0f} MiB at most in a node, {allowed} allowed")
        if peak > LARGEST_NODE_BYTES:
            raise Violation(f"a node took {peak / MEBIBYTE:.0f} MiB of memory")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=lambda path: Path(path).resolve(), required=True)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--mib", type=int, default=200, help="size of a file")
    parser.add_argument("--at-once", type=int, default=4, help="files that are uploaded at a time")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="between two kills, on average")
    parser.add_argument("--s3", choices=("stub", "rclone"), default="stub")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--lifetime", type=int, default=60, help="seconds until a session expires")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for all uploads")
    return parser.parse_args()


def main() -> int:
    """Runs one storm; what was started ends, however it goes."""
    options = parse()
    check_itself()
    print(f"storm: seed {options.seed}", flush=True)
    # An end from outside goes the same way as Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    scratch = Scratch("storm")
    is_kept = False
    try:
        with contextlib.ExitStack() as cleanup:
            storm = Storm(options, scratch.path, cleanup)
            try:
                storm.run()
            finally:
                storm.print_report()
    except KeyboardInterrupt:
        print("storm: interrupted", file=sys.stderr)
        return 130
    except (Violation, Unavailable) as error:
        is_kept = True
        print(f"storm: {error}\nlogs are in {scratch.path}", file=sys.stderr)
        return 1
    finally:
        if is_kept:
            shutil.rmtree(scratch.path / "files", ignore_errors=True)
        else:
            scratch.remove()
    print("storm: every promise was kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())

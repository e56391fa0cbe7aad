"""One recording of the service or of the client, and many cuts of it."""

import contextlib
import dataclasses
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "servers"))

from block_log import WAYS, BlockLog
from check import Findings, check_image, choose_moments
from disks import FileSystem, RecordedDisk, run
from postgres import PostgresServer
from program import Program, free_port, serving
from transfers import TransferRun, check_transfers
from workload import History, run_uploaders


# A small database on a small disk; the way to durability is the usual one.
POSTGRES_SETTINGS = {
    "shared_buffers": "16MB", "max_wal_size": "64MB", "min_wal_size": "32MB", "max_connections": "40",
}


@dataclasses.dataclass
class Task:
    """The task that the command line describes."""

    program: Program
    images: int
    seed: str
    library: Path | None
    mutant: str | None
    keep: Path | None
    kind: FileSystem


@dataclasses.dataclass
class Totals:
    """The findings in all images."""

    images: int = 0
    promises: int = 0
    violations: int = 0

    def add(self, findings: Findings) -> None:
        """Adds one image."""
        self.images += 1
        self.promises += findings.promises
        self.violations += len(findings.violations)


@dataclasses.dataclass
class Recording:
    """The writes of a round, and the promises made meanwhile."""

    log: BlockLog
    base: Path
    history: History
    first: int
    """From here on something was asked for."""
    last: int


def service_round(task: Task, scratch: Path, totals: Totals) -> None:
    """Uploaders against a service whose data is on the disk."""
    disk = RecordedDisk(scratch, task.kind)
    program, port = task.program, free_port()
    with disk.recording(), program.with_fault(task.library, task.mutant):
        with serving(program, disk.directory / "data", port, scratch / "recorded.log") as server:
            if not server.wait_until_ready():
                raise OSError(f"no start: {server.log.read_text()}")
            history = run_uploaders(task.seed, port, disk.position, uploaders=4, rounds=20)
            last = disk.position()
    recording = Recording(BlockLog(disk.log), disk.base, history, 0, last)

    def check(image: Path, moment: int) -> Findings:
        return check_image(program, image, task.kind, history, moment)

    cut_and_check("service", task, scratch, recording, check, totals)


def postgres_round(task: Task, scratch: Path, totals: Totals) -> None:
    """As `service_round`, and the rows are in a PostgreSQL that is on the same disk."""
    # Its account has to reach it.
    scratch.chmod(0o711)
    # Rows and their log need more room than the service itself.
    disk = RecordedDisk(scratch, dataclasses.replace(task.kind, byte_count=1 << 30))
    is_unsafe = task.mutant == "no-database-sync"
    library = None if is_unsafe else task.library

    @contextlib.contextmanager
    def rows(directory: Path) -> Iterator[Sequence[str]]:
        settings = POSTGRES_SETTINGS | ({"fsync": "off"} if is_unsafe else {})
        database = PostgresServer(settings, directory / "postgres")
        try:
            yield "--metadata", database.url + ("?allow_unsafe=on" if is_unsafe else "")
        finally:
            database.stop()

    program, port = task.program, free_port()
    with disk.recording(), rows(disk.directory) as options:
        run("sync", "--file-system", disk.directory)
        first = disk.position()
        with (
            program.with_fault(library, task.mutant),
            serving(program, disk.directory / "data", port, scratch / "recorded.log", options) as server,
        ):
            if not server.wait_until_ready():
                raise OSError(f"no start: {server.log.read_text()}")
            history = run_uploaders(task.seed, port, disk.position, uploaders=4, rounds=12)
            last = disk.position()
    recording = Recording(BlockLog(disk.log), disk.base, history, first, last)

    def check(image: Path, moment: int) -> Findings:
        return check_image(program, image, task.kind, history, moment, rows)

    cut_and_check("postgres", dataclasses.replace(task, library=library), scratch, recording, check, totals)


def client_round(task: Task, scratch: Path, totals: Totals) -> None:
    """Uploads and downloads whose records, sources and destinations are on the disk."""
    disk = RecordedDisk(scratch, task.kind)
    program, port = task.program, free_port()
    data, kept = scratch / "server", scratch / "server-as-the-run-left-it"
    with disk.recording():
        with serving(program, data, port, scratch / "recorded.log") as server:
            if not server.wait_until_ready():
                raise OSError(f"no start: {server.log.read_text()}")
            run = TransferRun(task.seed, program, disk.directory, disk.position)
            run.prepare(port, count=8)
            first = disk.position()
            with program.with_fault(task.library, task.mutant):
                run.run(port)
            last = disk.position()
            server.stop()
    data.rename(kept)
    recording = Recording(BlockLog(disk.log), disk.base, run.history, first, last)

    def check(image: Path, moment: int) -> Findings:
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(kept, data)
        with serving(program, data, port, scratch / "checked.log") as server:
            if not server.wait_until_ready():
                raise OSError(f"no start: {server.log.read_text()}")
            return check_transfers(
                program, image, disk, run.transfers, port, moment
            )

    cut_and_check("client", task, scratch, recording, check, totals)


def cut_and_check(
    part: str, task: Task, scratch: Path, recording: Recording,
    check: Callable[[Path, int], Findings], totals: Totals,
) -> None:
    """Makes and checks the images, and prints what each broken one needs to be found again.

    With a mutant one broken image is all that is wanted.
    """
    struck = task.program.skipped_count()
    if task.library is not None and struck == 0:
        raise OSError(f"the mutant {task.mutant} never struck")
    chooser = random.Random(f"{task.seed}-{part}")
    moments = choose_moments(
        recording.history, task.images, recording.first, recording.last, chooser
    )
    image = scratch / "cut.img"
    for number, moment in enumerate(moments):
        way = chooser.choice(WAYS)
        at_risk = recording.log.write_image(
            recording.base, image, moment, way, random.Random(f"{task.seed}-{part}-{number}")
        )
        if task.keep is not None:
            task.keep.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, task.keep / image.name)
        findings = check(image, moment)
        totals.add(findings)
        for text in findings.violations[:5]:
            print(f"{part}: seed {task.seed}, cut at {moment}, image {number} ({way}", end="")
            print(f", {at_risk} pieces at risk): {text}", flush=True)
        if findings.violations and (task.mutant is not None or task.keep is not None):
            return

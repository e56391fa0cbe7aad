"""The client's commands on a disk that loses power: what they finished stays, and they go on."""

import dataclasses
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from check import Findings, describe
from disks import RecordedDisk, mounted, run
from native_client import CHUNK_SIZE, NativeClient, content
from program import Program
from workload import Change, History

UPLOADS, DOWNLOADS, STATE = "sources", "downloads", "state"


@dataclasses.dataclass
class Transfer(Change):
    """One command, the same each time: begun once, promised when it ended with success."""

    kind: str = "upload"
    name: str = ""
    byte_count: int = 0
    file: str = ""
    """The file's id on the server: given for a download, printed by an upload."""

    def arguments(self, disk: Path, port: int) -> list[str]:
        """The command line, with everything of the client's on the disk."""
        common = ["--server", f"http://127.0.0.1:{port}", "--state-directory", str(disk / STATE)]
        if self.kind == "upload":
            source = str(disk / UPLOADS / self.name)
            return ["upload", source, "--chunk-size", str(CHUNK_SIZE), "--quiet", *common]
        target = str(disk / DOWNLOADS / self.name)
        return ["download", self.file, "--output", target, "--quiet", *common]


class TransferRun:
    """Runs the commands, interrupts some of them, and notes what they promised."""

    def __init__(self, seed: str, program: Program, disk: Path, position: Callable[[], int]) -> None:
        self._seed = seed
        self._program = program
        self._disk = disk
        self._position = position
        self.transfers: list[Transfer] = []
        self.history = History()

    def prepare(self, port: int, count: int) -> None:
        """Puts files on the server and sources on the disk; both are there for good."""
        chooser = random.Random(f"{self._seed}-sizes")
        for directory in (UPLOADS, DOWNLOADS):
            (self._disk / directory).mkdir()
        client = NativeClient(port)
        for number in range(count):
            for kind in ("upload", "download"):
                name = f"{self._seed}-{kind}-{number}"
                data = content(name, chooser.randint(1, 40) * CHUNK_SIZE - chooser.randint(0, 999))
                transfer = Transfer(kind=kind, name=name, byte_count=len(data))
                if kind == "upload":
                    (self._disk / UPLOADS / name).write_bytes(data)
                else:
                    transfer.file = client.post(name, data)
                self.transfers.append(transfer)
        client.close()
        run("sync", "--file-system", self._disk)

    def run(self, port: int) -> None:
        """Uploads and downloads side by side, with one set of records."""
        errors: list[BaseException] = []

        def work(kind: str) -> None:
            try:
                chooser = random.Random(f"{self._seed}-{kind}")
                for transfer in self.transfers:
                    if transfer.kind == kind:
                        self._move(transfer, port, chooser)
            except BaseException as error:  # the thread that waits raises it
                errors.append(error)

        threads = [threading.Thread(target=work, args=(kind,)) for kind in ("upload", "download")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _move(self, transfer: Transfer, port: int, chooser: random.Random) -> None:
        transfer.begun = self._position()
        arguments = transfer.arguments(self._disk, port)
        if chooser.random() < 0.6:
            process = self._program.start(*arguments)
            time.sleep(chooser.uniform(0.02, 0.15))
            process.kill()
            process.communicate()
            self.history.note("interruption", self._position())
            if chooser.random() < 0.4:
                return
        status, output, complaint = self._program.run(*arguments)
        moment = self._position()
        if status != 0:
            raise OSError(f"{arguments[0]} failed before any cut: {status} {complaint}")
        if transfer.kind == "upload":
            transfer.file = output
        transfer.promised = self.history.note(transfer.kind, moment)


class TransferCheck:
    """The client's side after one cut."""

    def __init__(self, program: Program, disk: Path, port: int, moment: int) -> None:
        self._program = program
        self._disk = disk
        self._port = port
        self._moment = moment
        self.findings = Findings()

    def check(self, transfers: list[Transfer]) -> None:
        """Looks at what is there before any command runs again, then runs them again."""
        begun = [transfer for transfer in transfers if transfer.begun <= self._moment]
        downloads = [transfer for transfer in begun if transfer.kind == "download"]
        for transfer in downloads:
            self._look_at(transfer)
        for transfer in begun:
            self._repeat(transfer)
        names = {path.name for path in (self._disk / DOWNLOADS).iterdir()}
        strays = names - {transfer.name for transfer in downloads}
        self.findings.promise(not strays, f"left over beside the downloads: {sorted(strays)}")

    def _look_at(self, transfer: Transfer) -> None:
        path = self._disk / DOWNLOADS / transfer.name
        if path.exists():
            self._is_right(transfer, path.read_bytes())
        else:
            kept = transfer.promised > self._moment
            self.findings.promise(kept, f"{transfer.name}: was finished, now absent")

    def _repeat(self, transfer: Transfer) -> None:
        status, output, complaint = self._program.run(*transfer.arguments(self._disk, self._port))
        text = f"{transfer.name}: ends with status {status} when repeated: {complaint}"
        if not self.findings.promise(status == 0, text):
            return
        if transfer.kind == "download":
            self._is_right(transfer, (self._disk / DOWNLOADS / transfer.name).read_bytes())
        else:
            self._is_uploaded(transfer, output)

    def _is_uploaded(self, transfer: Transfer, file: str) -> None:
        if transfer.promised <= self._moment:
            text = f"{transfer.name}: was uploaded as {transfer.file}, now again as {file}"
            self.findings.promise(file == transfer.file, text)
        client = NativeClient(self._port)
        status, found = client.ask("GET", f"/files/{file}")
        client.close()
        if self.findings.promise(status == 200, f"{transfer.name}: status {status}"):
            self._is_right(transfer, found)

    def _is_right(self, transfer: Transfer, found: bytes) -> None:
        wanted = content(transfer.name, transfer.byte_count)
        self.findings.promise(found == wanted, f"{transfer.name}: {describe(found, wanted)}")


def check_transfers(
    program: Program, image: Path, disk: RecordedDisk, transfers: list[Transfer], port: int, moment: int
) -> Findings:
    """Mounts the client's disk as the cut left it, beside the service as the run left it.

    The directory is the one of the recording: transfers are known by the paths of their files. The
    caller gives a service whose state no earlier image has touched.
    """
    directory = disk.directory
    with mounted(image, directory, disk.kind):
        check = TransferCheck(program, directory, port, moment)
        # Made and synced before the recording's first moment.
        if not check.findings.promise(
            (directory / DOWNLOADS).is_dir(), "the folder of the downloads is gone"
        ):
            return check.findings
        check.check(transfers)
        return check.findings

"""A real file system whose block writes are recorded, and mounts of the images made from them."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

# Neither a timer of the journal nor a rule of thumb about renames may do what the program leaves out.
MOUNT_OPTIONS = "noatime,noauto_da_alloc,commit=300"

CAP_SYS_ADMIN = 21


class Unavailable(Exception):
    """This system does not permit what the test needs."""


def require_everything() -> None:
    """Says all that is missing at once, instead of the first of several."""
    missing = []
    if os.geteuid() != 0:
        missing.append("root (for mount and loop devices)")
    missing += [path for path in ("/dev/fuse", "/dev/loop-control") if not Path(path).exists()]
    tools = ("qemu-storage-daemon", "mkfs.ext4", "losetup", "mount", "umount", "fusermount3")
    missing += [tool for tool in tools if shutil.which(tool) is None]
    if not missing and subprocess.run(["losetup", "--find"], capture_output=True).returncode != 0:
        missing.append("a free loop device")
    if not missing and not may_mount():
        missing.append("the capability CAP_SYS_ADMIN (for mount)")
    if missing:
        raise Unavailable("; ".join(missing))


def may_mount() -> bool:
    """Root in a container often may not."""
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> CAP_SYS_ADMIN & 1)


def run(*command: str | Path) -> str:
    """Runs a tool to its end; its complaint is part of the error."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{command[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def make_file_system(path: Path, byte_count: int) -> None:
    """An empty ext4, with nothing left to set up after it is mounted."""
    with open(path, "wb") as file:
        file.truncate(byte_count)
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    run("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-E", options, path)


def unmount(directory: Path) -> None:
    """Unmounts; what a dying process still holds is let go within a moment."""
    for _ in range(50):
        if subprocess.run(["umount", str(directory)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", "--lazy", directory)


@contextlib.contextmanager
def mounted(image: Path, directory: Path, options: str = "noatime") -> Iterator[None]:
    """Mounts an image, which replays its journal as the start after a power cut does."""
    directory.mkdir(exist_ok=True)
    device = run("losetup", "--find", "--show", image).strip()
    try:
        run("mount", "-t", "ext4", "-o", options, device, directory)
        try:
            yield
        finally:
            unmount(directory)
    finally:
        run("losetup", "--detach", device)


class RecordedDisk:
    """A mounted file system of which every block write and flush is written to a log.

    The way down: ext4, a loop device, a file in a FUSE export, the storage daemon. The daemon writes a
    request to the log before it answers it, so the log's size names a moment: everything that had
    reached the disk by then is in the log up to there.
    """

    def __init__(self, scratch: Path, byte_count: int) -> None:
        self.base = scratch / "base.img"
        self.log = scratch / "writes.log"
        self.directory = scratch / "disk"
        self._device_file = scratch / "recorded.img"
        self._export = scratch / "export"
        make_file_system(self.base, byte_count)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Mounts and records; the log is complete afterwards."""
        shutil.copyfile(self.base, self._device_file)
        self.log.touch()
        self._export.touch()
        daemon = self._start_daemon()
        try:
            self._wait_for_export(daemon)
            with mounted(self._export, self.directory, MOUNT_OPTIONS):
                yield
        finally:
            subprocess.run(["fusermount3", "-u", str(self._export)], capture_output=True)
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _start_daemon(self) -> subprocess.Popen[bytes]:
        nodes = (
            f"driver=file,node-name=disk,filename={self._device_file}",
            f"driver=file,node-name=log,filename={self.log}",
            "driver=blklogwrites,node-name=recorded,file=disk,log=log,"
            "log-sector-size=512,log-append=off",
        )
        arguments = [argument for node in nodes for argument in ("--blockdev", node)]
        export = f"type=fuse,id=export,node-name=recorded,mountpoint={self._export},writable=on"
        # Its own session: an interrupt from the terminal must not take the disk from under a mount.
        return subprocess.Popen(
            ["qemu-storage-daemon", *arguments, "--export", export], start_new_session=True
        )

    def _wait_for_export(self, daemon: subprocess.Popen[bytes]) -> None:
        size = self.base.stat().st_size
        for _ in range(100):
            if daemon.poll() is not None:
                raise Unavailable("qemu-storage-daemon cannot export over FUSE here")
            if self._export.stat().st_size == size:
                return
            time.sleep(0.05)
        raise Unavailable("qemu-storage-daemon does not export")

    def position(self) -> int:
        """This moment, as the size of the log. Ask after an answer has come, or before a request goes."""
        return self.log.stat().st_size

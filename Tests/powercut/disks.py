"""A real file system whose block writes are recorded, and mounts of the images made from them."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class FileSystem:
    """A kind of file system, made with nothing left to set up after it is mounted."""

    name: str
    byte_count: int
    """How large one is: as small as it may be, for each cut is an image."""
    make: tuple[str, ...]
    options: str
    """Options of the recorded mount: no timer and no heuristic may write what the program did not sync."""
    image_options: str = "noatime"
    """Options of the mount of an image."""
    forget: tuple[str, ...] = ()
    """Makes the kernel forget an image that is gone, for the next one has the same identity."""


FILE_SYSTEMS = {
    kind.name: kind
    for kind in (
        FileSystem(
            "ext4", 128 << 20,
            ("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0",
             "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
            "noatime,noauto_da_alloc,commit=300"),
        FileSystem(
            "xfs", 320 << 20, ("mkfs.xfs", "-q", "-f", "-K"), "noatime,nouuid",
            # An earlier one may still be known when a process was slow to release it.
            image_options="noatime,nouuid"),
        FileSystem(
            "btrfs", 256 << 20, ("mkfs.btrfs", "-q", "-f", "-K"),
            "noatime,commit=300", forget=("btrfs", "device", "scan", "--forget")),
    )
}

CAP_SYS_ADMIN = 21


class Unavailable(Exception):
    """This system does not permit what the test needs."""


def require_everything(kind: FileSystem = FILE_SYSTEMS["ext4"]) -> None:
    """Says all that is missing at once, instead of the first of several."""
    missing = []
    if os.geteuid() != 0:
        missing.append("root (for mount and loop devices)")
    missing += [path for path in ("/dev/fuse", "/dev/loop-control") if not Path(path).exists()]
    tools = ["qemu-storage-daemon", kind.make[0], "losetup", "mount", "umount", "fusermount3"]
    tools += kind.forget[:1]
    missing += [tool for tool in tools if shutil.which(tool) is None]
    if not missing and subprocess.run(["losetup", "--find"], capture_output=True).returncode != 0:
        missing.append("a free loop device")
    if not missing and not may_mount():
        missing.append("the capability CAP_SYS_ADMIN (for mount)")
    if not kernel_has(kind):
        missing.append(f"{kind.name} in the kernel")
    if missing:
        raise Unavailable("; ".join(missing))


def kernel_has(kind: FileSystem) -> bool:
    """Loads the module where it is one."""
    if shutil.which("modprobe") is not None:
        subprocess.run(["modprobe", "--quiet", kind.name], capture_output=True)
    return kind.name in Path("/proc/filesystems").read_text().split()


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


def make_file_system(path: Path, kind: FileSystem) -> None:
    """An empty one."""
    with open(path, "wb") as file:
        file.truncate(kind.byte_count)
    run(*kind.make, path)


def unmount(directory: Path) -> None:
    """Unmounts; what a dying process still holds is let go within a moment."""
    for _ in range(50):
        if subprocess.run(["umount", str(directory)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", "--lazy", directory)


@contextlib.contextmanager
def mounted(
    image: Path, directory: Path, kind: FileSystem, options: str | None = None
) -> Iterator[None]:
    """Mounts an image, which replays its journal as the start after a power cut does."""
    directory.mkdir(exist_ok=True)
    device = run("losetup", "--find", "--show", image).strip()
    try:
        run("mount", "-t", kind.name, "-o", options or kind.image_options, device, directory)
        try:
            yield
        finally:
            unmount(directory)
    finally:
        run("losetup", "--detach", device)
        if kind.forget:
            subprocess.run(kind.forget, capture_output=True)


class RecordedDisk:
    """A mounted file system of which every block write and flush is written to a log.

    The way down: the file system, a loop device, a file in a FUSE export, the storage daemon. The daemon writes a
    request to the log before it answers it, so the log's size names a moment: everything that had
    reached the disk by then is in the log up to there.
    """

    def __init__(self, scratch: Path, kind: FileSystem) -> None:
        self.kind = kind
        self.base = scratch / "base.img"
        self.log = scratch / "writes.log"
        self.directory = scratch / "disk"
        self._device_file = scratch / "recorded.img"
        self._export = scratch / "export"
        make_file_system(self.base, kind)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Mounts and records; the log is complete afterwards."""
        shutil.copyfile(self.base, self._device_file)
        self.log.touch()
        self._export.touch()
        daemon = self._start_daemon()
        try:
            self._wait_for_export(daemon)
            with mounted(self._export, self.directory, self.kind, self.kind.options):
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

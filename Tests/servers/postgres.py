"""PostgreSQL and pgbouncer on a directory and a port of their own."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from processes import (
    Child, Scratch, Unavailable, as_account, can_connect, children, find_program, free_port,
    has_ended, unprivileged_account,
)

LEAST_VERSION = 15
# Durability stays as it is shipped; the rest is made for a small machine with several servers at once.
SETTINGS = {
    "listen_addresses": "127.0.0.1", "shared_buffers": "64MB", "max_connections": "200",
    "max_wal_size": "512MB", "fsync": "on", "synchronous_commit": "on", "log_min_messages": "warning",
}


def programs() -> Path:
    """The directory with the programs of the newest PostgreSQL that there is."""
    def version(path: Path) -> int:
        return int(path.name) if path.name.isdecimal() else 0

    for path in sorted(Path("/usr/lib/postgresql").glob("*"), key=version, reverse=True):
        if version(path) >= LEAST_VERSION and os.access(path / "bin" / "initdb", os.X_OK):
            return path / "bin"
    directory = find_program("initdb").parent
    printed = subprocess.run([directory / "postgres", "--version"], capture_output=True, text=True).stdout
    match = re.search(r" (\d+)", printed)
    if match is None or int(match[1]) < LEAST_VERSION:
        raise Unavailable(f"PostgreSQL {LEAST_VERSION} or newer is needed; `make test-deps` brings it")
    return directory


class PostgresServer:
    """A cluster with one database, `kedge`, that every user of this machine may use.

    It is new, and gone at the end; or it is in a place that is given, where it stays, and is taken as it is
    when there is one.
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, place: Path | None = None
    ) -> None:
        self._programs = programs()
        self._account = unprivileged_account("PostgreSQL")
        self._settings = SETTINGS | dict(settings or {})
        self._scratch = Scratch("postgres", self._account, place)
        self._child: Child | None = None
        self.port = free_port()
        try:
            if self._data.exists():
                self.restart()
            else:
                self._create()
        except BaseException:
            self.stop()
            raise

    @property
    def _data(self) -> Path:
        return self._scratch.path / "data"

    @property
    def url(self) -> str:
        """The address of its first database."""
        return self.database_url("kedge")

    def database_url(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql://kedge@127.0.0.1:{self.port}/{name}"

    def _create(self) -> None:
        command = [
            self._programs / "initdb", "--pgdata", self._data, "--username=kedge", "--auth=trust",
            "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync",
        ]
        done = subprocess.run(
            as_account(self._account, command), capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            raise Unavailable(f"initdb: {done.stderr.strip()}")
        self.restart()
        self.query("CREATE DATABASE kedge", database="postgres")

    def restart(self) -> None:
        """Starts it, after ending it if it runs. It keeps port and data."""
        self._end()
        settings = self._settings | {"unix_socket_directories": str(self._scratch.path)}
        options = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
        self._child = Child(
            [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *options],
            self._scratch.path / "log", account=self._account, last_signal=signal.SIGQUIT)
        self._child.wait_until("PostgreSQL serves", self._is_ready, 60)

    def _is_ready(self) -> bool:
        command = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 0

    def _end(self) -> None:
        """Ends it without a checkpoint: what was committed is in the log."""
        if self._child is not None:
            self._child.end(signal.SIGQUIT)
            self._child = None

    def kill(self) -> None:
        """Ends all its processes at once, as a crash does, and closes no connection."""
        child = self._child
        if child is None or not child.is_running:
            return
        # Stopped first, so that it starts no other process meanwhile.
        child.send(signal.SIGSTOP)
        pids = [*children(child.pid), child.pid]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.process.wait()
        # The next server does not start while a process of this one still has its shared memory.
        deadline = time.monotonic() + 10
        while not all(map(has_ended, pids)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends it and removes everything."""
        was_killed = self._child is not None and not self._child.is_running
        self._end()
        if was_killed:
            self._release_segment()
        self._scratch.remove()

    def _release_segment(self) -> None:
        """Gives back the piece of shared memory that a killed server leaves for the next one to find."""
        with contextlib.suppress(OSError, IndexError):
            number = (self._data / "postmaster.pid").read_text().splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "--shmem-id", number], capture_output=True)

    def make_database(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{secrets.token_hex(8)}"
        self.query(f"CREATE DATABASE {name}", database="postgres")
        return self.database_url(name)

    def query(self, sql: str, database: str = "kedge") -> str:
        """Returns the output of psql for a statement: a line for a row, `|` between columns.

        `database` is a name or an address.
        """
        address = database if "://" in database else self.database_url(database)
        command = [
            self._programs / "psql", "--no-psqlrc", "--no-align", "--tuples-only", "--quiet",
            "--set=ON_ERROR_STOP=1", f"--dbname={address}", f"--command={sql}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Unavailable(done.stderr.strip())
        return done.stdout.removesuffix("\n")


class PostgresStandby(PostgresServer):
    """A server that follows another one until it is promoted; see `make_synchronous`."""

    def __init__(self, primary: PostgresServer) -> None:
        self._primary = primary
        super().__init__()

    def _create(self) -> None:
        source = f"host=127.0.0.1 port={self._primary.port} user=kedge application_name=standby"
        command = [
            self._programs / "pg_basebackup", "--pgdata", self._data, "--dbname", source,
            "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync",
        ]
        done = subprocess.run(
            as_account(self._account, command), capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            raise Unavailable(f"pg_basebackup: {done.stderr.strip()}")
        self.restart()

    def make_synchronous(self) -> None:
        """Makes the primary acknowledge only commits that are durable here, too."""
        self._primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        self._primary.query("SELECT pg_reload_conf()")
        question = "SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby'"
        assert self._child is not None
        self._child.wait_until(
            "the standby is synchronous", lambda: self._primary.query(question) == "sync")

    def stop_following(self) -> None:
        """It receives nothing more; the primary sees a standby that lags."""
        os.kill(int(self.query("SELECT pid FROM pg_stat_wal_receiver")), signal.SIGSTOP)

    def promote(self) -> None:
        """It takes writes from now on. The primary must be dead."""
        receiver = self.query("SELECT pid FROM pg_stat_wal_receiver")
        self.query("SELECT pg_promote(wait := false)")
        if receiver:
            # A stopped one ends at once when it goes on, without reading what has come meanwhile.
            time.sleep(0.2)
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(receiver), signal.SIGCONT)
        assert self._child is not None
        self._child.wait_until(
            "the standby takes writes", lambda: self.query("SELECT pg_is_in_recovery()") == "f", 60)


class PgBouncer:
    """A pool in transaction mode, otherwise as it comes, in front of a PostgreSQL."""

    def __init__(self, upstream_port: int) -> None:
        account = unprivileged_account("pgbouncer")
        self._scratch = Scratch("pgbouncer", account)
        self.port = free_port()
        configuration = self._scratch.path / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host=127.0.0.1 port={upstream_port} user=kedge\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\n")
        self._child = Child(
            [find_program("pgbouncer"), configuration], self._scratch.path / "log", account=account)
        try:
            self._child.wait_until("pgbouncer listens", lambda: can_connect(self.port))
        except BaseException:
            self.stop()
            raise

    def database_url(self, name: str) -> str:
        """The address of a database through the pool."""
        return f"postgresql://kedge@127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        """Ends it and removes everything."""
        self._child.end()
        self._scratch.remove()

#!/usr/bin/env python3
"""Kills migrations at every step, and lets two instances do them at once.

    migrations.py --binary KEDGE [--long]

A database of each older schema, with rows, is migrated by a process that is killed at one of its writes to the
file or to the server, then by two at the same time. After the kill the schema has to be exactly that of some
number of migrations, never half of one; afterwards it has to be that of a new database, with every row as it was.
"""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from proof import (
    TESTS, Skipped, Stage, Unavailable, Violation, arguments, expect, run_proof, started, use_memory)
from bucket import Bucket
from postgres import PostgresServer, programs
from processes import Child, find_program

SESSION, CANCELED, FILE = "a" * 32, "b" * 32, "c" * 32
# How the service keeps its history. The number and the digest of the text are compared, names are not.
HISTORY = """CREATE TABLE IF NOT EXISTS schema_migration (
            number INTEGER PRIMARY KEY CHECK (number > 0),
            name TEXT NOT NULL,
            sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
            applied_at {integer} NOT NULL
        )"""
# Rows of the first schema: a session with a chunk, one that was given up, and a file.
ROWS = f"""
INSERT INTO session (id, owner, staging_key, file_name, file_size, chunk_size, metadata, state,
    created_at, expires_at) VALUES
    ('{SESSION}', 'anonymous', '{SESSION}', 'ä.bin', 100000, 16384, '{{"a": "b"}}', 'open', 1, 4000000000000),
    ('{CANCELED}', 'anonymous', NULL, 'b.bin', 5, 16384, '{{}}', 'canceled', 1, 4000000000000);
INSERT INTO session (id, owner, file_name, file_size, chunk_size, metadata, state, created_at, expires_at,
    file_id, final_sha256) VALUES
    ('{FILE}', 'anonymous', 'c.bin', 5, 16384, '{{}}', 'completed', 1, 4000000000000, '{FILE}', DIGEST);
INSERT INTO chunk (session, idx, byte_count, chunk_size, sha256)
    SELECT number, 0, 5, 16384, DIGEST FROM session WHERE state = 'completed';
INSERT INTO file (id, owner, session_id, session, file_name, byte_count, sha256, chunk_size, created_at)
    SELECT '{FILE}', 'anonymous', '{FILE}', number, 'c.bin', 5, DIGEST, 16384, 1 FROM session
    WHERE state = 'completed';
"""
COMPARED = {
    "session": "id, owner, staging_key, file_name, file_size, chunk_size, metadata, state, expires_at",
    "chunk": "idx, byte_count, chunk_size", "file": "id, session_id, file_name, byte_count, created_at",
}


def texts(kind: str) -> list[Path]:
    """The migrations, in order."""
    return sorted((TESTS.parent / "migrations" / kind).glob("*.sql"))


def history_row(number: int, path: Path) -> str:
    """The statement that notes a migration."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"INSERT INTO schema_migration VALUES ({number}, '{path.stem[5:]}', '{digest}', 1)"


class SQLiteEnvironment:
    """Databases in files."""

    kind = "sqlite"
    calls = "pwrite64,fdatasync,fsync,ftruncate,unlink"
    environment: dict[str, str] = {}

    def __init__(self, stage: Stage) -> None:
        self._directory = stage.directory
        self._count = 0

    def make(self, count: int, has_rows: bool) -> Path:
        """A data directory with the schema of so many migrations."""
        self._count += 1
        data = self._directory / f"sqlite-{self._count}"
        data.mkdir(mode=0o700)
        if count == 0:
            return data
        database = sqlite3.connect(data / "kedge.sqlite")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(HISTORY.format(integer="INTEGER") + " STRICT")
        for number, path in enumerate(texts(self.kind)[:count], 1):
            database.executescript(path.read_text())
            database.execute(history_row(number, path))
        if has_rows:
            database.executescript(ROWS.replace("DIGEST", f"x'{'ab' * 32}'"))
        database.commit()
        database.close()
        return data

    def options(self, place: Path, _: int = 0) -> list[str]:
        """Where that is, for `kedge`."""
        return ["--data", str(place)]

    def ask(self, place: Path, sql: str) -> list[tuple[object, ...]]:
        """Rows; the file is looked at through a copy, so that it stays as the kill left it."""
        copy = self._directory / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
        with contextlib.closing(sqlite3.connect(copy / "kedge.sqlite")) as database:
            return database.execute(sql).fetchall()

    def schema(self, place: Path) -> tuple[int, str]:
        """How many migrations it says it has, and what its schema is."""
        expect(self.ask(place, "PRAGMA integrity_check") == [("ok",)], "the database is damaged")
        rows = self.ask(
            place, "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name")
        has_history = any(name == "schema_migration" for name, _ in rows)
        count = self.ask(place, "SELECT count(*) FROM schema_migration")[0][0] if has_history else 0
        # Layout does not count; the table of the history is Kedge's own.
        text = "\n".join(
            re.sub(r"\s+", " ", str(sql)) for name, sql in rows if name != "schema_migration")
        return int(str(count)), text


class PostgresEnvironment:
    """Databases of a server."""

    kind = "postgres"
    calls = "sendto"

    def __init__(self, stage: Stage) -> None:
        self._server = PostgresServer({"fsync": "off"})
        # The bucket that two nodes share.
        self._bucket = Bucket("stub", stage.directory, stage.cleanup)
        self.environment = self._bucket.environment
        stage.cleanup.callback(self._server.stop)
        self._directory = stage.directory

    def make(self, count: int, has_rows: bool) -> str:
        """The address of a database with the schema of so many migrations."""
        url = self._server.make_database()
        if count:
            history = HISTORY.format(integer="BIGINT")
            script = [history + ";"]
            for number, path in enumerate(texts(self.kind)[:count], 1):
                script += [path.read_text(), history_row(number, path) + ";"]
            if has_rows:
                script.append(ROWS.replace("DIGEST", f"'\\x{'ab' * 32}'"))
            self._server.query("\n".join(script), url)
        return url

    def options(self, place: str, number: int = 0) -> list[str]:
        """Where that is, for one of several `kedge`; the server does not sync, which is of no matter here."""
        data = self._directory / f"{place.rpartition('/')[2]}-{number}"
        where = ["--metadata", place + "?allow_unsafe=on", "--bytes", self._bucket.url]
        return [*where, "--data", str(data)]

    def ask(self, place: str, sql: str) -> list[tuple[object, ...]]:
        """Rows."""
        return [(line,) for line in self._server.query(sql, place).splitlines()]

    def schema(self, place: str) -> tuple[int, str]:
        """How many migrations it says it has, and what its schema is."""
        done = subprocess.run(
            [programs() / "pg_dump", "--schema-only", "--exclude-table=schema_migration", place],
            capture_output=True, text=True, check=True)
        lines = [line for line in done.stdout.splitlines() if not re.match(r"--|\\|SET|$", line)]
        has_history = self.ask(place, "SELECT to_regclass('schema_migration')") != [("",)]
        has_history = has_history and self.ask(place, "SELECT to_regclass('schema_migration')") != []
        count = self.ask(place, "SELECT count(*) FROM schema_migration")[0][0] if has_history else 0
        return int(str(count)), "\n".join(lines)


Place = SQLiteEnvironment | PostgresEnvironment


class Trial:
    """All migrations of one kind of database."""

    def __init__(self, stage: Stage, place: Place) -> None:
        self._stage = stage
        self._place = place
        self.newest = len(texts(place.kind))
        self._schemas = [place.schema(place.make(count, False))[1] for count in range(1, self.newest + 1)]
        self._log = stage.directory / f"{place.kind}.log"
        self.kills = 0
        self._environment = dict(os.environ) | place.environment

    def _command(self, place: object, number: int = 0) -> list[str]:
        return [str(self._stage.binary), "migrate", *self._place.options(place, number)]  # type: ignore[arg-type]

    def _traced(self, place: object, *options: str) -> int:
        trace = self._stage.directory / "trace"
        tracing = ["strace", "-f", "-qq", "-o", str(trace), "-e", "signal=none", *options]
        child = Child([*tracing, *self._command(place)], self._log, environment=self._environment)
        try:
            return child.process.wait(60)
        except subprocess.TimeoutExpired as error:
            raise Violation("a migration does not end") from error
        finally:
            child.end(signal.SIGKILL)

    def steps(self, older: int) -> int:
        """How many calls a migration from there makes."""
        place = self._place.make(older, older > 0)
        status = self._traced(place, "-e", f"trace={self._place.calls}")
        expect(status == 0, f"a migration ends with {status}: {self._log.read_text()[-500:]}")
        per_thread: dict[str, int] = {}
        for line in (self._stage.directory / "trace").read_text().splitlines():
            thread = line.split()[0]
            per_thread[thread] = per_thread.get(thread, 0) + 1
        return max(per_thread.values())

    def run(self, older: int, step: int) -> None:
        """Kills at one step, looks, and lets two finish it."""
        name = f"{self._place.kind}, from {older}, killed at step {step}"
        place = self._place.make(older, older > 0)
        before = self._rows(place) if older else []
        status = self._traced(
            place, "-e", f"trace={self._place.calls}",
            "-e", f"inject={self._place.calls}:signal=KILL:when={step}")
        if status != 0:
            self.kills += 1
        if self._place.kind == "postgres" or (Path(str(place)) / "kedge.sqlite").exists():
            count, schema = self._place.schema(place)  # type: ignore[arg-type]
            expect(older <= count <= self.newest, f"{name}: {count} migrations")
            wanted = self._schemas[count - 1] if count else ""
            expect(count == 0 or schema == wanted, f"{name}: half a migration after number {count}")
        self._finish(name, place)
        count, schema = self._place.schema(place)  # type: ignore[arg-type]
        expect(count == self.newest and schema == self._schemas[-1], f"{name}: not the newest schema")
        if older:
            expect(self._rows(place) == before, f"{name}: other rows than before")

    def _finish(self, name: str, place: object) -> None:
        self._log.unlink(missing_ok=True)
        both = [
            Child(self._command(place, number), self._log, environment=self._environment)
            for number in range(2)]
        for child in both:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(60)
        statuses = [child.process.returncode for child in both]
        for child in both:
            child.end(signal.SIGKILL)
        # A data directory belongs to one process: the other one is sent away, and says why.
        is_refusal = "is in use by another kedge process" in self._log.read_text()
        if self._place.kind == "sqlite" and is_refusal and sorted(statuses) == [0, 1]:
            return
        expect(statuses == [0, 0], f"{name}: two at once end with {statuses}: {self._log.read_text()[-800:]}")

    def _rows(self, place: object) -> list[object]:
        return [
            self._place.ask(place, f"SELECT {columns} FROM {table} ORDER BY 1")  # type: ignore[arg-type]
            for table, columns in COMPARED.items()]

    def serve(self) -> None:
        """A service that begins on the first schema serves."""
        place = self._place.make(1, True)
        node = started(self._stage.node(
            *self._place.options(place), environment=self._place.environment))  # type: ignore[arg-type]
        node.kill()


def play(stage: Stage) -> str:
    """Every older schema of both kinds; what they showed."""
    with contextlib.suppress(Unavailable):
        find_program("strace")
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0:
            return migrate_all(stage)
    raise Skipped("tracing", "no strace, or not permitted")


def migrate_all(stage: Stage) -> str:
    """Migrates every older schema of both kinds; needs leave to trace processes."""
    report = []
    for make in (SQLiteEnvironment, PostgresEnvironment):
        trial = Trial(stage, make(stage))
        older = range(trial.newest) if stage.options.long else (0, trial.newest - 1)
        count = 0
        for number in older:
            total = trial.steps(number)
            chosen = range(1, total + 1)
            if not stage.options.long:
                chosen = sorted({1, total, *(total * part // 4 for part in (1, 2, 3))} - {0})
            for step in chosen:
                trial.run(number, step)
                count += 1
        trial.serve()
        expect(trial.kills >= count // 2, f"only {trial.kills} of {count} migrations were killed")
        report.append(f"{make.kind}: {trial.kills} kills of {count} migrations")
    return ", ".join(report)


if __name__ == "__main__":
    use_memory(1024)
    sys.exit(run_proof("migrations", arguments(__doc__).parse_args(), play))

#!/usr/bin/env python3
"""Kills a service that has many sessions again and again, and measures how long each start takes.

    start_up.py --binary KEDGE [--long]

Eight uploaders go on through all of it. Every start has to serve within five seconds, with thousands of open
sessions in the rows and on the disk; nothing that was acknowledged may be gone, and rows and bytes must agree
in the end.
"""

import random
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from proof import SMALL_CHUNKS, Stage, arguments, expect, run_proof, started
from check import Findings, ServiceCheck
from native_client import CHUNK_SIZE, NativeClient, content
from patient import Crowd, now

START_SECONDS = 5.0
OPEN_SESSIONS = 8_000


def multiply(data: Path, template: str, rows: int, files: int) -> None:
    """Makes as many sessions like one that is open; so many of them have bytes of their own.

    The service refuses to have more than some open; what is beyond that was given up.
    Whatever columns there are, they are copied: the schema may grow.
    """
    database = sqlite3.connect(data / "kedge.sqlite")
    columns = [row[1] for row in database.execute("PRAGMA table_info(session)")]
    copied = [name for name in columns if name not in ("number", "id", "staging_key")]
    chunk_columns = [row[1] for row in database.execute("PRAGMA table_info(chunk)")]
    names, chunk_names = ", ".join(copied), ", ".join(n for n in chunk_columns if n != "session")
    number, key = database.execute(
        "SELECT number, staging_key FROM session WHERE id = ?", (template,)).fetchone()
    bytes_of_it = data / "staging" / key[:2] / key
    copied.remove("state")
    names = ", ".join(copied)
    for index in range(rows):
        own_key, state = (secrets.token_hex(16), "open") if index < OPEN_SESSIONS else (None, "canceled")
        cursor = database.execute(
            f"INSERT INTO session (id, staging_key, state, {names}) SELECT ?, ?, ?, {names} FROM session"
            " WHERE number = ?", (secrets.token_hex(16), own_key, state, number))
        if index < files and own_key:
            database.execute(
                f"INSERT INTO chunk (session, {chunk_names}) SELECT ?, {chunk_names} FROM chunk"
                " WHERE session = ?", (cursor.lastrowid, number))
            place = data / "staging" / own_key[:2] / own_key
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(bytes_of_it, place)
    database.commit()
    database.close()


def play(stage: Stage) -> str:
    """The whole loop; what it showed."""
    kills, rows, files = (60, 50_000, 5_000) if stage.options.long else (6, 10_000, 1_000)
    chooser = random.Random(1)
    node = started(stage.node(*SMALL_CHUNKS))
    data = stage.directory / f"node-{node.port}"
    client = NativeClient(node.port)
    template = client.create("template", 3 * CHUNK_SIZE)
    client.put(template, content("template", 3 * CHUNK_SIZE), 0)
    client.close()
    node.kill()
    multiply(data, template, rows, files)
    started(node)
    crowd = Crowd("start-up", node.port, 8)
    crowd.start()
    starts = []
    for _ in range(kills):
        time.sleep(chooser.uniform(0.3, 1.0))
        node.kill()
        begun = time.monotonic()
        started(node)
        starts.append(time.monotonic() - begun)
    crowd.finish()
    findings = Findings()
    for text in crowd.lost:
        findings.promise(False, text)
    client = NativeClient(node.port)
    check = ServiceCheck(client, now(), findings)
    check.files(crowd.history)
    check.sessions(crowd.history)
    client.close()
    node.kill()
    done = subprocess.run(
        [stage.binary, "fsck", "--data", data], capture_output=True, text=True, timeout=300)
    findings.promise(done.returncode == 0, f"fsck: {done.stdout[-500:]} {done.stderr[-500:]}")
    expect(not findings.violations, f"broken promises: {findings.violations[:5]}")
    slowest = max(starts)
    expect(slowest <= START_SECONDS, f"a start took {slowest:.1f} s, at most {START_SECONDS:.0f} are allowed")
    return (
        f"{kills} kills with {rows} sessions, {findings.promises} promises kept,"
        f" starts within {slowest:.2f} s")


if __name__ == "__main__":
    sys.exit(run_proof("start-up", arguments(__doc__).parse_args(), play))

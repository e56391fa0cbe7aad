"""Runs one server for a test of another language, which talks to it in lines of JSON.

    host.py postgres|pgbouncer|rclone|moto|stub [OPTIONS AS JSON]

The first line on standard output is `{"answer": …}` with the server's addresses, or `{"error": …}`. Then
each line on standard input, `{"command": …}` with its arguments, gets such a line. When standard input ends,
which it does when the test's process is gone, however that came about, the server ends and its files go.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from object_stores import MotoServer, ObjectStore, RcloneServer, StubServer
from postgres import PgBouncer, PostgresServer
from processes import Unavailable

Command = Callable[..., Any]


def postgres(settings: dict[str, str] | None = None) -> tuple[Any, dict[str, Any], dict[str, Command]]:
    """A PostgreSQL of the test's own."""
    server = PostgresServer(settings)
    return server, {"url": server.url, "port": server.port}, {
        "makeDatabase": server.make_database, "query": server.query, "kill": server.kill,
        "restart": server.restart,
    }


def pgbouncer(port: int) -> tuple[Any, dict[str, Any], dict[str, Command]]:
    """A pool in front of the PostgreSQL with that port."""
    server = PgBouncer(port)
    return server, {"port": server.port}, {}


def described(store: ObjectStore, **commands: Command) -> tuple[Any, dict[str, Any], dict[str, Command]]:
    """An object store as the others."""
    return store, {
        "endpoint": store.endpoint, "accessKey": store.access_key, "secretKey": store.secret_key,
        "bucket": store.bucket,
    }, commands


def rclone() -> tuple[Any, dict[str, Any], dict[str, Command]]:
    """`rclone serve s3`."""
    store = RcloneServer()
    return described(store, left=store.left)


def stub(
    minPartByteCount: int, pageSize: int,  # noqa: N803
) -> tuple[Any, dict[str, Any], dict[str, Command]]:
    """The strict stand-in."""
    store = StubServer(minPartByteCount, pageSize)
    return described(
        store, fail=lambda rules: store.fail(*rules), heal=store.heal, state=store.state,
        freeze=store.freeze, thaw=store.thaw, damage=store.damage)


KINDS: dict[str, Callable[..., tuple[Any, dict[str, Any], dict[str, Command]]]] = {
    "postgres": postgres, "pgbouncer": pgbouncer, "rclone": rclone,
    "moto": lambda: described(MotoServer()), "stub": stub,
}


def say(line: dict[str, Any]) -> None:
    """Answers."""
    print(json.dumps(line), flush=True)


def obey(commands: dict[str, Command]) -> None:
    """Runs the commands that come on standard input until it ends."""
    for line in sys.stdin:
        arguments = json.loads(line)
        try:
            say({"answer": commands[arguments.pop("command")](**arguments)})
        except (Unavailable, OSError) as error:
            say({"error": str(error)})


def main() -> int:
    """Runs the server that the arguments name."""
    # Closes files that another thread of the test opened while this process was started.
    os.closerange(3, 1 << 16)
    # Unblocks signals that this thread's parent had blocked, so that they end the servers.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # Ctrl-C goes to every process of the terminal; the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ending it gently is the same as ending its input.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    options = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    try:
        server, about, commands = KINDS[sys.argv[1]](**options)
    except (Unavailable, OSError) as error:
        say({"error": str(error)})
        return 1
    try:
        say({"answer": about})
        obey(commands)
    except BrokenPipeError:
        pass  # the test that would read the answer has ended
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

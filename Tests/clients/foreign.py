"""Runs a tus server that others wrote, for tests of our own client, which may be of another language.

    foreign.py tuspyserver|resumable-upload [--while-parent]

The first line on standard output is `{"answer": {"tus": URL, "directory": PATH}}`, or `{"error": …}`. When
standard input ends, which it does when the test's process is gone, the server ends and its files go; with
--while-parent they do at SIGTERM, and when the process that started it is gone.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))

from processes import Unavailable, can_connect, free_port


def tuspyserver(directory: str, port: int) -> str:
    """In uvicorn, as its documentation shows."""
    import uvicorn
    from fastapi import FastAPI
    from tuspyserver import create_tus_router

    application = FastAPI()
    application.include_router(create_tus_router(files_dir=directory, prefix="files"))
    server = uvicorn.Server(uvicorn.Config(
        application, host="127.0.0.1", port=port, log_level="error", access_log=False))
    threading.Thread(target=server.run, daemon=True).start()
    return f"http://127.0.0.1:{port}/files/"


def resumable_upload(directory: str, port: int) -> str:
    """In the standard library's server, as its documentation shows."""
    from resumable_upload import SQLiteStorage, TusHTTPRequestHandler, TusServer

    class Handler(TusHTTPRequestHandler):
        tus_server = TusServer(
            storage=SQLiteStorage(db_path=f"{directory}/uploads.db", upload_dir=f"{directory}/uploads"),
            base_path="/files")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{port}/files"


SERVERS = {"tuspyserver": tuspyserver, "resumable-upload": resumable_upload}


def wait_for_parent() -> None:
    """Returns when the parent has ended, or SIGTERM has come."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    parent = os.getppid()
    while os.getppid() == parent and not ended.wait(0.2):
        pass


def main(name: str, *options: str) -> None:
    with tempfile.TemporaryDirectory(prefix="kedge-foreign-") as directory:
        port = free_port()
        try:
            url = SERVERS[name](directory, port)
            deadline = time.monotonic() + 20
            while not can_connect(port):
                if time.monotonic() > deadline:
                    raise Unavailable(f"{name} does not come up")
                time.sleep(0.02)
        except (ImportError, OSError, Unavailable) as error:
            print(json.dumps({"error": str(error)}), flush=True)
            return
        print(json.dumps({"answer": {"tus": url, "directory": directory}}), flush=True)
        wait_for_parent() if options else sys.stdin.read()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in SERVERS or sys.argv[2:] not in ([], ["--while-parent"]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
    # The servers' threads have no end of their own.
    sys.stdout.flush()
    os._exit(0)

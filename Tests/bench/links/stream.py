"""A plain TCP stream, the measure for every program.

    stream.py serve PORT
    stream.py up|down PORT SECONDS

It sends as much as the connection takes for that time, and cuts the connection then.
"""

import socket
import sys
import threading
import time

PIECE = bytes(64 << 10)


def send(connection: socket.socket, seconds: float) -> None:
    """Sends until the time is over."""
    end = time.monotonic() + seconds
    connection.settimeout(1)
    while time.monotonic() < end:
        try:
            connection.send(PIECE)
        except TimeoutError:
            continue
        except OSError:
            return


def receive(connection: socket.socket, seconds: float) -> None:
    """Receives until the time is over or the other end has closed."""
    end = time.monotonic() + seconds
    connection.settimeout(1)
    while time.monotonic() < end:
        try:
            if not connection.recv(1 << 20):
                return
        except TimeoutError:
            continue
        except OSError:
            return


def answer(connection: socket.socket) -> None:
    """Does the opposite of what the client does."""
    with connection:
        words = b""
        while not words.endswith(b"\n"):
            words += connection.recv(1)
        direction, seconds = words.decode().split()
        (receive if direction == "up" else send)(connection, float(seconds))


def main() -> int:
    """Serves, or transfers once."""
    direction, port = sys.argv[1], int(sys.argv[2])
    if direction == "serve":
        listener = socket.create_server(("127.0.0.1", port))
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{direction} {sys.argv[3]}\n".encode())
        (send if direction == "up" else receive)(connection, float(sys.argv[3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

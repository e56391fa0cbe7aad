"""A proxy whose connections die after some hundred KiB, as those of bad links do."""

import contextlib
import random
import socket
import threading

PIECE = 16 * 1024
# Makes the system send a reset at close, and forget what is on its way.
RESET = b"\x01\0\0\0\0\0\0\0"


class FaultyProxy:
    """Passes bytes both ways; each connection takes between `least` and `most` bytes from the client."""

    def __init__(self, port: int, seed: int, least: int = 300 * 1024, most: int = 2 << 20,
                 reset_share: float = 0.5) -> None:
        self.cut_count = 0
        # Bytes that passed from clients.
        self.byte_count = 0
        self._upstream = port
        self._random = random.Random(seed)
        self._range = (least, most)
        self._reset_share = reset_share
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "FaultyProxy":
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept is not woken by close alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._upstream), timeout=30)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        with self._lock:
            budget = self._random.randint(*self._range)
            resets = self._random.random() < self._reset_share
            self._open |= {client, server}
        back = threading.Thread(target=self._pass, args=(server, client, None), daemon=True)
        back.start()
        if self._pass(client, server, budget):
            self._cut(client, server, resets)
        back.join()
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()

    def _pass(self, source: socket.socket, sink: socket.socket, budget: int | None) -> bool:
        """Passes bytes until the source ends; returns whether the budget ended first."""
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                is_over = budget is not None and passed + len(data) > budget
                if is_over:
                    data = data[: budget - passed]
                sink.sendall(data)
                passed += len(data)
                if budget is not None:
                    with self._lock:
                        self.byte_count += len(data)
                if is_over:
                    return True
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        return False

    def _cut(self, client: socket.socket, server: socket.socket, resets: bool) -> None:
        with self._lock:
            self.cut_count += 1
        if resets:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        for each in (server, client):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

"""A link that counts the bytes of answers, dies after so many of each connection, and can be held still."""

import contextlib
import socket
import threading
import time

from faulty_proxy import PIECE, RESET


class MeteredLink:
    """Passes bytes both ways between clients and a port of this machine."""

    def __init__(self, port: int, bytes_per_connection: int | None = None,
                 bytes_per_second: int | None = None) -> None:
        # Bytes that went towards clients on all connections.
        self.byte_count = 0
        self.cut_count = 0
        # Most connections of clients that were open at the same time.
        self.most_connections = 0
        self._upstream = port
        self._bytes_per_connection = bytes_per_connection
        self._bytes_per_second = bytes_per_second
        # When the next bytes may pass, where there is a rate.
        self._next_time = 0.0
        self._hold_at: int | None = None
        self._may_pass = threading.Condition()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "MeteredLink":
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept is not woken by close alone.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def hold_at(self, byte_count: int) -> None:
        """Lets nothing more pass to clients once so many bytes went there in all."""
        with self._may_pass:
            self._hold_at = byte_count

    def wait_until_held(self, seconds: float = 60) -> bool:
        """Whether that many bytes went before the time was over."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._may_pass:
                if self._hold_at is not None and self.byte_count >= self._hold_at:
                    return True
            time.sleep(0.02)
        return False

    def cut(self) -> None:
        """Ends all connections; those that come later pass without bound."""
        with self._may_pass:
            self._hold_at = None
            self._may_pass.notify_all()
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # Larger buffers would swallow megabytes that a client which is killed never reads.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * PIECE)
        try:
            server = socket.create_connection(("127.0.0.1", self._upstream), timeout=30)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        with self._may_pass:
            self._open |= {client, server}
            self.most_connections = max(self.most_connections, len(self._open) // 2)
        questions = threading.Thread(target=self._pass_questions, args=(client, server), daemon=True)
        questions.start()
        self._pass_answers(server, client)
        questions.join()
        with self._may_pass:
            self._open -= {client, server}
        client.close()
        server.close()

    def _pass_questions(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(PIECE):
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := server.recv(PIECE):
                self._wait_for_leave()
                self._keep_pace(len(data))
                client.sendall(data)
                passed += len(data)
                with self._may_pass:
                    self.byte_count += len(data)
                if self._bytes_per_connection is not None and passed >= self._bytes_per_connection:
                    self.cut_count += 1
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    break
        for each in (client, server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _keep_pace(self, byte_count: int) -> None:
        """All connections together are no faster than the link."""
        if self._bytes_per_second is None:
            return
        with self._may_pass:
            now = time.monotonic()
            begin = max(now, self._next_time)
            self._next_time = begin + byte_count / self._bytes_per_second
        time.sleep(max(0, begin - now))

    def _wait_for_leave(self) -> None:
        with self._may_pass:
            while self._hold_at is not None and self.byte_count >= self._hold_at:
                self._may_pass.wait()

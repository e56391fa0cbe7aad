"""A command in a pseudo-terminal: its screen, a service to talk to, and a link of limited rate between them.

The terminal is pyte, an emulator of a VT100 with xterm's extensions.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request

import pyte

ROWS = 24


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class SlowLink:
    """Passes connections on, upwards at a limited rate, and not at all while stopped."""

    def __init__(self, port, bytes_per_second):
        self.target = port
        self.rate = bytes_per_second
        self.is_stopped = False
        self.turn = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            far = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self.copy, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self.copy, args=(far, near, False), daemon=True).start()

    def copy(self, source, target, is_slow):
        with contextlib.suppress(OSError):
            while data := source.recv(32 << 10):
                while is_slow and self.is_stopped:
                    time.sleep(0.05)
                if is_slow:
                    with self.turn:
                        time.sleep(len(data) / self.rate)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


class Terminal:
    """A command in a pseudo-terminal, and its screen."""

    def __init__(self, command, columns, environment):
        self.screen = pyte.HistoryScreen(columns, ROWS, history=10000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.frames = []
        self.process_id, self.descriptor = pty.fork()
        if self.process_id == 0:
            os.execvpe(command[0], command, environment)
        self.resize(columns)

    def resize(self, columns):
        size = struct.pack("HHHH", ROWS, columns, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)
        self.screen.resize(ROWS, columns)

    def watch(self, seconds):
        """Reads for a time, or until the command ends; returns whether it still runs."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.descriptor], [], [], left)[0]:
                break
            try:
                data = os.read(self.descriptor, 1 << 16)
            except OSError:
                return False
            if not data:
                return False
            self.raw += data
            # The emulator drops the rest of a text after a joiner or a selector of emoji. Without
            # them it draws each picture by itself, as many terminals do.
            self.stream.feed(data.replace("\u200d".encode(), b"").replace("\ufe0f".encode(), b""))
            self.frames.append([line.rstrip() for line in self.screen.display])
        return True

    def shows(self, text, within):
        """Waits until a line on the screen has the text; returns whether one had."""
        end = time.monotonic() + within
        while time.monotonic() < end and self.watch(0.3):
            if any(text in line for line in self.screen.display):
                return True
        return False

    def has_prompts(self, count, prompt, within):
        """Waits until a shell has asked for its count-th command, and for nothing else; returns whether it did."""
        end = time.monotonic() + within
        while time.monotonic() < end and self.watch(0.2):
            line = self.screen.display[self.screen.cursor.y]
            if line.rstrip() == prompt.rstrip() and self.screen.cursor.x == len(prompt):
                if sum(line.startswith(prompt.rstrip()) for line in self.lines) == count:
                    return True
        return False

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def close(self):
        """Hangs up, and waits for the command to end."""
        os.kill(self.process_id, signal.SIGHUP)
        os.close(self.descriptor)
        os.waitpid(self.process_id, 0)

    def end(self, seconds=60):
        """Waits for the end and returns the exit status."""
        if self.watch(seconds):
            sys.exit(f"the command still runs after {seconds} s; its screen: {self.lines}")
        return os.waitstatus_to_exitcode(os.waitpid(self.process_id, 0)[1])

    def interrupt(self):
        os.kill(self.process_id, signal.SIGINT)

    @property
    def lines(self):
        """All lines, with those that have left the screen at the top."""
        past = ["".join(line[x].data for x in range(self.screen.columns)) for line in self.screen.history.top]
        return [line.rstrip() for line in [*past, *self.screen.display] if line.strip()]


@contextlib.contextmanager
def service(kedge, directory):
    port = free_port()
    process = subprocess.Popen(
        [kedge, "serve", "--port", str(port), "--data", f"{directory}/data"],
        stderr=open(f"{directory}/service.log", "w", encoding="utf-8"),
    )
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz")
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(60)

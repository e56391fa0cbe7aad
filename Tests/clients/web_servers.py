"""Web servers that others wrote, each serving the files of one directory."""

import http.client
import contextlib
from collections.abc import Callable
from pathlib import Path

from processes import ROOT, Child, find_program, free_port


class WebServer:
    """One of them, running; `url` is the directory's address."""

    def __init__(self, name: str, child: Child, port: int) -> None:
        self.name = name
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._child = child
        child.wait_until(f"{name} serves", self._answers)

    def stop(self) -> None:
        self._child.end()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("HEAD", "/ready.txt")
                return connection.getresponse().status == 200
            finally:
                connection.close()
        return False


# Starts one: name, directory with the files, directory for what the server writes.
Starter = Callable[[str, Path, Path], WebServer]


def _server(name: str, place: Path, port: int, program: str, *words: str | Path,
            environment: dict[str, str] | None = None) -> WebServer:
    command = [find_program(program, ROOT / ".build-bench-venv" / "bin"), *words]
    return WebServer(name, Child(command, place / "log", environment=environment), port)


def _written(place: Path, text: str) -> Path:
    path = place / "configuration"
    path.write_text(text)
    return path


def nginx(directives: str = "") -> Starter:
    """nginx as a file server, with further directives."""
    def start(name: str, files: Path, place: Path) -> WebServer:
        port = free_port()
        temporary = "".join(
            f"{kind}_temp_path {place}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration = _written(place, f"""
            daemon off; pid {place}/pid; user root; error_log {place}/error;
            events {{}}
            http {{
                access_log off; {temporary} {directives}
                server {{ listen 127.0.0.1:{port}; root {files}; }}
            }}""")
        return _server(name, place, port, "nginx", "-c", configuration, "-e", place / "error")
    return start


def apache(name: str, files: Path, place: Path) -> WebServer:
    """Apache with the modules that serving files needs."""
    port = free_port()
    modules = "".join(
        f"LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n"
        for module in ("mpm_event", "authz_core"))
    configuration = _written(place, f"""
ServerName 127.0.0.1
ServerRoot {place}
PidFile {place}/pid
ErrorLog {place}/error
Listen 127.0.0.1:{port}
{modules}
User www-data
Group www-data
DocumentRoot {files}
<Directory {files}>
Require all granted
</Directory>
""")
    return _server(name, place, port, "apache2", "-D", "FOREGROUND", "-f", configuration)


def lighttpd(name: str, files: Path, place: Path) -> WebServer:
    port = free_port()
    configuration = _written(place, f"""
server.document-root = "{files}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{place}/error"
mimetype.assign = ("" => "application/octet-stream")
""")
    return _server(name, place, port, "lighttpd", "-D", "-f", configuration)


def caddy(name: str, files: Path, place: Path) -> WebServer:
    port = free_port()
    configuration = _written(place, f"""
{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {files}
    file_server
}}
""")
    return _server(name, place, port, "caddy", "run", "--adapter", "caddyfile", "--config",
                   configuration, environment={"HOME": str(place), "PATH": "/usr/bin:/bin"})


def rclone(name: str, files: Path, place: Path) -> WebServer:
    """rclone, which sends a date and no entity tag."""
    port = free_port()
    return _server(name, place, port, "rclone", "serve", "http", files, "--addr",
                   f"127.0.0.1:{port}", "--config", place / "none",
                   environment={"HOME": str(place), "PATH": "/usr/bin:/bin"})


def python(name: str, files: Path, place: Path) -> WebServer:
    """Python's http.server, which knows no ranges."""
    port = free_port()
    return _server(name, place, port, "python3", "-m", "http.server", str(port), "--bind",
                   "127.0.0.1", "--directory", files)


def varnish(name: str, files: Path, place: Path) -> WebServer:
    """Varnish, which caches what nginx serves."""
    behind_place = place / "behind"
    behind_place.mkdir()
    behind = nginx()(f"nginx behind {name}", files, behind_place)
    port = free_port()
    configuration = _written(place, f"""
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{behind.port}"; }}
""")
    front = _server(name, place, port, "varnishd", "-F", "-n", place / "work", "-a",
                    f"127.0.0.1:{port}", "-f", configuration, "-s", "malloc,256m")
    return _Pair(front, behind)


class _Pair(WebServer):
    """A server and the one that it asks."""

    def __init__(self, front: WebServer, behind: WebServer) -> None:
        self.name, self.port, self.url = front.name, front.port, front.url
        self._servers = [front, behind]

    def stop(self) -> None:
        for each in self._servers:
            each.stop()


# With an entity tag, with a date alone, and without ranges.
WEB_SERVERS: dict[str, Starter] = {
    "nginx": nginx(),
    "nginx without tags": nginx("etag off;"),
    "apache": apache,
    "lighttpd": lighttpd,
    "caddy": caddy,
    "rclone": rclone,
    "varnish": varnish,
    "python": python,
}

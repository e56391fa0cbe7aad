"""Proxies that others wrote, in front of a service, as deploy/ configures them and in worse ways."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from processes import ROOT, Child, Unavailable, can_connect, find_program, free_port

SHIPPED = ROOT / "deploy" / "proxies"
APACHE_MODULES = Path("/usr/lib/apache2/modules")
# Where deploy/proxies listens, and where it passes requests to.
LISTEN, UPSTREAM = "127.0.0.1:8081", "127.0.0.1:8080"


@dataclass
class Place:
    """Where one proxy runs: its ports, and a directory of its own."""

    directory: Path
    upstream: int
    port: int

    def shipped(self, name: str) -> str:
        """A configuration of deploy/proxies for these ports."""
        text = (SHIPPED / name).read_text()
        if name == "varnish.vcl":
            return text.replace('.port = "8080"', f'.port = "{self.upstream}"')
        for marked, port in ((LISTEN, self.port), (UPSTREAM, self.upstream)):
            text = text.replace(marked, f"127.0.0.1:{port}")
        return text.replace("parent 8080", f"parent {self.upstream}")

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path


def nginx(
    change: Callable[[str, Place], str] = lambda text, _: text
) -> Callable[[Place], list[str]]:
    """nginx with deploy/nginx.conf, which `change` may spoil."""
    def make(place: Place) -> list[str]:
        text = subprocess.run(
            ["bash", ROOT / "Tests/support/render_nginx.sh", f"127.0.0.1:{place.port}",
             f"127.0.0.1:{place.upstream}", place.directory],
            check=True, capture_output=True, text=True).stdout
        file = place.write("nginx.conf", change(text, place))
        log = place.directory / "error.log"
        return [str(find_program("nginx")), "-c", str(file), "-e", str(log)]
    return make


def _buffering(text: str, _: Place) -> str:
    return text.replace("proxy_request_buffering off;", "")


def _old_upstream(text: str, _: Place) -> str:
    return _buffering(text, _).replace("proxy_http_version 1.1;", "proxy_http_version 1.0;")


def _limited(text: str, _: Place) -> str:
    return _buffering(text, _).replace("client_max_body_size 0;", "client_max_body_size 1m;")


def _with_tls(text: str, place: Place) -> str:
    certificate = make_certificate(place.directory)
    # The client comes by an `unwrapper`, so the addresses in answers must have the scheme http.
    return text.replace("X-Forwarded-Proto $scheme", "X-Forwarded-Proto http").replace(
        f"listen 127.0.0.1:{place.port};",
        f"listen 127.0.0.1:{place.port} ssl; ssl_certificate {certificate};"
        f" ssl_certificate_key {certificate};")


def make_certificate(directory: Path) -> Path:
    """A certificate and its key in one file."""
    path = directory / "certificate.pem"
    key = directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", key, "-out", path], check=True, capture_output=True)
    path.write_text(path.read_text() + key.read_text())
    return path


def haproxy(place: Place) -> list[str]:
    return [str(find_program("haproxy")), "-db", "-f", str(place.write("haproxy.cfg",
                                                                     place.shipped("haproxy.cfg")))]


def apache(place: Place) -> list[str]:
    modules = "".join(
        f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n"
        for name in ("mpm_event", "authz_core", "proxy", "proxy_http"))
    head = (f"{modules}ServerName localhost\nServerRoot {place.directory}\nPidFile apache.pid\n"
            f"ErrorLog error.log\nDefaultRuntimeDir {place.directory}\nMutex posixsem\n")
    if os.geteuid() == 0:
        head += "User www-data\nGroup www-data\n"
    file = place.write("apache.conf", head + place.shipped("apache.conf"))
    return [str(find_program("apache2")), "-DFOREGROUND", "-f", str(file)]


def squid(place: Place) -> list[str]:
    # It becomes another user, who cannot enter this directory: it writes nothing.
    more = ("pid_filename none\naccess_log none\ncache_log /dev/null\ncoredump_dir none\n"
            "shutdown_lifetime 0 seconds\nvisible_hostname localhost\n")
    file = place.write("squid.conf", place.shipped("squid.conf") + more)
    return [str(find_program("squid")), "-N", "-f", str(file)]


def varnish(place: Place) -> list[str]:
    file = place.write("varnish.vcl", place.shipped("varnish.vcl"))
    return [str(find_program("varnishd")), "-F", "-j", "none", "-f", str(file), "-n",
            str(place.directory / "varnish"), "-a", f"127.0.0.1:{place.port}"]


def stunnel(place: Place) -> list[str]:
    text = place.shipped("stunnel.conf").replace(
        "/etc/stunnel/kedge.pem", str(make_certificate(place.directory)))
    file = place.write("stunnel.conf", f"foreground = yes\npid =\n{text}")
    return [str(find_program("stunnel4")), str(file)]


def unwrapper(place: Place) -> list[str]:
    """Speaks TLS to the upstream, and accepts its self-signed certificate, for clients without TLS."""
    file = place.write("unwrapper.conf", f"""foreground = yes
pid =
[unwrapper]
client = yes
accept = 127.0.0.1:{place.port}
connect = 127.0.0.1:{place.upstream}
""")
    return [str(find_program("stunnel4")), str(file)]


@dataclass(frozen=True)
class ProxyKind:
    """One proxy as one configuration makes it."""

    name: str
    # None for no proxy at all.
    make: Callable[[Place], list[str]] | None
    # The value that `resumableUpload.interim` must have.
    interim: str = "auto"
    has_tls: bool = False
    # Bodies are gathered before they are passed on.
    gathers: bool = False
    # A connection to the service has one request or a few, which no chunk makes long.
    closes: bool = False
    # Sends the service no header with the clients' scheme, so that addresses have no scheme and no host.
    hides_scheme: bool = False


KINDS = [
    ProxyKind("direct", None),
    ProxyKind("nginx", nginx(), "never"),
    ProxyKind("nginx-buffering", nginx(_buffering), gathers=True),
    ProxyKind("nginx-http/1.0", nginx(_old_upstream), gathers=True, closes=True),
    ProxyKind("nginx-1m", nginx(_limited), gathers=True),
    ProxyKind("nginx-tls", nginx(_with_tls), has_tls=True),
    ProxyKind("varnish", varnish, "never", hides_scheme=True),
    ProxyKind("haproxy", haproxy, "always", hides_scheme=True),
    ProxyKind("apache", apache, "always", hides_scheme=True),
    ProxyKind("squid", squid, "always", closes=True, hides_scheme=True),
    ProxyKind("stunnel", stunnel, "always", has_tls=True),
]


def start(
    make: Callable[[Place], list[str]], name: str, directory: Path, upstream: int
) -> tuple[Child, int]:
    """Starts a proxy; returns it and its port."""
    port = free_port()
    place = Place(directory / f"{name.replace('/', '-')}-{port}", upstream, port)
    place.directory.mkdir(mode=0o755)
    command = make(place)
    child = Child(command, place.directory / "log")
    try:
        child.wait_until(f"{name} listens", lambda: can_connect(port))
    except Unavailable:
        child.end()
        raise
    return child, port

#!/usr/bin/env python3
"""Lets a real Prometheus scrape a service for some seconds while files are transferred, and compares what it has stored.

    check_scrape.py PATH_TO_KEDGE

Prometheus scrapes the listener of metrics.listen, and the address of the service with an API token. Its log must
have no complaint about samples, each name of docs/METRICS.md that a service with a data directory has must be
stored, and the sums must be those of the transfers. Needs Debian's package prometheus.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/support"))
from skipping import skipped

ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \|", re.M)
# Metrics of parts that this service does not use.
ABSENT = re.compile(r"kedge_(s3_|store_retries|tls_|jwks_|links_|auth_|quota_|rate_limited)")
FILE_BYTE_COUNT = 24 << 20
SECONDS = 8


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(url, process, log):
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.read()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.1)
    sys.exit(f"{url} does not answer:\n{log.read_text(encoding='utf-8')}")


def ask(port, query):
    text = urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{text}", timeout=5) as answer:
        return json.load(answer)["data"]["result"]


def value(port, query):
    result = ask(port, query)
    return float(result[0]["value"][1]) if result else None


def transfer(kedge, environment, directory, server):
    source = directory / "source"
    source.write_bytes(os.urandom(1 << 20) * (FILE_BYTE_COUNT >> 20))
    for number in range(2):
        subprocess.run(
            [kedge, "upload", source, "--server", server, "--again", "--quiet", "--name", f"{number}.bin"],
            env=environment, check=True, stdout=subprocess.DEVNULL,
        )
    subprocess.run(
        [kedge, "download", "last", "--server", server, "--output", directory / "copy", "--quiet"],
        env=environment, check=True, stdout=subprocess.DEVNULL,
    )
    if (directory / "copy").read_bytes() != source.read_bytes():
        sys.exit("the downloaded file differs")


def complaints(port, log):
    names = [name for name, _ in ROW.findall((ROOT / "docs/METRICS.md").read_text(encoding="utf-8"))]
    kinds = dict(ROW.findall((ROOT / "docs/METRICS.md").read_text(encoding="utf-8")))
    for name in names:
        stored = f"{name}_count" if kinds[name] == "histogram" else name
        # A counter without an event has no series.
        is_optional = ABSENT.match(name) or name in ("kedge_errors_total",)
        if not is_optional and not ask(port, f'{stored}{{job="listener"}}'):
            yield f"Prometheus has stored no {name}"
    for job in ("listener", "service"):
        if value(port, f'up{{job="{job}"}}') != 1:
            yield f"the last scrape of {job} failed"
        if value(port, f'min_over_time(up{{job="{job}"}}[{SECONDS}s])') != 1:
            yield f"a scrape of {job} failed"
        received = value(port, f'sum(kedge_upload_bytes_total{{job="{job}"}})')
        if received is None or received < 2 * FILE_BYTE_COUNT:
            yield f"{job}: {received} bytes received of {2 * FILE_BYTE_COUNT}"
        if value(port, f'kedge_sessions_completed_total{{job="{job}"}}') != 2:
            yield f"{job}: not two completed sessions"
    for line in log.read_text(encoding="utf-8").splitlines():
        if re.search(r"out.of.order|duplicate|Error on ingesting|append failed", line, re.I):
            yield line


def main():
    if not shutil.which("prometheus"):
        sys.exit(skipped("promtool", "prometheus is not installed; Debian's package prometheus has it"))
    kedge = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        environment = {"PATH": os.environ["PATH"], "HOME": scratch, "XDG_STATE_HOME": scratch}
        data = directory / "data"
        token = subprocess.run(
            [kedge, "token", "create", "test", "--owner", "alice", "--scopes", "user,metrics:read", "--data", data],
            env=environment, check=True, stdout=subprocess.PIPE, text=True,
        ).stdout.strip()
        (directory / "token").write_text(token, encoding="utf-8")
        port, metrics, own = free_port(), free_port(), free_port()
        processes = []
        try:
            with (directory / "kedge.log").open("w") as output:
                processes.append(subprocess.Popen(
                    [kedge, "serve", "--port", str(port), "--data", data, "--identity-mode", "tokens",
                     "--metrics-listen", f"127.0.0.1:{metrics}"],
                    env=environment, stdout=output, stderr=output,
                ))
            wait_for(f"http://127.0.0.1:{port}/readyz", processes[0], directory / "kedge.log")
            settings = {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": [
                    {"job_name": "listener", "static_configs": [{"targets": [f"127.0.0.1:{metrics}"]}]},
                    {"job_name": "service", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
                     "authorization": {"credentials_file": str(directory / "token")}},
                ],
            }
            # JSON is YAML.
            (directory / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
            with (directory / "prometheus.log").open("w") as output:
                processes.append(subprocess.Popen(
                    ["prometheus", f"--config.file={directory}/prometheus.yml",
                     f"--storage.tsdb.path={directory}/tsdb", f"--web.listen-address=127.0.0.1:{own}"],
                    stdout=output, stderr=output,
                ))
            wait_for(f"http://127.0.0.1:{own}/-/ready", processes[1], directory / "prometheus.log")
            environment["KEDGE_TOKEN"] = token
            transfer(kedge, environment, directory, f"http://127.0.0.1:{port}")
            # Values that are asked for are up to ten seconds old.
            time.sleep(SECONDS + 4)
            failures = list(complaints(own, directory / "prometheus.log"))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait()
    if failures:
        sys.exit("\n".join(failures))
    print("metrics: Prometheus has stored all that the page lists, without a complaint")


main()

#!/usr/bin/env python3
"""Checks the dashboard and the alerts in deploy/ against the tables of docs/METRICS.md, after checking itself.

    check_metrics.py

Each metric and label in an expression must be in the tables. promtool, which comes with Debian's package
prometheus, then reads all expressions, and runs the cases of alerts_test.yml. Needs PyYAML. Prints every
disagreement, and ends with status 1 when there is one.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/support"))
from skipping import skipped

PAGE = ROOT / "docs/METRICS.md"
DASHBOARD = ROOT / "deploy/grafana/kedge.json"
PROMETHEUS = ROOT / "deploy/prometheus/prometheus.yml"
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
CASES = ROOT / "Tests/deploy/alerts_test.yml"

ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \| [^|]* \| ([^|]*) \|", re.M)
# Prometheus adds these metrics and labels itself.
OWN_METRICS = {"up": {"job", "instance"}}
OWN_LABELS = {"job", "instance"}
HISTOGRAM_SAMPLES = {"_bucket": {"le"}, "_sum": set(), "_count": set()}
STRING = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'")
RANGE = re.compile(r"\[[^\]]*\]")
NUMBER = re.compile(r"\b\d[\w.]*")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\})?(?!\s*\()(?![\w:])")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
KEYWORDS = {"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring"}


def known_samples(page):
    """The name of each sample of the table, with its labels."""
    samples = dict(OWN_METRICS)
    for name, kind, labels in ROW.findall(page):
        labels = set(re.findall(r"`(\w+)`", labels)) | OWN_LABELS
        if kind == "histogram":
            samples |= {name + suffix: labels | more for suffix, more in HISTOGRAM_SAMPLES.items()}
        else:
            samples[name] = labels
    return samples


def disagreements(expression, samples):
    """Yields each metric of an expression that no service has, and each label that no metric in it has."""
    code = NUMBER.sub(" ", RANGE.sub(" ", STRING.sub('""', expression)))
    grouped = [label.strip() for labels in GROUPING.findall(code) for label in labels.split(",")]
    used = set()
    for name, matchers in SELECTOR.findall(GROUPING.sub(" ", code)):
        if name in KEYWORDS:
            continue
        if name not in samples:
            yield f"there is no metric {name}"
            continue
        used |= samples[name]
        for label in MATCHER.findall(matchers):
            if label not in samples[name]:
                yield f"{name} has no label {label}"
    for label in grouped:
        if label and label not in used:
            yield f"no metric here has the label {label}"


def dashboard_expressions(dashboard):
    """The title of each panel with its expressions, then the metrics of the variables."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if match := re.fullmatch(r"label_values\((.*), *\w+\)", variable["query"]):
            yield variable["name"], match[1]


def alert_expressions(alerts):
    for group in alerts["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def check_texts(expressions, samples):
    return [
        f"{place}: {problem}" for place, expression in expressions for problem in disagreements(expression, samples)
    ]


def run(promtool, *arguments):
    """The output of a failed run; nothing for a successful one."""
    result = subprocess.run(
        [promtool, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return [] if result.returncode == 0 else [result.stdout.strip()]


def check_with_promtool(promtool, expressions):
    """Prometheus reads its settings, the alerts and the expressions of the dashboard."""
    failures = run(promtool, "check", "config", PROMETHEUS)
    failures += run(promtool, "check", "rules", ALERTS)
    failures += run(promtool, "test", "rules", CASES)
    # Grafana replaces its variables before Prometheus reads an expression.
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (_, expression) in enumerate(expressions)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch, "dashboard.yml")
        file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
        return failures + run(promtool, "check", "rules", "--lint=none", file)


def check_cases(alerts, cases):
    """Yields each alert that no case of alerts_test.yml fires."""
    fired = {
        test["alertname"]
        for case in cases["tests"]
        for test in case["alert_rule_test"]
        if test.get("exp_alerts")
    }
    for name, _ in alert_expressions(alerts):
        if name not in fired:
            yield f"{CASES.name}: no case fires {name}"


def check_itself():
    """Plants each kind of disagreement, and expressions without one."""
    page = "| `a_total` | counter | – | `kind`, `code` | Text. |\n| `b_seconds` | histogram | seconds | – | T. |\n"
    page += "| `b_seconds` | 0.5 1.0 |\n"
    samples = known_samples(page)
    right = [
        'sum by (kind, job) (rate(a_total{code="x_total", job=~"$job"}[5m])) / on (job) group_left () up > 0.5',
        "histogram_quantile(0.99, sum by (le) (rate(b_seconds_bucket[$__rate_interval])))",
        "b_seconds_sum / b_seconds_count and a_total offset 5m > 10 * 1024 ^ 3 - time()",
        "a_total{code=\"}\", kind='sum(b)'} == bool 1e9",
    ]
    wrong = {
        "rate(a[5m])": ["there is no metric a"],
        "b_seconds > 1": ["there is no metric b_seconds"],
        "a_total_sum": ["there is no metric a_total_sum"],
        'sum(a_total{cod="x"})': ["a_total has no label cod"],
        "sum by (le) (a_total)": ["no metric here has the label le"],
        'a_total{le="1"} + c': ["a_total has no label le", "there is no metric c"],
    }
    found = [problem for expression in right for problem in disagreements(expression, samples)]
    found += [f"{e}: {d}" for e, expected in wrong.items() if (d := list(disagreements(e, samples))) != expected]
    if found:
        sys.exit(f"the check does not find what was planted: {found}")


def main():
    check_itself()
    samples = known_samples(PAGE.read_text(encoding="utf-8"))
    alerts = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    panels = list(dashboard_expressions(json.loads(DASHBOARD.read_text(encoding="utf-8"))))
    failures = check_texts([*panels, *alert_expressions(alerts)], samples)
    failures += check_cases(alerts, yaml.safe_load(CASES.read_text(encoding="utf-8")))
    promtool = shutil.which("promtool")
    if promtool:
        failures += check_with_promtool(promtool, panels)
    if failures:
        sys.exit("\n".join(failures))
    if not promtool:
        sys.exit(skipped("promtool", "not installed; Debian's package prometheus has it"))
    count = sum(1 for _ in alert_expressions(alerts))
    print(f"metrics: {len(panels)} expressions of the dashboard and {count} alerts are right")


main()

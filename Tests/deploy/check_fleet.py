#!/usr/bin/env python3
"""Checks what deploy/ says about a fleet and about proxies: that files parse, and that they agree with each other.

    check_fleet.py [DEPLOY_DIRECTORY]

Needs PyYAML. Prints every disagreement, and ends with status 1 when there is one.
"""

import pathlib
import re
import sys
import urllib.parse

import yaml

# The process gives itself so many seconds after the drain; see KedgeService.
SAVING_SECONDS = 15
PART_MINIMUM = 5 * 1024 * 1024
# The chunk size that `kedge upload` asks for without an option.
CLIENT_CHUNK = 4 * 1024 * 1024
PART_COUNT = 10_000
# Default of what a store keeps of saved chunks until they are hashed in order.
SPOOL_BUDGET = 1 << 30
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY|MC_HOST", re.IGNORECASE)
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


class Check:
    """Collects disagreements, so that one run shows all of them."""

    def __init__(self, deploy):
        self.deploy = deploy
        self.failures = []
        self.defaults = flat(self.parse("kedge.example.yaml")[0])

    def require(self, condition, where, what):
        if not condition:
            self.failures.append(f"{where}: {what}")

    def text(self, name):
        return (self.deploy / name).read_text(encoding="utf-8")

    def parse(self, name):
        return [document for document in yaml.safe_load_all(self.text(name)) if document is not None]

    def settings(self, name):
        """The settings of a file over the defaults. Every key must be one."""
        given = flat(self.parse(name)[0])
        for key in given:
            self.require(key in self.defaults, name, f"{key} is not a setting")
        return self.defaults | given


def flat(tree, path=()):
    """Nested mappings as dotted keys."""
    if not isinstance(tree, dict):
        return {".".join(path): tree}
    return {
        key: value
        for name, child in tree.items()
        for key, value in flat(child, (*path, name)).items()
    }


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)([smh])", text).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def size(text):
    number, unit = re.fullmatch(r"(\d+)(Ki|Mi|Gi)?", str(text)).groups()
    return int(number) * UNITS[unit or ""]


def check_node(check, name):
    """A node's configuration: both stores shared, chunks that can be parts, no secret."""
    settings = check.settings(name)
    metadata = urllib.parse.urlsplit(settings["metadata"])
    place = urllib.parse.urlsplit(settings["bytes"])
    check.require(metadata.scheme == "postgresql", name, "metadata is not in PostgreSQL")
    check.require(place.scheme == "s3", name, "bytes are not in S3")
    check.require(metadata.password is None, name, "a password stands in metadata")
    check.require(place.username is None, name, "a key stands in bytes")
    options = urllib.parse.parse_qs(place.query, strict_parsing=True)
    known = {"endpoint", "region", "style", "redirect", "spool", "checksum"}
    check.require(set(options) <= known, name, f"bytes has other options than {sorted(known)}")
    check.require("spool" in options, name, "the spool has no directory")
    check.require(settings["host"] == "127.0.0.1", name, "host is not loopback: the start is refused")
    limits = {key.removeprefix("limits."): settings[key] for key in settings if key.startswith("limits.")}
    check.require(limits["minChunkSize"] <= CLIENT_CHUNK, name, "kedge upload is refused without --chunk-size")
    check.require(
        PART_MINIMUM <= limits["defaultChunkSize"] <= limits["maxChunkSize"],
        name, "the chunk sizes are no parts of S3")
    check.require(
        limits["maxFileSize"] <= PART_COUNT * limits["maxChunkSize"],
        name, "a file of maxFileSize has more parts than S3 takes")
    return settings


def check_compose(check):
    name = "compose/docker-compose.yaml"
    compose = check.parse(name)[0]
    services = compose["services"]
    settings = check_node(check, "compose/kedge.yaml")
    example = dict(
        line.split("=", 1)
        for line in check.text("compose/.env.example").splitlines()
        if line and not line.startswith("#"))

    for variable, value in example.items():
        if re.search(r"TOKEN|PASSWORD|SECRET", variable):
            check.require(value == "", "compose/.env.example", f"{variable} has a value")
    for variable in re.findall(r"\$\{([A-Z0-9_]+)", check.text(name)):
        check.require(variable in example, name, f"{variable} is not in .env.example")

    for service, body in services.items():
        where = f"{name}, {service}"
        for other in body.get("depends_on", {}):
            check.require(other in services, where, f"depends on {other}, which is not there")
        for network in body.get("networks", []):
            check.require(network in compose["networks"], where, f"no network {network}")
        for volume in body.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                check.require((check.deploy / "compose" / source).is_file(), where, f"no {source}")
            elif ":" in volume:
                check.require(source in compose["volumes"], where, f"no volume {source}")
        for variable, value in body.get("environment", {}).items():
            if SECRET_NAME.search(variable):
                literal = re.sub(r"\$\{[^}]*\}", "", str(value))
                check.require(
                    not re.search(r"[A-Za-z0-9]{8}", literal.replace("http://", "")),
                    where, f"{variable} stands in the file")
        check.require(
            "ports" not in body or service == "network", where, "only the proxy faces the world")

    nodes = {name: body for name, body in services.items() if body.get("image") == "kedge"}
    check.require(len(nodes) == 3, name, f"{len(nodes)} nodes")
    for node, body in nodes.items():
        where = f"{name}, {node}"
        check.require(body["network_mode"] == "service:network", where, "the proxy cannot reach it")
        check.require(body["user"].split(":")[0] != "0" and body["read_only"], where, "is not locked down")
        check.require(
            seconds(body["stop_grace_period"]) > settings["shutdown.drainSeconds"] + SAVING_SECONDS,
            where, "is killed before it has drained")
        spool = urllib.parse.parse_qs(urllib.parse.urlsplit(settings["bytes"]).query)["spool"][0]
        check.require(spool in body["volumes"], where, f"{spool} cannot be written")
        check.require(
            {key: value for key, value in body.items() if key != "command"}
            == {key: value for key, value in nodes["kedge-1"].items() if key != "command"},
            where, "differs from kedge-1 in more than its command")
    ports = sorted(body["command"][-1] for body in nodes.values())
    upstream = sorted(re.findall(r"^\s*server 127\.0\.0\.1:(\d+)", check.text("compose/nginx.conf"), re.M))
    check.require(ports == upstream, "compose/nginx.conf", f"has nodes {upstream}, compose {ports}")
    check.require(
        urllib.parse.urlsplit(settings["metadata"]).hostname in services
        and urllib.parse.urlsplit(settings["bytes"]).netloc
        == services["bucket"]["command"][-1].split("/")[1],
        "compose/kedge.yaml", "names a database or bucket that compose does not make")
    lifetime = settings["session.lifetimeSeconds"] + settings["session.graceSeconds"]
    stale = services["s3"]["environment"]["MINIO_API_STALE_UPLOADS_EXPIRY"]
    check.require(seconds(stale) > lifetime, name, "the store drops parts of sessions that still live")


def check_pod(check, where, pod, config_maps):
    """Checks the settings that every pod must have."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    check.require(pod["enableServiceLinks"] is False, where, "gets variables that kedge refuses")
    check.require(pod["automountServiceAccountToken"] is False, where, "gets a token it does not need")
    check.require(
        pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0,
        where, "may run as root")
    check.require("fsGroup" in pod["securityContext"], where, "cannot write to its volumes")
    for volume in volumes.values():
        if "configMap" in volume:
            check.require(
                volume["configMap"]["name"] in config_maps, where,
                f"there is no ConfigMap {volume['configMap']['name']}")
        elif "emptyDir" in volume:
            check.require("sizeLimit" in volume["emptyDir"], where, f"{volume['name']} has no limit")
    for container in pod["containers"] + pod.get("initContainers", []):
        place = f"{where}, {container['name']}"
        context = container["securityContext"]
        check.require(
            context["readOnlyRootFilesystem"] is True
            and context["allowPrivilegeEscalation"] is False
            and context["capabilities"] == {"drop": ["ALL"]},
            place, "is not locked down")
        check.require("memory" in container["resources"]["limits"], place, "has no limit of memory")
        for mount in container["volumeMounts"]:
            check.require(mount["name"] in volumes, place, f"no volume {mount['name']}")
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        check.require(
            not any(a != b and a.startswith(b + "/") for a in paths for b in paths),
            place, "a mount lies in another, which a read-only one cannot hold")
        for variable in container.get("env", []):
            if SECRET_NAME.search(variable["name"]):
                check.require(
                    "secretKeyRef" in variable.get("valueFrom", {}), place,
                    f"{variable['name']} is not from a Secret")


def check_deployment(check, deployment, settings):
    where = "kubernetes/deployment.yaml"
    pod = deployment["spec"]["template"]["spec"]
    proxy = {container["name"]: container for container in pod["initContainers"]}["proxy"]
    node = {container["name"]: container for container in pod["containers"]}["kedge"]
    check.require(deployment["spec"]["replicas"] >= 3, where, "is no fleet")
    check.require(proxy.get("restartPolicy") == "Always", where, "the proxy is no sidecar")
    ports = {port["name"]: port["containerPort"] for port in proxy["ports"]}
    nginx = check.text("kubernetes/nginx.conf")
    listening = int(re.search(r"^\s*listen (\d+);", nginx, re.M).group(1))
    check.require(ports["http"] == listening, where, "the proxy listens on another port")
    check.require(
        f"server 127.0.0.1:{settings['port']};" in nginx, where, "the proxy does not know kedge's port")
    for kind in ["startupProbe", "livenessProbe", "readinessProbe"]:
        probe = node.get(kind, {}).get("httpGet", {})
        check.require(probe.get("port") == listening, where, f"{kind} does not go through the proxy")
        check.require(f"location = {probe.get('path')} " in nginx, where, f"{kind} needs a token")
    check.require(
        node["livenessProbe"]["httpGet"]["path"] == "/healthz"
        and node["readinessProbe"]["httpGet"]["path"] == "/readyz",
        where, "the probes ask for the wrong thing")
    waiting = int(node["lifecycle"]["preStop"]["exec"]["command"][1])
    check.require(
        pod["terminationGracePeriodSeconds"]
        > waiting + settings["shutdown.drainSeconds"] + SAVING_SECONDS,
        where, "the pod is killed before it has drained")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    room = size(volumes["spool"]["emptyDir"]["sizeLimit"])
    need = settings["limits.maxConcurrentWrites"] * settings["limits.maxChunkSize"] + SPOOL_BUDGET
    check.require(room > need, where, f"the spool may need {need} bytes")
    check.require(
        room <= size(node["resources"]["requests"]["ephemeral-storage"])
        and room < size(node["resources"]["limits"]["ephemeral-storage"]),
        where, "the pod is evicted before the spool is full")


def check_kubernetes(check):
    folder = "kubernetes/"
    kustomization = check.parse(folder + "kustomization.yaml")[0]
    listed = set(kustomization["resources"])
    present = {path.name for path in (check.deploy / "kubernetes").glob("*.yaml")}
    check.require(
        listed == present - {"kustomization.yaml", "kedge.yaml"}, folder + "kustomization.yaml",
        f"lists {sorted(listed)}")
    config_maps = {"kedge-database-ca"}
    for generator in kustomization["configMapGenerator"]:
        config_maps.add(generator["name"])
        for file in generator["files"]:
            source = file.split("=")[-1]
            check.require((check.deploy / folder / source).is_file(), folder, f"no {source}")

    settings = check_node(check, folder + "kedge.yaml")
    objects = {}
    for file in sorted(listed):
        for document in check.parse(folder + file):
            objects[document["kind"]] = document
    deployment, job = objects["Deployment"], objects["Job"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    selectors = {
        "Deployment": deployment["spec"]["selector"]["matchLabels"],
        "Service": objects["Service"]["spec"]["selector"],
        "PodDisruptionBudget": objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "topologySpreadConstraints": spread["labelSelector"]["matchLabels"],
    }
    for kind, selector in selectors.items():
        check.require(selector.items() <= labels.items(), folder + kind, "selects other pods")
        check.require(
            not selector.items() <= job["spec"]["template"]["metadata"]["labels"].items(),
            folder + kind, "selects the pod of the migration, too")
    named = {
        port["name"]
        for container in deployment["spec"]["template"]["spec"]["initContainers"]
        for port in container.get("ports", [])}
    for port in objects["Service"]["spec"]["ports"]:
        check.require(port["targetPort"] in named, folder + "service.yaml", "targets no port")
    for kind, document in [("deployment.yaml", deployment), ("migrate.yaml", job)]:
        pod = document["spec"]["template"]["spec"]
        check_pod(check, folder + kind, pod, config_maps)
        check.require(
            pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"],
            folder + kind, "runs under an account that is not there")
    check_deployment(check, deployment, settings)


def check_proxies(check):
    """Checks how proxies treat bodies; see deploy/nginx.conf."""
    for name in ["compose/nginx.conf", "kubernetes/nginx.conf"]:
        text = check.text(name)
        for setting in [
            "proxy_request_buffering off", "proxy_buffering off", "client_max_body_size 0",
            'proxy_set_header Authorization ""', "proxy_max_temp_file_size 0",
        ]:
            check.require(f"{setting};" in text, name, f'"{setting}" is gone')
        check.require('"~^Bearer ${KEDGE_TOKEN}$" 1;' in text, name, "asks for no token")


def check_trust(check):
    """Behind a proxy, clients have addresses of their own only if the proxy reports them and is trusted.

    Every configuration but the example, which shows the defaults, is for a proxy beside the service.
    """
    names = sorted(
        str(path.relative_to(check.deploy)) for path in check.deploy.rglob("kedge*.yaml"))
    check.require(len(names) > 1, "kedge*.yaml", "no configuration is here")
    for name in names:
        if name == "kedge.example.yaml":
            continue
        trusted = {proxy.strip() for proxy in check.settings(name)["trustedProxies"].split(",")}
        check.require({"127.0.0.1", "::1"} <= trusted, name, "trustedProxies lacks the proxy beside the service")
    for name in ["nginx.conf", "compose/nginx.conf", "kubernetes/nginx.conf"]:
        check.require(
            "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;" in check.text(name),
            name, "does not report the client's address")
    for path in [check.deploy / "nginx.conf", *sorted((check.deploy / "proxies").iterdir())]:
        if path.suffix == ".yaml":
            continue
        named = re.search(r"kedge\.[a-z-]+\.yaml", path.read_text(encoding="utf-8"))
        check.require(
            named is not None and (check.deploy / "proxies" / named[0]).exists(),
            path.relative_to(check.deploy), "names no configuration of the service to use with it")


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "deploy"
    check = Check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    check_compose(check)
    check_kubernetes(check)
    check_proxies(check)
    check_trust(check)
    examples = sorted((check.deploy / "examples").glob("kedge.*.yaml"))
    check.require(len(examples) == 3, "examples", f"{len(examples)} files")
    for example in examples:
        check_node(check, f"examples/{example.name}")
    for failure in check.failures:
        print(f"deploy/{failure}", file=sys.stderr)
    if check.failures:
        return 1
    print("compose, kubernetes, examples and proxies: agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())

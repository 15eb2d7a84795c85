"""Renders the chart with Helm, and validates what comes of it for several versions of Kubernetes.

    python -m venv v && v/bin/pip install helm-sdkpy kubernetes-validate pyyaml     # Python 3.12 and later
    v/bin/python packaging/helm/validate.py

No cluster is needed: Helm installs into a server of this script's, which knows no more of Kubernetes' interface than that takes, and
keeps what it is given. Each object is then held against the strict schema of its kind. The configuration in it is read as TOML.
"""

import asyncio
import json
import sys
import tempfile
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import helm_sdkpy
import kubernetes_validate
import yaml

CHART = Path(__file__).parent / "rota"
VERSIONS = ["1.29", "1.32", "1.37"]
KEY = 'send = 1\n[[key]]\nid = 1\nsecret = "' + "0f" * 32 + '"\n'

# Kinds that the server knows, by group and version.
KINDS = {
    "v1": {
        "ConfigMap": "configmaps",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "apps/v1": {"StatefulSet": "statefulsets"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies"},
}

# Values, and the kinds that have to come of them.
GOOD = [
    ({"key": {"value": KEY}}, {"Secret", "PodDisruptionBudget", "StatefulSet"}),
    (
        {
            "key": {"existingSecret": "mine"},
            "engine": "u-ring-paxos",
            "replicas": 5,
            "tls": {"secret": "certificates"},
            "networkPolicy": {
                "enabled": True,
                "metricsFrom": [{"namespaceSelector": {}}],
                "clientsFrom": [{"podSelector": {}}],
            },
            "settings": "personal_window = 30",
            "daemonSettings": 'log = "debug"\nclients = 100\n',
        },
        {"NetworkPolicy", "PodDisruptionBudget", "StatefulSet"},
    ),
    (
        {
            "key": {"value": KEY},
            "engine": "ring-paxos",
            "persistence": {"enabled": False},
            "podDisruptionBudget": {"enabled": False},
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "rota", "operator": "Exists"}],
        },
        {"Secret", "StatefulSet"},
    ),
]

# Values that are refused, and a word of the reason.
BAD = [
    ({}, "needs a key"),
    ({"key": {"value": KEY, "existingSecret": "mine"}}, "exclude each other"),
    ({"key": {"value": KEY}, "engine": "raft"}, "/engine"),
    ({"key": {"value": KEY}, "replicas": 0}, "/replicas"),
]


class Server(BaseHTTPRequestHandler):
    """As much of the interface as Helm asks for."""

    protocol_version = "HTTP/1.1"
    version = ""
    made: list[dict] = []

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        path = self.path.split("?")[0].rstrip("/")
        if path == "/version":
            minor = self.version.split(".")[1]
            return self.answer(200, {"major": "1", "minor": minor, "gitVersion": f"v{self.version}.0"})
        if path == "/api":
            return self.answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        if path == "/apis":
            versions = [
                {"groupVersion": group, "version": "v1"} for group in KINDS if "/" in group
            ]
            groups = [
                {
                    "name": version["groupVersion"].split("/")[0],
                    "versions": [version],
                    "preferredVersion": version,
                }
                for version in versions
            ]
            return self.answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        for group, kinds in KINDS.items():
            if path == ("/api/v1" if group == "v1" else f"/apis/{group}"):
                resources = [
                    {
                        "name": name,
                        "singularName": "",
                        "namespaced": True,
                        "kind": kind,
                        "verbs": ["create", "get", "list", "patch"],
                    }
                    for kind, name in kinds.items()
                ]
                return self.answer(
                    200,
                    {
                        "kind": "APIResourceList",
                        "apiVersion": "v1",
                        "groupVersion": group,
                        "resources": resources,
                    },
                )
        if path.endswith("/secrets"):
            return self.answer(200, {"kind": "SecretList", "apiVersion": "v1", "items": []})
        gone = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        return self.answer(404, gone)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            made = json.loads(body)
        except ValueError:
            # Helm's own record of the release, in another encoding.
            metadata = {"name": "release", "namespace": "default", "uid": "1", "resourceVersion": "1"}
            return self.answer(201, {"kind": "Secret", "apiVersion": "v1", "metadata": metadata})
        Server.made.append(made)
        answer = dict(made)
        answer["metadata"] = dict(made["metadata"], uid="1", resourceVersion="1")
        return self.answer(201, answer)

    do_PUT = do_POST
    do_PATCH = do_POST


def installed(kubeconfig, values, version):
    """What Helm makes of these values on this version of Kubernetes."""
    Server.version = version
    Server.made = []
    configuration = helm_sdkpy.Configuration(namespace="default", kubeconfig=str(kubeconfig))
    install = helm_sdkpy.Install(configuration)
    asyncio.run(install.run("rota", str(CHART), values=values, wait=False))
    return [made for made in Server.made if made.get("type") != "helm.sh/release.v1"]


def check(kubeconfig):
    for values, kinds in GOOD:
        for version in VERSIONS:
            objects = installed(kubeconfig, values, version)
            for one in objects:
                kubernetes_validate.validate(one, version, strict=True)
            by_kind = {one["kind"]: one for one in objects}
            missing = kinds - by_kind.keys()
            assert not missing, f"{missing} did not come of {values}"
            config = tomllib.loads(by_kind["ConfigMap"]["data"]["rota.toml"])
            replicas = by_kind["StatefulSet"]["spec"]["replicas"]
            assert [node["id"] for node in config["node"]] == list(range(1, replicas + 1))
            assert config["engine"] == values.get("engine", "accelerated-ring")
            print(f"{version}: {len(objects)} objects with {config['engine']}")
    for values, word in BAD:
        try:
            installed(kubeconfig, values, VERSIONS[0])
        except helm_sdkpy.HelmError as error:
            assert word in str(error), error
            print(f"refused: {word}")
        else:
            sys.exit(f"not refused: {values}")


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "config"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "here", "cluster": {"server": address}}],
                    "users": [{"name": "nobody", "user": {}}],
                    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "nobody"}}],
                    "current-context": "here",
                }
            )
        )
        check(kubeconfig)


if __name__ == "__main__":
    main()

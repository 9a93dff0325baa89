"""Stands in for Flux's helm-controller, which cannot be had: writes its states, from helm's own results.

Runs in the pod of helm-controller, under its account. For each HelmRelease it takes the chart from the Git source
that source-controller has fetched, has the real helm try the release on the API server, and writes what helm says
into the status. With ``--dry-run=server``, lookups, the chart's schema and admission are real; nothing is installed.
What fails is tried again for ever, and *Ready* is Unknown meanwhile. The chart's dependency is put beside it from an
archive, as source-controller would from a repository. Only where the source has no chart at that path, a HelmChart is
made, as helm-controller makes one for each release: source-controller says there why there is none.
"""

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

ACCOUNT = Path("/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT = "5m0s"
LOOK_SECONDS, FIRST_RETRY, LONGEST_RETRY = 1.0, 2.0, 30.0
MERGE, APPLY = {"Content-Type": "application/merge-patch+json"}, {"Content-Type": "application/apply-patch+yaml"}
HELM_API, SOURCE_API = "/apis/helm.toolkit.fluxcd.io/v2", "/apis/source.toolkit.fluxcd.io/v1"


class HelmController:
    """One of them.

    Args:
        server: URL of the API server.
        dependencies: archives that stand for the repositories of charts.
    """

    def __init__(self, helm: Path, server: str, dependencies: list[Path], folder: Path) -> None:
        self._helm, self._dependencies, self._folder = helm, dependencies, folder
        token, authority = (ACCOUNT / "token").read_text(), ACCOUNT / "ca.crt"
        self._http = httpx.Client(
            base_url=server,
            headers={"Authorization": f"Bearer {token}"},
            verify=str(authority),
            trust_env=False,
            timeout=30,
        )
        self._config = folder / "kubeconfig"
        self._config.touch(mode=0o600)
        self._config.write_text(_kubeconfig(server, authority, token))
        self._settled: dict[str, object] = {}
        self._retries: dict[str, tuple[float, float]] = {}
        self._charts: dict[str, str] = {}

    def look(self) -> None:
        """At each release that wants something."""
        answer = self._http.get(f"{HELM_API}/helmreleases")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return
        releases = answer.raise_for_status().json()["items"]
        for uid in self._charts.keys() - {each["metadata"]["uid"] for each in releases}:
            self._delete_chart(uid)
        for release in releases:
            if release["spec"].get("suspend") or "deletionTimestamp" in release["metadata"]:
                continue
            self._reconcile(release)

    def _reconcile(self, release: dict[str, Any]) -> None:
        metadata, spec = release["metadata"], release["spec"]
        source = spec["chart"]["spec"]["sourceRef"]["name"]
        found = self._http.get(f"{SOURCE_API}/namespaces/{metadata['namespace']}/gitrepositories/{source}")
        artifact = found.json().get("status", {}).get("artifact") if found.is_success else None
        if artifact is None:
            self._wait_for_chart(release)
            return
        wanted = (metadata["uid"], metadata["generation"], artifact["revision"])
        due, pause = self._retries.get(metadata["uid"], (0.0, FIRST_RETRY))
        if self._settled.get(metadata["uid"]) == wanted or (
            self._settled.get(metadata["uid"]) == (wanted, "failed") and time.monotonic() < due
        ):
            return
        with tempfile.TemporaryDirectory(dir=self._folder) as temporary:
            chart = _unpacked(artifact["url"], Path(temporary)) / spec["chart"]["spec"]["chart"]
            if (chart / "Chart.yaml").is_file():
                self._delete_chart(metadata["uid"])
                self._act(release, chart, wanted, pause)
            else:
                self._make_chart(release)
                self._wait_for_chart(release)

    def _act(self, release: dict[str, Any], folder: Path, wanted: tuple[str, int, str], pause: float) -> None:
        """Installs or upgrades.

        Args:
            folder: the chart.
            wanted: what is acted upon: UID, generation, and revision of the source.
        """
        metadata, spec = release["metadata"], release["spec"]
        action = "upgrade" if _deployed(release) else "install"
        running = f"Running '{action}' action with timeout of {TIMEOUT}"
        reconciling = condition("Reconciling", "True", "Progressing", running)
        kept = [each for each in _conditions(release) if each["type"] == "Released"]
        self._write(release, [reconciling, condition("Ready", "Unknown", "Progressing", running), *kept])
        version, done = self._try(release, folder, commit=wanted[2].rpartition(":")[2])
        named = f"release {metadata['namespace']}/{metadata['name']}"
        chart = f"chart {spec['chart']['spec']['chart']}@{version}"
        status: dict[str, Any] = {"lastAttemptedRevision": version, "observedGeneration": metadata["generation"]}
        if done.returncode == 0:
            number = 1 + (_deployed(release) or 0)
            told = f"Helm {action} succeeded for {named}.v{number} with {chart}"
            reason = f"{action.capitalize()}Succeeded"
            status["history"] = [_snapshot(release, number, version)]
            stated = [condition(kind, "True", reason, told) for kind in ("Ready", "Released")]
            self._write(release, stated, **status)
            self._settled[metadata["uid"]], _ = wanted, self._retries.pop(metadata["uid"], None)
        else:
            told = f"Helm {action} failed for {named} with {chart}: {_sentence(done.stderr)}"
            reason = f"{action.capitalize()}Failed"
            stated = [reconciling, *(condition(kind, "False", reason, told) for kind in ("Ready", "Released"))]
            self._write(release, stated, **status)
            self._settled[metadata["uid"]] = (wanted, "failed")
            self._retries[metadata["uid"]] = (time.monotonic() + pause, min(2 * pause, LONGEST_RETRY))

    def _try(
        self, release: dict[str, Any], chart: Path, *, commit: str
    ) -> tuple[str, "subprocess.CompletedProcess[str]"]:
        """The chart's version, with the commit that it is of, and what helm says of it."""
        described = yaml.safe_load((chart / "Chart.yaml").read_text())
        version = f"{described['version']}+{commit[:12]}"
        (chart / "Chart.yaml").write_text(yaml.safe_dump({**described, "version": version}))
        (chart / "charts").mkdir(exist_ok=True)
        for each in self._dependencies:
            shutil.copy(each, chart / "charts")
        values = chart.parent / f"{chart.name}.values.yaml"
        values.write_text(yaml.safe_dump(release["spec"].get("values") or {}))
        metadata = release["metadata"]
        command = [self._helm, "upgrade", "--install", metadata["name"], chart, "--values", values]
        options = ["--namespace", metadata["namespace"], "--take-ownership", "--dry-run=server"]
        homes = {f"HELM_{kind}_HOME": str(self._folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [*command, *options],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self._folder), "KUBECONFIG": str(self._config), **homes},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return version, done

    def _wait_for_chart(self, release: dict[str, Any]) -> None:
        waits = f"HelmChart '{_chart_of(release)}' is not ready: latest generation of object has not been reconciled"
        self._settle(release, ("SourceNotReady", waits), [condition("Ready", "False", "SourceNotReady", waits)])

    def _make_chart(self, release: dict[str, Any]) -> None:
        """As helm-controller does: of the release's own template, with labels that say whose it is."""
        metadata, template = release["metadata"], release["spec"]["chart"]["spec"]
        namespace, _, name = _chart_of(release).partition("/")
        group = HELM_API.split("/")[2]
        labels = {f"{group}/name": metadata["name"], f"{group}/namespace": metadata["namespace"]}
        document = {
            "apiVersion": SOURCE_API.removeprefix("/apis/"),
            "kind": "HelmChart",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"interval": release["spec"]["interval"], **template},
        }
        self._charts[metadata["uid"]] = path = f"{SOURCE_API}/namespaces/{namespace}/helmcharts/{name}"
        applied = {"fieldManager": "helm-controller", "force": "true"}
        answer = self._http.patch(path, params=applied, json=document, headers=APPLY)
        answer.raise_for_status()

    def _delete_chart(self, uid: str) -> None:
        if path := self._charts.pop(uid, None):
            self._http.delete(path)

    def _settle(self, release: dict[str, Any], state: object, stated: list[dict[str, str]]) -> None:
        uid = release["metadata"]["uid"]
        if self._settled.get(uid) != state:
            self._write(release, stated)
            self._settled[uid] = state

    def _write(self, release: dict[str, Any], stated: list[dict[str, str]], **more: Any) -> None:
        """Moments of transition are those of Kubernetes: they stay while a status does."""
        before = {each["type"]: each for each in _conditions(release)}
        for each in stated:
            known = before.get(each["type"])
            if known is not None and known["status"] == each["status"]:
                each["lastTransitionTime"] = known["lastTransitionTime"]
        metadata = release["metadata"]
        release.setdefault("status", {}).update({"conditions": stated, "helmChart": _chart_of(release), **more})
        path = f"{HELM_API}/namespaces/{metadata['namespace']}/helmreleases/{metadata['name']}/status"
        answer = self._http.patch(path, json={"status": release["status"]}, headers=MERGE)
        if answer.status_code != httpx.codes.NOT_FOUND:
            answer.raise_for_status()


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def _chart_of(release: dict[str, Any]) -> str:
    """Namespace and name of its HelmChart."""
    metadata = release["metadata"]
    return f"{metadata['namespace']}/{metadata['namespace']}-{metadata['name']}"


def _unpacked(url: str, folder: Path) -> Path:
    """What source-controller has fetched."""
    packed = httpx.get(url, trust_env=False, timeout=30).raise_for_status().content
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _conditions(release: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = release.get("status", {}).get("conditions") or []
    return found


def _deployed(release: dict[str, Any]) -> int | None:
    """Number of what was released last."""
    history = release.get("status", {}).get("history") or []
    return int(history[0]["version"]) if history else None


def _snapshot(release: dict[str, Any], number: int, version: str) -> dict[str, Any]:
    """What helm-controller keeps of a release that went well."""
    metadata, at = release["metadata"], condition("", "", "", "")["lastTransitionTime"]
    chart = release["spec"]["chart"]["spec"]["chart"]
    values = hashlib.sha256(yaml.safe_dump(release["spec"].get("values") or {}).encode()).hexdigest()
    return {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "version": number,
        "status": "deployed",
        "chartName": chart,
        "chartVersion": version,
        "configDigest": f"sha256:{values}",
        "digest": f"sha256:{values}",
        "firstDeployed": at,
        "lastDeployed": at,
    }


def _sentence(printed: str) -> str:
    """What helm says, as its library gives it to helm-controller: without the word that its command line begins with,
    and without warnings before it."""
    _, _, error = f"\n{printed}".rpartition("\nError: ")
    return (error or printed).strip().removeprefix("UPGRADE FAILED: ").removeprefix("INSTALLATION FAILED: ")


def _kubeconfig(server: str, authority: Path, token: str) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "own", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "own", "user": {"token": token}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        "current-context": "own",
    }
    return yaml.safe_dump(config)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--helm", type=Path, required=True)
    parser.add_argument("--dependency", type=Path, action="append", default=[])
    options, _of_the_real_one = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="helm-controller-") as folder:
        server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
        controller = HelmController(options.helm, server, options.dependency, Path(folder))
        while True:
            try:
                controller.look()
            except (httpx.HTTPError, OSError, tarfile.TarError, KeyError, subprocess.TimeoutExpired) as error:
                sys.stderr.write(f"looks again: {error!r}\n")
                sys.stderr.flush()
            time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()

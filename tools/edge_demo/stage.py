"""What runs during the demonstration, and in which order it starts."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import UUID

from components import component
from edge_cluster.cluster import Cluster
from edge_cluster.controllers import SealedSecrets
from edge_cluster.helm import Helm
from edge_cluster.helm_release import install_release, packed_sealed_secrets
from edge_cluster.kubectl import surroundings
from edge_cluster.kubelet import Kubelet
from edge_cluster.line import BootstrapLine
from edge_cluster.release import release
from edge_cluster.site import programs
from embedded import PROGRAM, EmbeddedEdgewright
from flux_file import sha256_of
from free_ports import free_port

from edgewright.adapters.git.bare import BareGitServer
from edgewright.cli.supervisor import Part

NAME = "press-shop"
COMPONENTS = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok"),
    *("sealed-secrets-controller", "source-controller", "kustomize-controller", "helm"),
)
PATIENCE = 300.0
"""Seconds for what takes one or two on a quiet machine."""
_HELPER = '!f() { echo username=me; echo "password=$(cat "$EDGEWRIGHT_HOME/admin-token")"; }; f'
_AS_ME = f"-c user.name=me -c user.email=me@example.com -c credential.helper='{_HELPER}'"
Say = Callable[[str], None]


class DemoStage:
    """All of it, in one folder.

    Args:
        folder: there, and empty but for what its caller keeps in it.
        say: takes one plain line for whoever waits.
    """

    def __init__(self, folder: Path, say: Say) -> None:
        self.folder = folder
        self._say = say
        for made in ("cluster", "desk", "charts", "centre"):
            (folder / made).mkdir(mode=0o700)
        self.cluster = Cluster(folder / "cluster", say)
        self._helm = Helm(component("helm"), self.cluster.kubectl.config, folder / "helm")
        archive = packed_sealed_secrets(self._helm, folder / "charts")
        variables = {
            "EDGEWRIGHT_DEMO": "0",
            "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
            "EDGEWRIGHT_AGENT_IMAGE": "registry.example.com/edgewright:demo",
            "EDGEWRIGHT_SEALING_CHART": archive.as_uri(),
        }
        self.centre = EmbeddedEdgewright(folder / "centre", variables)
        self.url = f"http://127.0.0.1:{variables['EDGEWRIGHT_GATEWAY_PORT']}"
        self.uuid = ""
        self._open = ExitStack()

    def start(self) -> None:
        """Returns when the cluster is Available and takes secrets."""
        self._say("Starting the Kubernetes cluster: etcd, API server, controller manager, kwok.")
        self.cluster.start()
        self._say("Starting the centre.")
        self._start_centre()
        flux = release()
        self._demand(self.centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(flux)}, content=flux).is_success)
        self.uuid = self.centre.create(NAME)
        self._until(lambda: self.centre.is_ready(NAME))
        sealing = SealedSecrets(self.cluster, installed=True)
        self._open.enter_context(Kubelet(self.cluster, programs(self.folder / "fetched", sealing)))
        self._attach()
        self._say("Starting what runs on the edge: Flux, sealed-secrets, the agent.")
        git = BareGitServer(self.centre.home / "repositories")
        install_release(self._helm, git, UUID(self.uuid), self.folder / "charts")
        sealing.start()
        self._until(self._takes_secrets)

    def go_on(self) -> None:
        """Brings back whatever dies, until it is interrupted."""
        self.cluster.supervisor.watch()

    def stop(self) -> None:
        """Ends everything, in the opposite order of its start."""
        self._open.close()
        self.cluster.stop()

    def farewell(self) -> str:
        """What to try, each line to be pasted as it is, and how to end it."""
        told = {
            "EDGEWRIGHT_HOME": str(self.centre.home),
            "KUBECONFIG": str(self.cluster.kubectl.config),
            "CLONE": str(self.folder / "clone"),
        }
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in told.items())
        endpoints = self.centre.endpoints()
        return f"""
{NAME} is attached and Available.
  API          {self.url}/docs
  Web UI       {endpoints["temporal_ui"]}
  kubeconfig   {self.cluster.kubectl.config}
  logs         {self.cluster.folder / "logs"}, {self.centre.home / "logs"}

Try next:
  export {words} PATH={shlex.quote(str(self.folder / "desk" / "bin"))}:$PATH
  ./bin/edgewright cluster show {NAME}
  printf s3cr3t | ./bin/edgewright secret put {NAME} default/db password - --wait
  kubectl get secret db -o 'go-template={{{{.data.password | base64decode}}}}'
  kubectl get gitrepositories,kustomizations,sealedsecrets --all-namespaces
  ./bin/edgewright cluster timeline {NAME}
  ./bin/edgewright secret list {NAME}

A Secret that the edge refuses, because another one is in its place. `cluster show` says so until you delete that one
and put yours again:
  kubectl create secret generic taken --from-literal=password=theirs
  printf ours | ./bin/edgewright secret put {NAME} default/taken password - --wait
  kubectl delete secret taken
  printf ours | ./bin/edgewright secret put {NAME} default/taken password - --wait

A push that Flux cannot apply. Some seconds later, `cluster show` names the file, until you revert the commit:
  git clone -q {_AS_ME} {self.url}/git/cluster/{NAME} "$CLONE"
  echo 'kind: [' > "$CLONE/by-hand/app.yaml"
  git -C "$CLONE" add by-hand && git -C "$CLONE" commit -qm "Break it"
  git -C "$CLONE" pull -q --rebase && git -C "$CLONE" push -q
  git -C "$CLONE" revert --no-edit HEAD
  git -C "$CLONE" pull -q --rebase && git -C "$CLONE" push -q

The centre dies. It comes back, and so does everything else that you kill:
  kill {self.cluster.supervisor.pid_of("centre")}

No container runs: controllers and agent are processes of this machine, and kwok says that pods are ready.
It goes on for a day. `make edge-demo-down` ends it and leaves nothing."""

    def _start_centre(self) -> None:
        part = Part(
            name="centre",
            command=[*PROGRAM, "up"],
            environment={**surroundings(), **self.centre.environment},
            log=self.cluster.folder / "logs" / "centre.log",
            ready=(self.centre.home / "endpoints.json").is_file,
            folder=self.folder,
        )
        self.cluster.supervisor.start(part)
        self.cluster.supervisor.wait_ready("centre", seconds=PATIENCE)

    def _attach(self) -> None:
        line = BootstrapLine(self.centre, self.cluster, self.uuid, self.folder / "desk")
        self._say("Pasting the line of `edgewright cluster bootstrap`:")
        done = line.run()
        for text in done.stdout.splitlines():
            self._say(f"  {text}")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def _takes_secrets(self) -> bool:
        """Whether the edge is there, and has told its sealing certificate."""
        conditions = self.centre.api("GET", f"/v1/cluster/{self.uuid}").json()["conditions"]
        states = {each["type"]: each["status"] for each in conditions}
        return states.get("Available") == states.get("SealingKeyCurrent") == "True"

    def _until(self, condition: Callable[[], bool]) -> None:
        self._demand(self.cluster.supervisor.wait_for(condition, seconds=PATIENCE))

    def _demand(self, holds: bool) -> None:
        if not holds:
            raise RuntimeError(f"It did not get ready; the logs are in {self.cluster.folder / 'logs'}.")


@contextmanager
def running(folder: Path, say: Say) -> Iterator[DemoStage]:
    """The demonstration, until the end of the context."""
    stage = DemoStage(folder, say)
    try:
        stage.start()
        yield stage
    finally:
        stage.stop()

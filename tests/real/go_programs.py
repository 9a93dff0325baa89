"""The programs that tests build from Go modules: where each comes from, at which version, and what it costs."""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

GO_MINIMUM = (1, 23, 0)
RECIPES = Path(__file__).with_name("go_modules")
"""Modules of ours, one folder each, that pin a program and replace what its own module takes from beside itself:
``go install PROGRAM@VERSION`` refuses such a module."""
KUBERNETES = "v1.33.13"
FLUX_RELEASE = "v2.9.0"
"""That brings the first version of these controllers."""
SOURCE_CONTROLLER = "v1.9.1"
"""Newer ones need a module that cannot be had."""
KUSTOMIZE_CONTROLLER = "v1.9.5"
FLUX_GIT = "v0.52.0"
"""The Git client of Flux's source-controller v1.9.5."""
KWOK = "v0.8.0"
SEALED_SECRETS = "v0.27.1"


@dataclass(frozen=True)
class GoProgram:
    """A program that ``go install`` can build.

    Args:
        module: import path of its ``main`` package.
        version: tag of the module; also what ``version_arguments`` must print.
        cost: what to tell the person who waits, before anything is downloaded.
        go: the oldest Go that builds it.
        built_with: program of the same module and version whose build makes this one, too; else its own.
        recipe: folder of ``RECIPES``; None: it needs none. Programs that share versions share one.
        stamps: ``variable=value`` that the linker sets, of a program that does not know its version otherwise.
        shows: what it prints instead of its version, of a program that knows none.
    """

    name: str
    module: str
    version: str
    version_arguments: tuple[str, ...]
    cost: str
    go: tuple[int, int, int] = GO_MINIMUM
    built_with: str | None = None
    recipe: str | None = None
    stamps: tuple[str, ...] = ()
    shows: str | None = None

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-{platform.system()}-{platform.machine()}".lower()

    @property
    def family(self) -> str:
        """The program whose build makes this one."""
        return self.built_with or self.name

    @property
    def graph(self) -> str:
        """What it has in common with all programs whose packages are compiled once for all of them."""
        return self.recipe or self.family

    @property
    def go_name(self) -> str:
        """What Go calls the binary: the last part of the module that is no major version."""
        parts = self.module.split("/")
        return parts[-2] if re.fullmatch(r"v\d+", parts[-1]) else parts[-1]

    @property
    def printed(self) -> str:
        """What a working binary prints."""
        return self.shows or self.version.lstrip("v")


def _kubernetes(name: str, *version_arguments: str, first: bool = False) -> GoProgram:
    return GoProgram(
        name=name,
        module=f"k8s.io/kubernetes/cmd/{name}",
        version=KUBERNETES,
        version_arguments=version_arguments,
        cost="5 to 9 minutes on 2 cores, 6 GB of disk meanwhile, 250 MB kept with the controller manager and kubectl",
        go=(1, 24, 0),
        built_with=None if first else "kube-apiserver",
        recipe="kubernetes",
        stamps=tuple(
            f"k8s.io/{package}/version.gitVersion={KUBERNETES}" for package in ("component-base", "client-go/pkg")
        ),
    )


_ALL = (
    GoProgram(
        name="kubeseal",
        module="github.com/bitnami-labs/sealed-secrets/cmd/kubeseal",
        version=SEALED_SECRETS,
        version_arguments=("--version",),
        cost="1 to 3 minutes on 2 cores, 1 GB of disk meanwhile, 80 MB kept with the controller",
        go=(1, 24, 0),
        recipe="kubernetes",
    ),
    GoProgram(
        name="sealed-secrets-controller",
        module="github.com/bitnami-labs/sealed-secrets/cmd/controller",
        version=SEALED_SECRETS,
        version_arguments=("--version",),
        cost="built with kubeseal",
        go=(1, 24, 0),
        built_with="kubeseal",
        recipe="kubernetes",
    ),
    GoProgram(
        name="kustomize",
        module="sigs.k8s.io/kustomize/kustomize/v5",
        version="v5.7.1",
        version_arguments=("version",),
        cost="1 to 2 minutes on 2 cores, 330 MB of disk meanwhile, 23 MB kept",
    ),
    GoProgram(
        name="helm",
        module="helm.sh/helm/v3/cmd/helm",
        version="v3.18.6",
        version_arguments=("version", "--short"),
        cost="1 to 3 minutes on 2 cores, 2 GB of disk meanwhile, 61 MB kept",
        go=(1, 24, 0),
        recipe="kubernetes",
        shows="v3.18",
    ),
    GoProgram(
        name="etcd",
        module="go.etcd.io/etcd/server/v3",
        version="v3.6.16",
        version_arguments=("--version",),
        cost="1 to 2 minutes on 2 cores, 1 GB of disk meanwhile, 27 MB kept",
        go=(1, 26, 0),
        recipe="etcd",
    ),
    _kubernetes("kube-apiserver", "--version", first=True),
    _kubernetes("kube-controller-manager", "--version"),
    _kubernetes("kubectl", "version", "--client"),
    GoProgram(
        name="kwok",
        module="sigs.k8s.io/kwok/cmd/kwok",
        version=KWOK,
        version_arguments=("--version",),
        cost="2 to 4 minutes on 2 cores, 3 GB of disk meanwhile, 64 MB kept",
        go=(1, 26, 0),
        recipe="flux",
    ),
    GoProgram(
        name="kustomize-controller",
        module="github.com/fluxcd/kustomize-controller",
        version=KUSTOMIZE_CONTROLLER,
        version_arguments=("--help",),
        cost="3 to 6 minutes on 2 cores, 4 GB of disk meanwhile, 86 MB kept",
        go=(1, 26, 0),
        recipe="flux",
        shows="--watch-all-namespaces",
    ),
    GoProgram(
        name="source-controller",
        module="github.com/fluxcd/source-controller",
        version=SOURCE_CONTROLLER,
        version_arguments=("--help",),
        cost="3 to 6 minutes on 2 cores, 5 GB of disk meanwhile, 101 MB kept",
        go=(1, 26, 0),
        recipe="flux",
        shows="--storage-adv-addr",
    ),
    GoProgram(
        name="git-client",
        module="edgewright.test/git-client",
        version=FLUX_GIT,
        version_arguments=("--version",),
        cost="1 to 2 minutes on 2 cores, 500 MB of disk meanwhile, 9 MB kept",
        go=(1, 26, 0),
        recipe="git-client",
    ),
    GoProgram(
        name="crane",
        module="github.com/google/go-containerregistry/cmd/crane",
        version="v0.20.6",
        version_arguments=("version",),
        cost="1 to 2 minutes on 2 cores, 400 MB of disk meanwhile, 13 MB kept",
    ),
    GoProgram(
        name="temporal-server",
        module="go.temporal.io/server/cmd/server",
        version="v1.31.0",
        version_arguments=("--version",),
        cost="5 to 9 minutes on 2 cores, 3.5 GB of disk meanwhile, 170 MB kept with its SQL tool",
        go=(1, 26, 2),
    ),
    GoProgram(
        name="temporal-sql-tool",
        module="go.temporal.io/server/cmd/tools/sql",
        version="v1.31.0",
        version_arguments=("--version",),
        cost="built with the server",
        go=(1, 26, 2),
        built_with="temporal-server",
    ),
    GoProgram(
        name="temporal-ui",
        module="github.com/temporalio/ui-server/v2/cmd/server",
        version="v2.54.1",
        version_arguments=("--version",),
        cost="1 to 2 minutes on 2 cores, 1 GB of disk meanwhile, 26 MB kept",
        go=(1, 26, 5),
    ),
)
PROGRAMS = {program.name: program for program in _ALL}

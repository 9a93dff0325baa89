"""Two machines on one wire: network namespaces of a test's own. No packet of theirs reaches the real machine."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Self

CENTRE, EDGE = "10.213.7.1", "10.213.7.2"
WIRE = """
set -e
ip link set lo up
unshare --net sleep 100000 &
while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add centre type veth peer name edge netns $!
ip addr add {centre}/24 dev centre
ip link set centre up
nsenter --target $! --net sh -c 'ip link set lo up; ip addr add {edge}/24 dev edge; ip link set edge up'
echo $!
wait
"""


@dataclass
class TwoMachines:
    """A centre's machine, and an edge's, which reach each other at ``CENTRE`` and ``EDGE``.

    What is put before a command runs it on one of them. Needs root, or the right to make user namespaces; without
    that, what uses it fails.
    """

    _holder: "subprocess.Popen[str] | None" = None
    _edge: int = 0

    def __enter__(self) -> Self:
        for program in ("unshare", "nsenter", "ip"):
            assert shutil.which(program), f"this needs {program}; util-linux and iproute2 have it"
        own = ["unshare", *self._as_user("--user", "--map-root-user"), "--net"]
        wire = WIRE.format(centre=CENTRE, edge=EDGE)
        self._holder = subprocess.Popen(
            [*own, "sh", "-c", wire], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._holder.stdout
        said = self._holder.stdout.readline().strip()
        assert said.isdecimal(), "no network namespaces of its own"
        self._edge = int(said)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._holder
        subprocess.run(["kill", "-9", str(self._edge)], check=False)
        self._holder.kill()
        self._holder.wait()

    @property
    def on_centre(self) -> list[str]:
        assert self._holder
        return self._on(self._holder.pid)

    @property
    def on_edge(self) -> list[str]:
        return self._on(self._edge)

    def _on(self, pid: int) -> list[str]:
        nsenter = shutil.which("nsenter")
        assert nsenter
        return [nsenter, "--target", str(pid), "--net", *self._as_user("--user", "--preserve-credentials"), "--"]

    @staticmethod
    def _as_user(*options: str) -> tuple[str, ...]:
        return () if os.geteuid() == 0 else options

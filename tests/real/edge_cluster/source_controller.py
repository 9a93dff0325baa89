"""Stands in for Flux's source-controller as a whole: while a pod of it is there, it keeps every source fetched.

What it fetches with, and through which proxies, is what the real one takes: the Secret of the source, with its
password and ``ca.crt``, and the variables of the pod.
"""

import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import httpx

from edge_cluster.cluster import Cluster
from edge_cluster.sources import KINDS, Source

ROUND_SECONDS = 2.0
NOT_NOW = (httpx.HTTPError, AssertionError, subprocess.TimeoutExpired)
"""The API server is away, the object has gone meanwhile, or something takes too long: there is a next round."""


class SourceController:
    """Fetches while it is open as a context.

    Args:
        folder: for archives.
        runs: whether there is a pod of it.
        variables: of that pod.
    """

    def __init__(
        self, cluster: Cluster, folder: Path, *, runs: Callable[[], bool], variables: Callable[[], Mapping[str, str]]
    ) -> None:
        self._cluster, self._folder = cluster, folder
        self._runs, self._variables = runs, variables
        self._sources: dict[tuple[str, str], Source] = {}
        self._open = ExitStack()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._ended.set()
        self._thread.join()
        self._open.close()

    def _run(self) -> None:
        while not self._ended.wait(ROUND_SECONDS):
            if self._runs():
                with suppress(*NOT_NOW):
                    self._round()

    def _round(self) -> None:
        listed = self._cluster.http.get(f"{KINDS}/gitrepositories")
        if not listed.is_success:
            return
        for each in listed.json()["items"]:
            if not each["spec"].get("suspend"):
                self._refresh(each["metadata"]["namespace"], each["metadata"]["name"])

    def _refresh(self, namespace: str, name: str) -> None:
        source = self._sources.get((namespace, name))
        if source is None:
            folder = self._folder / f"{namespace}-{name}"
            folder.mkdir(parents=True, exist_ok=True)
            source = Source(self._cluster, folder, namespace, name, variables=self._variables)
            self._sources[namespace, name] = self._open.enter_context(source)
        try:
            source.refresh()
        except subprocess.CalledProcessError as failure:
            said = failure.stderr.decode(errors="replace").strip()
            source.fails(f"failed to checkout and determine revision: {said}")

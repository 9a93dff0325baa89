"""Publishes the charts that clusters get as the repository `shared/helm-charts`."""

from collections.abc import Mapping
from pathlib import Path

import edgewright
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.domain.own_charts import OWN_CHARTS
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Stalled
from edgewright.ports.git_server import CommitId, CommitMessage, GitServer, HeadMoved

_ATTEMPTS = 5


def charts_path() -> Path:
    """The folder of the charts that come with this Edgewright, in a checkout and in an installation alike."""
    return Path(edgewright.__file__).parent / "charts"


def publish_charts(git: GitServer, charts: Path, sealed_secrets: SealedSecretsChart) -> CommitId:
    """Makes the repository hold exactly the charts below a folder, and the pushed ones; makes it first if need be.

    Args:
        charts: hidden files and files of editors in it are left out.
        sealed_secrets: what the chart of clusters is to say of it.

    Returns:
        The head of the repository; the one that was there if nothing differs.

    Raises:
        Stalled: code ``charts_missing``: there is no file to publish; ``sealing_chart_unusable``.
        HeadMoved: others keep publishing, too.
    """
    files = _files(charts)
    if not files:
        raise Stalled(
            "This installation has no charts, so that clusters could not be given one.",
            code="charts_missing",
            hint="Install Edgewright again, or restore the folder charts/ of the checkout.",
        )
    files = sealed_secrets.applied(files)
    git.create_repository(REPOSITORY_HELM_CHARTS)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _commit(git, files)
        except HeadMoved:
            # Two starts at once, on one shared storage: the other's commit is read and built upon.
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _commit(git: GitServer, files: Mapping[str, bytes]) -> CommitId:
    head = git.head(REPOSITORY_HELM_CHARTS)
    published = git.list(REPOSITORY_HELM_CHARTS, "", at=head) if head else ()
    ours = (path for path in published if not path.startswith(f"{OWN_CHARTS}/"))
    changes: dict[str, bytes | None] = {path: None for path in ours if path not in files}
    changes.update(files)
    message = CommitMessage(subject="Publish the charts of this Edgewright", actor="centre")
    return git.commit(REPOSITORY_HELM_CHARTS, changes, message, expected_head=head)


def _files(charts: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(charts.rglob("*")):
        relative = path.relative_to(charts)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not path.is_symlink() and not hidden and not path.name.endswith("~"):
            found[relative.as_posix()] = path.read_bytes()
    return found

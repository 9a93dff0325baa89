"""Which Secrets an edge is asked to seal anew, by what its repository holds."""

from uuid import UUID

from memory_git_server import MemoryGitServer
from sealing_keys import NOW

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.ports.git_server import CommitMessage
from edgewright.sealing import SealedValue, put_values, stale_secrets

CLUSTER = UUID(int=1)
DB = SecretReference("default", "db")
USED, OLD = "ab" * 32, "cd" * 32


def test_stale_is_what_another_certificate_has_sealed() -> None:
    git = MemoryGitServer()
    git.create_repository(CLUSTER)
    assert stale_secrets(git, CLUSTER, USED) == []
    current, stale = (put_values(None, DB, {"k": SealedValue("AQAA", each, NOW)}) for each in (USED, OLD))
    files = {
        DB.path: stale,
        "edo/secrets/default/current.yaml": current,
        "edo/secrets/default/README.md": b"a note",
        "edo/secrets/default/broken.yaml": b"[",
        # Where no Secret belongs: no edge could answer for what these are asked for as, and no re-sealing would end.
        "edo/secrets/alone.yaml": stale,
        "edo/secrets/default/deeper/db.yaml": stale,
    }
    git.commit(CLUSTER, files, CommitMessage("Change", "test"), expected_head=None)
    assert stale_secrets(git, CLUSTER, USED) == [DB]

"""What a driving repository holds of Secrets, and what their edge says of each: never a value."""

from collections.abc import Iterator

from api.schemas.secrets import ListedSecret, SealedKey, SecretList
from edgewright.domain.absence import unopened_of
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.opened_secrets import EdgeState, OpenedSecrets, opened_secrets, sealing_digest, template_digest
from edgewright.domain.rendering.layout import SECRETS_FOLDER
from edgewright.errors import NotFound, Stalled
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import GitServer
from edgewright.sealing import SealedFile, ciphertext_digest, read_sealed


def list_secrets(git: GitServer, row: ClusterRow, *, namespace: str | None, name: str | None) -> SecretList:
    """Lists the secrets of one cluster, by namespace and name; reads its repository.

    Args:
        namespace, name: only the Secrets there, and only those of that name; None: all.
    """
    edge = _Edge(row)
    items: list[SealedKey] = []
    secrets: list[ListedSecret] = []
    unreadable: list[str] = []
    for path, secret, document in _files(git, row):
        if namespace not in {None, secret.namespace} or name not in {None, secret.name}:
            continue
        try:
            sealed = read_sealed(document, where=path)
        except Stalled:
            unreadable.append(path)
            continue
        secrets.append(edge.secret_of(secret, sealed))
        items += edge.keys_of(secret, sealed)
    lost = (SecretKey(each.namespace, each.name, each.key) for each in items if each.opens is False)
    must_reenter = sorted({str(place) for place in (*row.must_reenter, *lost)})
    return SecretList(
        items=items,
        secrets=secrets,
        unreadable=unreadable,
        must_reenter=must_reenter,
        more_unopened=edge.more_unopened,
    )


def _files(git: GitServer, row: ClusterRow) -> Iterator[tuple[str, SecretReference, bytes]]:
    """Path, Secret and content of each of their files."""
    try:
        head = git.head(row.uuid)
    except NotFound:
        return
    for path in git.list(row.uuid, SECRETS_FOLDER.rstrip("/"), at=head) if head else []:
        namespace, _, file = path.removeprefix(SECRETS_FOLDER).partition("/")
        if file.endswith(".yaml") and head is not None:
            secret = SecretReference(namespace, file.removesuffix(".yaml"))
            yield path, secret, git.read(row.uuid, path, at=head) or b""


class _Edge:
    """What an edge has said last of what is sealed for it."""

    def __init__(self, row: ClusterRow) -> None:
        self._fingerprint = row.certificate.fingerprint if row.certificate else None
        self._opened: OpenedSecrets | None = opened_secrets(row.edge_status)
        named, count = unopened_of(row.edge_status or EdgeStatus())
        self._unopened = {each.place: each.sha256 for each in named}
        self.more_unopened = count - len(named)

    def secret_of(self, secret: SecretReference, sealed: SealedFile) -> ListedSecret:
        return ListedSecret(
            namespace=secret.namespace,
            name=secret.name,
            type=sealed.template.type,
            labels=dict(sealed.template.labels),
            annotations=dict(sealed.template.annotations),
            edge_state=EdgeState.UNKNOWN
            if self._opened is None
            else self._opened.state_with_template(*_digests(secret, sealed)),
        )

    def keys_of(self, secret: SecretReference, sealed: SealedFile) -> Iterator[SealedKey]:
        state, refusal = (
            (EdgeState.UNKNOWN, "") if self._opened is None else self._opened.state_of(*_digests(secret, sealed))
        )
        for key, value in sealed.values.items():
            claimed = self._unopened.get(secret.at(key))
            yield SealedKey(
                namespace=secret.namespace,
                name=secret.name,
                key=key,
                sealed_at=value.sealed_at,
                fingerprint=value.fingerprint,
                state="current" if value.fingerprint == self._fingerprint else "stale",
                edge_state=state,
                refusal=refusal or None,
                opens=False if claimed is not None and claimed == ciphertext_digest(value.ciphertext) else None,
            )


def _digests(secret: SecretReference, sealed: SealedFile) -> tuple[str, str]:
    """The digests of the values and of the template, as the edge names them."""
    ciphertexts = {key: value.ciphertext for key, value in sealed.values.items()}
    return sealing_digest(secret, ciphertexts), template_digest(sealed.template)

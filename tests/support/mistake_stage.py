"""Where the table of mistakes is played: a gateway with clusters in several states, all sorts of tokens, files."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from free_ports import free_port
from gateway_centre import BASE_URL, STATUS_APP, GatewayCentre, bearer
from live_gateway import STATUS, LiveGateway, live_gateway
from scripted_centre import Reply, scripted_centre
from sealing_keys import certificate_pem, private_key, private_pem

from api.wrong_credentials import WrongCredentials
from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.domain.cluster import Fence, StepName
from edgewright.domain.credentials import operator_token
from edgewright.ports.operators import OperatorToken, Permission
from edgewright.sealing import SECRET_LIMIT
from tools.production.certificates import make_certificates

CHECKOUT = Path(__file__).parents[2]
FOREIGN = operator_token(b"foreign!", b"g" * 32)
LATIN_1 = "owner: Jürgen\n".encode("latin-1")
FILES: dict[str, str | bytes] = {
    "value": "s3cr3t",
    "empty": "",
    "large": b"x" * (SECRET_LIMIT + 1),
    "values.yaml": "global: {note: hello}\n",
    "tab.yaml": "global:\n\tnote: hello\n",
    "indented.yaml": "global:\n  note: hello\n line: 4\n",
    "list.yaml": "- global\n",
    "date.yaml": "global: {since: 2031-02-03}\n",
    "latin1.yaml": LATIN_1,
    "misfit.yaml": "sealed-secret: {enabled: false}\n",
    "broken.json": '{"global": {"note": "hello",}}\n',
    "good.env": "USER=press\n",
    "no-equals.env": "USER=press\nPASSWORD s3cr3t\n",
    "twice.env": "USER=press\nUSER=paint\n",
    "cut-token": "ew_0123456789abcdef_AAAA\n",
    "foreign-token": FOREIGN.text + "\n",
    "folder/README": "Nothing to see here.\n",
    "damaged/contexts.json": '{"current": "munich", "contexts": {"munich": ',
    "misplaced/contexts.json/README": "A folder.\n",
    "key.pem": private_pem(),
    "certificate.pem": certificate_pem(private_key()),
}
"""What lies in the folder where commands are typed."""


@dataclass
class MistakeStage:
    """Everything that a row needs.

    Args:
        folder: where commands are typed.
        places: what placeholders of the table stand for.
        admin: token of an administrator.
    """

    live: LiveGateway
    folder: Path
    places: dict[str, str]
    admin: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables of an administrator's shell."""
        return {
            "EDGEWRIGHT_URL": self.live.url,
            "EDGEWRIGHT_TOKEN_FILE": "admin-token",
            "EDGEWRIGHT_HOME": str(self.folder / "home"),
            "EDGEWRIGHT_CONFIG": str(self.folder / "config"),
            "COLUMNS": "80",
        }

    def forget_wrong_credentials(self) -> None:
        """As if a minute had passed: an address may send few wrong ones in that time."""
        state = self.live.centre.app.state
        state.access = replace(state.access, wrong_credentials=WrongCredentials())

    def named(self, text: str) -> str:
        """A text with placeholders for what is another on each stage."""
        text = text.replace(f"{CHECKOUT / 'bin' / 'edgewright'}", "edgewright").replace(f"{self.folder}/", "")
        text = text.replace(str(self.folder), "{folder}")
        for name, value in sorted(self.places.items(), key=lambda place: -len(place[1])):
            text = text.replace(value, f"{{{name}}}")
        return text


@contextmanager
def mistake_stage(folder: Path) -> Iterator[MistakeStage]:
    """A stage until the end of the context."""
    (folder / "centre").mkdir()
    page = Reply(200, b"<html>It works!</html>", {"Content-Type": "text/html"})
    with (
        live_gateway(folder / "centre") as live,
        scripted_centre(lambda _request: page) as another,
        scripted_centre(tls=_certified(folder / "certificates")) as encrypted,
    ):
        admin = live.run(live.centre.token(Permission.ADMIN)).text
        places = live.run(_people(live.centre)) | live.run(_clusters(live.centre, admin))
        host = live.url.removeprefix("http://")
        places |= {
            "url": live.url,
            "host": host,
            "port": host.rpartition(":")[2],
            "external-url": BASE_URL,
            "tls-host": encrypted.url.removeprefix("https://"),
            "page-url": another.url,
            "free-port": str(free_port()),
            "bare-git-url": f"{live.url}/git",
            "git-url": f"http://desk:{admin}@{host}/git",
            "foreign-git-url": f"http://desk:{FOREIGN.text}@{host}/git",
            "reader-git-url": f"http://desk:{places['reader-token']}@{host}/git",
            "foreign-token": FOREIGN.text,
        }
        desk = folder / "desk"
        _lay_out(desk, places, admin)
        yield MistakeStage(live, desk, places, admin)


def _certified(folder: Path) -> ssl.SSLContext:
    """What a server shows whose authority nobody knows."""
    folder.mkdir()
    make_certificates(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "proxy.crt", folder / "proxy.key")
    return context


async def _people(centre: GatewayCentre) -> dict[str, str]:
    """Tokens by the names of their files."""
    reader = await centre.token(Permission.READ, name="reader")
    secrets = await centre.token(Permission.SECRETS, name="secrets")
    await centre.token(Permission.READ, name="taken")
    revoked = await centre.token(Permission.ADMIN)
    await centre.ports.operators.revoke(revoked.id, actor="centre")
    expired = operator_token(b"expired!", b"e" * 32)
    now = datetime.now(UTC)
    await centre.ports.operators.add(
        OperatorToken(
            id=expired.id,
            name="expired",
            permissions=frozenset({Permission.ADMIN}),
            secret_sha256=expired.sha256,
            created_at=now - timedelta(days=2),
            expires_at=now - timedelta(days=1),
        ),
        actor="centre",
    )
    return {
        "reader-token": reader.text,
        "secrets-token": secrets.text,
        "revoked-token": revoked.text,
        "expired-token": expired.text,
    }


async def _clusters(centre: GatewayCentre, admin: str) -> dict[str, str]:
    """UUIDs by name, and tokens of bootstrap lines."""
    publish_charts(centre.git, charts_path(), SealedSecretsChart())
    late = await centre.create("late-shop")
    expired_line = await centre.bootstrap_token(late)
    async with centre.database.write() as connection:
        await connection.exec_driver_sql("UPDATE registration_tokens SET expires_at = '2020-01-01 00:00:00.000000'")
    client = centre.client(bearer(admin))
    press = await centre.create("press-shop", labels={"site": "sheffield"})
    (await client.put(f"/v1/app/{STATUS_APP}/object/{press}", json=STATUS)).raise_for_status()
    (await client.put(f"/v1/cluster/{press}/secret/default/db/password", content=b"s3cr3t")).raise_for_status()
    replaced_line = await centre.bootstrap_token(press)
    line = await centre.bootstrap_token(press)
    attached = await centre.create("attached-shop")
    spent = await centre.bootstrap_token(attached)
    edge = await centre.register(attached, token=spent)
    (await centre.client(edge.as_agent).post("/v1/agent/heartbeat")).raise_for_status()
    deleting = await centre.create("paint-shop")
    (await client.delete(f"/v1/cluster/{deleting}")).raise_for_status()
    return {
        "late-shop": str(late),
        "press-shop": str(press),
        "fresh-shop": str(await centre.create("fresh-shop")),
        "attached-shop": str(attached),
        "paint-shop": str(deleting),
        "old-shop": str(await _ended(centre, await centre.create("old-shop"))),
        "expired-line": expired_line,
        "replaced-line": replaced_line,
        "line-token": line,
        "spent-token": spent,
    }


async def _ended(centre: GatewayCentre, cluster: UUID) -> UUID:
    """The cluster, deleted as the last step of its deletion does it."""
    row = await centre.ports.wishes.request_deletion(cluster, actor="test", force=True)
    fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
    await centre.ports.steps.remove_central_entries(fence, StepName.REMOVE_SETUP_STATUS)
    return cluster


def _lay_out(desk: Path, places: dict[str, str], admin: str) -> None:
    """Writes the files."""
    tokens = {name: f"{text}\n" for name, text in places.items() if name.endswith("-token")}
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    munich = {"url": places["url"], "token": admin}
    contexts = {
        "logged-out/contexts.json": json.dumps({"contexts": {"munich": {**munich, "token": None}}}),
        "exposed/contexts.json": json.dumps({"contexts": {"munich": munich}}),
    }
    files = {**FILES, **tokens, **contexts, "other-key.pem": other, "admin-token": f"{admin}\n"}
    for name, content in files.items():
        file = desk / name
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(0o600)
    (desk / "exposed").chmod(0o755)
    (desk / "exposed" / "contexts.json").chmod(0o644)
    (desk / "home").mkdir()

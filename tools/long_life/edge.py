"""The edge of one cluster: registers, beats, reports, rotates what it has; all through the ports."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from centre import WorkflowCentre, eventually
from sealing_keys import certificate_pem, private_key

from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.domain.cluster import LeaseState, Role
from edgewright.ports.edge_reports import Heartbeat
from edgewright.sealing import SealingCertificate, parse_certificate
from tools.long_life.ledger import Ledger
from tools.long_life.shared_clock import SharedClock

LEASE_SECONDS = 120
TICK = 10.0
"""Seconds that pass at once while the lease runs out: less than what counts as a gateway that was away."""


class LongLifeEdge:
    """Notes in the ledger what it does."""

    def __init__(self, centre: WorkflowCentre, clock: SharedClock, cluster: UUID, ledger: Ledger) -> None:
        self._centre = centre
        self._clock = clock
        self._cluster = cluster
        self._ledger = ledger
        self._reports = 0
        self._certificates = 0
        self._pem = ""
        self.generation = 1
        self.certificate: SealingCertificate | None = None

    async def attach(self) -> None:
        """What the bootstrap script and the first minutes after it do, on new hardware."""
        uid, token, sha = str(uuid4()), secrets.token_hex(8), hashlib.sha256(secrets.token_bytes(32)).digest()
        access = self._centre.ports.edge_access
        await access.issue_token(
            self._cluster, token_id=token, secret_sha256=sha, expires_in=timedelta(hours=1), actor="token:life"
        )
        self._ledger.note("token.issued")
        await access.register(
            token_id=token,
            secret_sha256=sha,
            kube_system_uid=uid,
            kubernetes_version="v1.33.1",
            flux_sha256=secrets.token_bytes(32),
            agent_sha256=secrets.token_bytes(32),
        )
        self._ledger.note("edge.registered", uid)
        self.generation = (await self._centre.row(self._cluster)).generation
        for credential in await access.credentials(self._cluster):
            await access.record_use(credential.id)
            self._ledger.note("credential.proven", credential.role)
        self._ledger.note("edge.joined", self.generation)
        await self._centre.fleet.nudge(self._cluster)
        await self.beat(turns=True)
        await self.change_certificate()

    async def beat(self, *, applied: str | None = None, turns: bool = False) -> None:
        """One heartbeat; ``applied``: the commit that the edge is at; ``turns``: the lease becomes current by it."""
        if turns:
            self._ledger.note("lease.renewed", (await self._centre.row(self._cluster)).lease.epoch + 1)
        beat = Heartbeat(self._cluster, self.generation, clock_offset=0.1, observed_revision=applied)
        for cluster in await self._centre.ports.edge_reports.heartbeats([beat]):
            await self._centre.fleet.nudge(cluster)

    async def report(self) -> None:
        """A status that differs from the one before."""
        self._reports += 1
        hosts = [{"hostname": f"node-{number}", "arch": "amd64"} for number in range(1 + self._reports % 5)]
        body = {"hosts": hosts, "kubeseal_cert": self._pem}
        ports = self._centre.ports
        door = EdgeStatusDoor(ports.directory, ports.edge_reports, ports.config)
        assert await door.record(self._cluster, body, merge=False, actor="agent", generation=self.generation)
        self._ledger.note("edge.status", len(hosts))
        await self._centre.fleet.nudge(self._cluster)

    async def change_certificate(self) -> None:
        """The controller has made a new sealing key."""
        self._certificates += 1
        now = datetime.now(UTC)
        until = now + timedelta(days=3650 + self._certificates)
        self._pem = certificate_pem(private_key(), not_before=now - timedelta(days=1), not_after=until)
        self.certificate = parse_certificate(self._pem, now=now)
        self._ledger.note("certificate.changed", self.certificate.fingerprint)
        await self.report()

    async def rotate_credentials(self) -> None:
        """Both, each proven by its first use."""
        access = self._centre.ports.edge_access
        for role in (Role.FLUX, Role.AGENT):
            sha = secrets.token_bytes(32)
            await access.add_rotated(self._cluster, role, sha, actor="agent")
            self._ledger.note("credential.registered", role)
            [new] = [held for held in await access.credentials(self._cluster) if held.secret_sha256 == sha]
            await access.record_use(new.id)
            self._ledger.note("credential.rotated", role)
        await self._centre.fleet.nudge(self._cluster)

    async def fall_silent_and_come_back(self) -> None:
        """The lease runs out while a gateway listens, the sweep sees it, and the edge is heard again."""
        reports = self._centre.ports.edge_reports
        await self.beat()
        epoch = (await self._centre.row(self._cluster)).lease.epoch
        self._ledger.note("lease.expired", epoch + 1)
        for _ in range(int(LEASE_SECONDS / TICK) + 2):
            await reports.keep_listening()
            self._clock.move_on(TICK)

        async def expired() -> bool:
            await reports.keep_listening()
            row = await self._centre.row(self._cluster)
            return row.lease.state is LeaseState.EXPIRED and bool(
                row.projection and row.projection.lease_epoch == row.lease.epoch
            )

        await eventually(expired)
        await self.beat(turns=True)

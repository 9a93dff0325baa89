"""Broken promises in the database: see ``mutants``."""

from uuid import UUID, uuid4

from tools.chaos.golden import ADDRESS, CONFIGURATION, SETUP_STATUS
from tools.chaos.mutants import GONE, MOVED, PRESENT, REMOVED, SECRETIVE, UPGRADED, Home, Mutant, Plant


def execute(where: str, statement: str) -> Plant:
    """A statement about the first cluster that is ``where``; ``:cluster`` in it."""

    def plant(home: Home) -> None:
        cluster = UUID(home.cluster(where)).hex
        new = {"cluster": cluster, "new": uuid4().hex}
        with home.database() as database:
            used = {name: value for name, value in new.items() if f":{name}" in statement}
            assert database.execute(statement, used).rowcount > 0, statement

    return plant


def _entry(app: str) -> str:
    return f"app = '{UUID(app).hex}' AND object = :cluster"


FIRST = "position = (SELECT {which}(position) FROM events WHERE cluster = :cluster AND kind = '{kind}')"
EVENT = (
    "INSERT INTO events SELECT position + 1000000, :new, cluster, actor, kind, at, message, detail FROM events WHERE "
)


def _double_cluster(home: Home) -> None:
    cluster = UUID(home.cluster(PRESENT)).hex
    with home.database() as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(clusters)")]
        given = {"uuid": f"'{uuid4().hex}'", "name": "'another'", "name_key": "'another'", "kube_system_uid": "NULL"}
        columns = ", ".join(f'"{name}"' for name in names)
        values = ", ".join(given.get(name, f'"{name}"') for name in names)
        database.execute(f"INSERT INTO clusters ({columns}) SELECT {values} FROM clusters WHERE uuid = ?", [cluster])


def _double_name(home: Home) -> None:
    with home.database() as database:
        [(name,)] = database.execute("SELECT name FROM clusters WHERE closed_at IS NULL ORDER BY created_at LIMIT 1")
        database.execute(
            "UPDATE clusters SET name = ? WHERE uuid = (SELECT uuid FROM clusters WHERE closed_at IS NULL "
            "AND name != ? ORDER BY created_at DESC LIMIT 1)",
            [name, name],
        )


def _crowd_of_upgrades(home: Home) -> None:
    """Three clusters whose upgrades have begun, as the timeline tells it."""
    with home.database() as database:
        found = database.execute(
            "SELECT DISTINCT cluster FROM events WHERE kind = 'cluster.created' LIMIT 3"
        ).fetchall()
        assert len(found) == 3
        for number, (cluster,) in enumerate(found):
            database.execute(
                "INSERT INTO events SELECT max(position) + 1000000 + ?, ?, ?, 'token:x', 'upgrade.begun', max(at), "
                "'', '{}' FROM events",
                [number, uuid4().hex, cluster],
            )


ROWS = (
    Mutant("more upgrades at a time than allowed", "upgrades_too_many", _crowd_of_upgrades),
    Mutant(
        "an upgrade that the timeline lost",
        "upgrade_lost",
        execute(UPGRADED, "DELETE FROM events WHERE cluster = :cluster AND kind = 'upgrade.begun'"),
    ),
    Mutant(
        "a wanted version that the repository does not ask for",
        "upgrade_not_delivered",
        execute(PRESENT, 'UPDATE clusters SET components = \'{"agent": {"image": "x:9"}}\' WHERE uuid = :cluster'),
    ),
    Mutant(
        "a secret that nobody is told to enter again",
        "reentry_lost",
        execute(MOVED, "UPDATE clusters SET must_reenter = '[]' WHERE uuid = :cluster"),
    ),
    Mutant(
        "a lost update of an entry",
        "update_lost",
        execute(
            PRESENT,
            f"UPDATE entries SET body = json_set(body, '$.values.global.stamp', 'old') WHERE {_entry(CONFIGURATION)}",
        ),
    ),
    Mutant(
        "a lost update of labels",
        "update_lost",
        execute(PRESENT, 'UPDATE clusters SET labels = \'{"stamp": "old"}\' WHERE uuid = :cluster'),
    ),
    Mutant(
        "a pause that nobody has wished for",
        "pause_wrong",
        execute(PRESENT, "UPDATE clusters SET paused = 1 WHERE uuid = :cluster"),
    ),
    Mutant("a lost entry", "update_lost", execute(PRESENT, f"DELETE FROM entries WHERE {_entry(CONFIGURATION)}")),
    Mutant(
        "an entry that the feed does not tell of",
        "feed_wrong",
        execute(PRESENT, f"UPDATE entries SET etag = 'another' WHERE {_entry(CONFIGURATION)}"),
    ),
    Mutant("a lost cluster", "cluster_missing", execute(PRESENT, "DELETE FROM clusters WHERE uuid = :cluster")),
    Mutant(
        "a doubled cluster",
        "cluster_unexplained",
        _double_cluster,
    ),
    Mutant("a name given twice", "name_twice", _double_name),
    Mutant(
        "a resurrected cluster",
        "resurrected",
        execute(GONE, "UPDATE clusters SET closed_at = NULL, desired = 'present' WHERE uuid = :cluster"),
    ),
    Mutant(
        "a removal that was forgotten",
        "wish_lost",
        execute(REMOVED, "UPDATE clusters SET desired = 'present' WHERE uuid = :cluster"),
    ),
    Mutant(
        "a doubled recreation",
        "recreation_miscounted",
        execute(PRESENT, "UPDATE clusters SET commissioning = commissioning + 1 WHERE uuid = :cluster"),
    ),
    Mutant(
        "a move to new hardware that nobody asked for",
        "recreation_miscounted",
        execute(PRESENT, "UPDATE clusters SET generation = generation + 1 WHERE uuid = :cluster"),
    ),
    Mutant(
        "a deletion that is not finished",
        "deletion_unfinished",
        execute(GONE, "UPDATE clusters SET closed_at = NULL, phase = 'Detaching' WHERE uuid = :cluster"),
    ),
    Mutant(
        "an account that outlives its cluster",
        "deletion_unfinished",
        execute(GONE, "INSERT INTO accounts VALUES (:new, :cluster, 'flux', 'flux/left')"),
    ),
    Mutant(
        "a doubled account",
        "accounts_wrong",
        execute(PRESENT, "INSERT INTO accounts VALUES (:new, :cluster, 'flux', 'flux/again')"),
    ),
    Mutant(
        "a lost account",
        "accounts_wrong",
        execute(PRESENT, "DELETE FROM accounts WHERE cluster = :cluster AND role = 'agent'"),
    ),
    Mutant(
        "a lost grant",
        "grants_wrong",
        execute(PRESENT, "DELETE FROM grants WHERE target = :cluster"),
    ),
    Mutant("a lost address", "address_wrong", execute(PRESENT, f"DELETE FROM entries WHERE {_entry(ADDRESS)}")),
    Mutant(
        "a setup status that says ready too long",
        "status_disagrees",
        execute(
            REMOVED,
            "INSERT INTO entries SELECT app, :cluster, etag, 0, modified_at, body FROM entries "
            f"WHERE app = '{UUID(SETUP_STATUS).hex}' LIMIT 1",
        ),
    ),
    Mutant(
        "a setup status that is gone",
        "status_disagrees",
        execute(PRESENT, f"DELETE FROM entries WHERE {_entry(SETUP_STATUS)}"),
    ),
    Mutant(
        "a credential that outlives its cluster",
        "credential_wrong",
        execute(
            GONE,
            "INSERT INTO credentials (id, sequence, cluster, generation, role, state, secret_sha256, created_at) "
            "VALUES (:new, 0, :cluster, 1, 'agent', 'active', x'00', '2026')",
        ),
    ),
    Mutant(
        "a change that no workflow has done",
        "not_settled",
        execute(PRESENT, 'UPDATE clusters SET change_done = "change" - 1 WHERE uuid = :cluster'),
    ),
    Mutant(
        "a creation that the timeline lost",
        "event_lost",
        execute(GONE, "DELETE FROM events WHERE cluster = :cluster AND kind = 'cluster.created'"),
    ),
    Mutant(
        "the end of a deletion that the timeline lost",
        "event_lost",
        execute(GONE, "DELETE FROM events WHERE cluster = :cluster AND kind = 'cluster.deleted'"),
    ),
    Mutant(
        "a doubled event",
        "event_doubled",
        execute(PRESENT, EVENT + FIRST.format(which="min", kind="cluster.created")),
    ),
    Mutant(
        "a phase told twice",
        "event_doubled",
        execute(PRESENT, EVENT + FIRST.format(which="max", kind="phase.changed")),
    ),
    Mutant(
        "a secret that the timeline lost",
        "event_lost",
        execute(SECRETIVE, "DELETE FROM events WHERE " + FIRST.format(which="min", kind="secret.put")),
    ),
    Mutant(
        "a secret that the timeline tells twice",
        "event_doubled",
        execute(SECRETIVE, EVENT + FIRST.format(which="min", kind="secret.put")),
    ),
)

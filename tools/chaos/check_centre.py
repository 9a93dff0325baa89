"""The centre's own things: accounts, addresses, the setup status, credentials, what a deletion leaves, names."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tools.chaos.evidence import Case, Violation
from tools.chaos.golden import ADDRESS, COMMISSIONED, CONFIGURATION, GIT_REPOSITORY, OF_CLUSTER, SETUP_STATUS
from tools.chaos.stores import Row, Stores

GRANTS = {"flux": 2, "agent": 0}


def check_centre(case: Case) -> Iterator[Violation]:
    if case.row is None:
        return
    yield from _check_credentials(case, case.row)
    if case.desired == "deleted":
        yield from _check_deleted(case, case.row)
        return
    yield from _check_status(case, case.row)
    if case.row["change_done"] != case.row["change"]:
        yield case.violation("not_settled", f"change {case.row['change']}, done {case.row['change_done']}")
    if case.desired == "present" or case.was_ready:  # else it was removed before all of it was there
        yield from _check_accounts(case)
        yield from _check_address(case, case.row)


def check_names(stores: Stores) -> Iterator[Violation]:
    """No name belongs to two clusters at any time."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(stores.tables["clusters"], key=lambda row: str(row["created_at"])):
        by_name[row["name"].lower()].append(row)
    for name, rows in by_name.items():
        for earlier, later in pairwise(rows):
            if earlier["closed_at"] is None or earlier["closed_at"] > later["created_at"]:
                yield Violation("name_twice", later["uuid"], f"{name} was {earlier['uuid']}'s at that time")


def check_feed(stores: Stores) -> Iterator[Violation]:
    """The newest change that the feed tells of an entry is the entry as it is."""
    newest: dict[tuple[str, str], Any] = {}
    for change in sorted(stores.tables["changes"], key=lambda row: int(row["position"])):
        newest[(change["app"], change["object"])] = change["etag"]
    there = {(row["app"], row["object"]): row["etag"] for row in stores.tables["entries"]}
    for place in sorted(newest.keys() | there.keys()):
        if newest.get(place) != there.get(place):
            yield Violation(
                "feed_wrong", place[1], f"application {place[0]}: {newest.get(place)}, {there.get(place)}"
            )


def _check_accounts(case: Case) -> Iterator[Violation]:
    accounts = case.stores.of("accounts", case.uuid)
    roles = sorted(row["role"] for row in accounts)
    if roles != ["agent", "flux"]:
        yield case.violation("accounts_wrong", roles)
    for row in accounts:
        granted = sum(1 for grant in case.stores.tables["grants"] if grant["account"] == row["uuid"])
        if granted != GRANTS.get(row["role"]):
            yield case.violation("grants_wrong", f"{row['role']} has {granted}")


def _check_address(case: Case, row: Row) -> Iterator[Violation]:
    groups = [address["group_id"] for address in case.stores.of("addresses", case.uuid)]
    if len(groups) != 1 or not groups[0].endswith(f"-{row['name']}") or not _has_entry(case, ADDRESS):
        yield case.violation("address_wrong", groups)
    if not _has_entry(case, GIT_REPOSITORY):
        yield case.violation("git_entry_lost", "there is no Git repository entry")


def _check_status(case: Case, row: Row) -> Iterator[Violation]:
    status = case.stores.entries().get((SETUP_STATUS, case.uuid))
    present = case.desired == "present"
    if bool(row["ready"]) != present or (row["phase"] in COMMISSIONED) != present:
        yield case.violation("not_settled", f"{case.desired}, {row['phase']}, ready {row['ready']}")
    if (status is not None and status.get("ready") is True) != present:
        yield case.violation("status_disagrees", f"{case.desired}, setup status {status}")
    elif present and status and status["generation"] != row["generation"]:
        yield case.violation("status_disagrees", f"generation {row['generation']}, setup status {status}")
    if _has_entry(case, CONFIGURATION) != present:
        yield case.violation("update_lost", f"{case.desired}, configuration entry {not present}")


def _check_credentials(case: Case, row: Row) -> Iterator[Violation]:
    held = case.stores.of("credentials", case.uuid)
    for credential in held:
        replaced = credential["state"] == "revoked" and _is_replaced(credential, held)
        if not replaced and credential["state"] not in _states_of(case, row, credential):
            where = f"{credential['role']} of generation {credential['generation']}"
            yield case.violation("credential_wrong", f"{case.desired}: {where} is {credential['state']}")
    hashes = {bytes(credential["secret_sha256"]).hex() for credential in held}
    for number, line in enumerate(registrations := [line for line in case.lines if line.verb == "register"]):
        # What an edge has not used yet makes room for what it registers next.
        replaced = any(later.outcome != "no" for later in registrations[number + 1 :])
        if line.outcome == "yes" and not replaced and not set(line.asked.values()) <= hashes:
            yield case.violation("credential_lost", line.wish)


def _is_replaced(credential: Row, held: Sequence[Row]) -> bool:
    """Whether a newer one of the same role was used since: an edge that registers again has two."""
    kind = (credential["role"], credential["generation"])
    return any(
        (other["role"], other["generation"]) == kind
        and other["sequence"] > credential["sequence"]
        and other["proven_at"] is not None
        for other in held
    )


def _states_of(case: Case, row: Row, credential: Row) -> set[str]:
    if case.closed:
        return {"revoked", "detach-only"}
    if credential["generation"] != row["generation"]:
        return {"revoked"}
    return {"present": {"pending", "active"}, "removed": {"suspended"}}.get(case.desired, {"pending", "active"})


def _check_deleted(case: Case, row: Row) -> Iterator[Violation]:
    if not case.closed:
        yield case.violation("deletion_unfinished", f"{row['phase']}, waits for {row['waiting_for']!r}")
        return
    if row["phase"] != "Deleted" or row["ready"]:
        yield case.violation("deletion_unfinished", f"{row['phase']}, ready {row['ready']}")
    left = [table for table in ("accounts", "addresses") if case.stores.of(table, case.uuid)]
    left += [
        f"entry of {app}" for app, object_ in case.stores.entries() if object_ == case.uuid and app in OF_CLUSTER
    ]
    left += [f"repository {repository.folder.name}" for repository in case.in_service]
    if left:
        yield case.violation("deletion_unfinished", f"left over: {left}")


def _has_entry(case: Case, app: str) -> bool:
    return (app, case.uuid) in case.stores.entries()


def members_left(stores: Stores) -> Sequence[Row]:
    """Memberships of objects that are gone."""
    objects = {row["uuid"] for row in stores.tables["objects"]}
    return [row for row in stores.tables["memberships"] if row["object"] not in objects]

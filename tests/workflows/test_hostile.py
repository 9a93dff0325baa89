"""What a hostile reviewer tried. Each of these once hung, looped or lost something."""

from centre import Centre


async def test_as_many_labels_as_there_may_be_do_not_wedge_a_cluster(centre: Centre) -> None:
    cluster = await centre.create("labelled")
    labels = {f"example.org/label-number-{n}": "v" * 60 for n in range(64)}
    await centre.clusters.write_settings(cluster, {"labels": labels}, actor="token:test")
    await centre.ports.fleet.nudge(cluster)
    await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.change_done == row.change), seconds=10
    )

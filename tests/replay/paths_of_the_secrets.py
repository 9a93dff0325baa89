"""Secrets, committed by the worker and by gateways."""

import asyncio
from uuid import UUID

from centre import eventually
from cluster_states import stage
from walk import Faulty, Walk, away, change_secrets, commit_as_a_gateway, is_committed, path


@path
async def one_secret(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await change_secrets(walk, cluster, ["password"])
        return cluster


@path
async def secret_that_a_gateway_commits(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await commit_as_a_gateway(walk, cluster, "password")
        return cluster


@path
async def secrets_of_worker_and_gateway(walk: Walk) -> UUID:
    """The workflow has not told of the first one when it reads of the second one."""
    async with walk.working():
        cluster = await walk.create()
        change = await stage(walk.centre, cluster, "user")
        await walk.centre.fleet.change_secrets(cluster, [change.request])
        await commit_as_a_gateway(walk, cluster, "password")
        return cluster


@path
async def several_secrets_at_once(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await change_secrets(walk, cluster, [f"key-{number}" for number in range(6)])
        return cluster


@path
async def secret_while_git_is_away(walk: Walk) -> UUID:
    git = Faulty(walk.centre.git, "commit", sync=True)
    async with walk.working(git=git):
        cluster = await walk.create()
        git.fault = away(retry_after=5)
        writing = asyncio.create_task(change_secrets(walk, cluster, ["password"]))
        await asyncio.sleep(1.5)
        git.fault = None
        await writing
        return cluster


@path
async def secrets_that_nobody_waits_for(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await stage(walk.centre, cluster, "left-over")
        await walk.nudge(cluster)
        await eventually(lambda: is_committed(walk, cluster))
        await walk.told(cluster)
        return cluster

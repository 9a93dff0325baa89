"""The real git as a client of a gateway on a loopback port."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[int]:
    """Serves a gateway on a free port of the loopback address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    running = asyncio.create_task(server.serve())
    async with asyncio.timeout(20):
        while not server.started:
            await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    async with asyncio.timeout(20):  # what a test has left open keeps it from ending
        await running


async def git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs git with no settings of this machine, and no one to ask for a password."""
    process = await asyncio.create_subprocess_exec(
        "git",
        "-c",
        "user.name=tester",
        "-c",
        "user.email=tester@example.com",
        *arguments,
        cwd=cwd,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(cwd),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
        },
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode or 0, out.decode(), err.decode())

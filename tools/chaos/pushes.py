"""A person who pushes to `by-hand/`, with plain git over smart HTTP."""

import asyncio
import base64
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.chaos.golden import BY_HAND
from tools.chaos.journal import JournalLine, Outcome
from tools.chaos.journaling_client import JournalingClient

PAUSE = 1.0
"""Seconds between two attempts."""
LONGEST = 40.0
"""Seconds that one git command may take."""


@dataclass(frozen=True)
class Pusher:
    """Pushes through the gateway of a client."""

    gateway: JournalingClient

    async def push(self, wish: str, cluster: str, *, patience: float) -> JournalLine:
        """One new file, named after the wish, until the push is known to be there or patience (seconds) is over."""
        until = self.gateway.journal.now() + patience
        while True:
            line = await self._attempt(wish, cluster)
            self.gateway.journal.write(line)
            if line.outcome != "maybe" or self.gateway.journal.now() > min(until, self.gateway.closing):
                return line
            await asyncio.sleep(PAUSE)

    async def _attempt(self, wish: str, cluster: str) -> JournalLine:
        asked, began = {"file": f"{BY_HAND}{wish}.txt", "text": f"{wish}\n"}, self.gateway.journal.now()
        with tempfile.TemporaryDirectory(prefix="edgewright-chaos-push-") as folder:
            outcome, commit, code = await self._push(Path(folder), cluster, asked["file"], asked["text"])
        said = {"commit": commit} if outcome == "yes" else {}
        return JournalLine(
            wish, "push", cluster, asked, began, self.gateway.journal.now(), outcome, code=code, said=said
        )

    async def _push(self, folder: Path, cluster: str, file: str, text: str) -> tuple[Outcome, str, str]:
        """The outcome, the commit, and what git complained of. One that was pushed before is found by its file."""
        origin = f"{self.gateway.address.url}/uuid/{cluster}"
        cloned, complaint = await self._git(folder, "clone", "--quiet", origin, "work")
        if not cloned:
            return "maybe", "", complaint
        work = folder / "work"
        if (work / file).exists():
            _, commit = await self._git(work, "log", "-1", "--format=%H", "--", file)
            return "yes", commit, ""
        (work / file).parent.mkdir(exist_ok=True)
        (work / file).write_text(text)
        for command in (["add", file], ["commit", "--quiet", "--message", f"By hand: {file}"]):
            done, complaint = await self._git(work, *command)
            assert done, complaint
        _, commit = await self._git(work, "rev-parse", "HEAD")
        pushed, complaint = await self._git(work, "push", "--quiet", "origin", "HEAD:main")
        return ("yes" if pushed else "maybe"), commit, complaint

    async def _git(self, folder: Path, *arguments: str) -> tuple[bool, str]:
        """Whether it succeeded, and what it said."""
        process = await asyncio.create_subprocess_exec(
            *("git", "-C", str(folder), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._surroundings(),
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), LONGEST)
        except TimeoutError:
            process.kill()
            await process.wait()
            return False, "timed out"
        return process.returncode == 0, said.decode(errors="replace").strip()[-200:]

    def _surroundings(self) -> dict[str, str]:
        """The token goes in the environment: a command line can be read by everybody."""
        basic = base64.b64encode(f"operator:{self.gateway.address.token}".encode()).decode()
        person = {f"GIT_{role}_{what}": "chaos" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        authority = self.gateway.address.authority
        return {
            **os.environ,
            **person,
            **({"GIT_SSL_CAINFO": str(authority)} if authority else {}),
            "no_proxy": "*",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
        }

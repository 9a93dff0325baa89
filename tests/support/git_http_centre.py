"""A tiny web application around ``GitHttp``, and a clone that real git has made of one of its repositories."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.http_backend import GitHttp
from edgewright.adapters.git.http_push import BY_HAND, PushContext, Pushed
from edgewright.adapters.git.turns import Guest, KeepLimits
from edgewright.domain.own_objects import NOTHING, OwnObjects
from edgewright.errors import EdgewrightError
from edgewright.ports.git_server import CommitId, CommitMessage

PUSH_LIMIT = 1024 * 1024
KEPT = KeepLimits(of_one_answer=4 * PUSH_LIMIT)
SOMEBODY = Guest("somebody", is_edge=True)
BY_CENTRE = CommitMessage("Populate", "edgewright")
CONTENT = {
    "README.md": b"# A driving repository\n",
    "edo/cluster/flux.yaml": b"---\nkind: GitRepository\n",
    "edo/secrets/ns/one.yaml": b"---\nkind: SealedSecret\n",
    "by-hand/README.md": b"Yours.\n",
}


@dataclass
class GitHttpCentre:
    """The server side: repositories, and their address.

    Attributes:
        pushes: what ``on_pushed`` was told.
        statuses: of all responses, in order.
        starved: operations for which git got no more memory.
        allow_push: whether the route lets pushes through.
        folder: the one that they may change.
    """

    server: BareGitServer
    url: str = ""
    pushes: list[Pushed] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    allow_push: bool = True
    folder: str = BY_HAND
    content: Mapping[str, bytes] = field(default_factory=lambda: CONTENT)
    push_limit: int = PUSH_LIMIT
    own: OwnObjects = NOTHING
    starved: list[str] = field(default_factory=list)
    engine: GitHttp = field(init=False)

    def __post_init__(self) -> None:
        self.engine = GitHttp(self.server, keep=KEPT, on_memory_limit=self.starved.append)

    def repository(self, *, populated: bool = True) -> tuple[UUID, str]:
        name = uuid4()
        self.server.create_repository(name)
        if populated:
            self.server.commit(name, CONTENT, BY_CENTRE, expected_head=None)
        return name, f"{self.url}/{name}"

    def head(self, repository: UUID) -> CommitId:
        """The head of a repository that has one."""
        head = self.server.head(repository)
        assert head is not None
        return head


def application(centre: GitHttpCentre) -> Starlette:
    engine = centre.engine

    async def on_pushed(pushed: Pushed) -> None:
        centre.pushes.append(pushed)

    def answered(response: Response) -> Response:
        centre.statuses.append(response.status_code)
        return response

    async def info_refs(request: Request) -> Response:
        answer = await engine.info_refs(
            UUID(request.path_params["repository"]),
            request.query_params.get("service"),
            guest=SOMEBODY,
            git_protocol=request.headers.get("git-protocol"),
        )
        return answered(Response(answer.body, headers=dict(answer.headers)))

    async def rpc(request: Request) -> Response:
        answer = await engine.rpc(
            UUID(request.path_params["repository"]),
            request.path_params["service"],
            request.stream(),
            guest=SOMEBODY,
            media_type=request.headers.get("content-type"),
            content_encoding=request.headers.get("content-encoding"),
            git_protocol=request.headers.get("git-protocol"),
            push=PushContext(on_pushed, PUSH_LIMIT, centre.folder, centre.own) if centre.allow_push else None,
        )
        return answered(StreamingResponse(answer.body, headers=dict(answer.headers)))

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, EdgewrightError)
        return answered(JSONResponse({"code": error.code, "detail": error.detail}, error.status))

    return Starlette(
        routes=[
            Route("/{repository}/info/refs", info_refs),
            Route("/{repository}/{service}", rpc, methods=["POST"]),
        ],
        exception_handlers={EdgewrightError: refuse},
    )


Git = Callable[..., subprocess.CompletedProcess[str]]


class Work:
    """A clone of a populated repository."""

    def __init__(self, centre: GitHttpCentre, git: Git, folder: Path) -> None:
        self.id, url = centre.repository()
        self.path = folder
        self._centre = centre
        self._git = git
        git("clone", "-q", url, folder)

    def git(self, *arguments: str | Path, ok: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self._git("-C", self.path, *arguments, ok=ok, stdin=stdin)

    def commit(self, **changes: str) -> str:
        for name, text in changes.items():
            path = self.path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self.commit_all()

    def commit_all(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", "Change")
        return self.git("rev-parse", "HEAD").stdout.strip()

    def head(self) -> CommitId:
        return self._centre.head(self.id)

    def refusal(self, *arguments: str) -> str:
        """What git shows of a push that must be refused and change nothing."""
        before = self.head()
        done = self.git("push", *(arguments or ["origin", "main"]), ok=False)
        assert done.returncode != 0, "the push went through"
        assert self.head() == before
        assert self._centre.pushes == []
        lines = re.findall(r"^remote: (.*?)\s*$", done.stderr, re.MULTILINE)
        return "\n".join(lines)

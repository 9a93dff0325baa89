"""A real PostgreSQL of one test session or demo: made anew, stopped and removed at its end.

The server refuses to run as root; for root it runs as another user of the machine, on a folder of that user's.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debian import debian_tree
from postgresql_process import ServerProcess, surroundings
from workshop import ComponentMissing

OWNER = "edgewright"
STEADY = "initdb"  # the last program that a whole installation of a server has
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""What only a database that nobody needs after a crash may be told."""


@dataclass(frozen=True)
class PostgreSQL:
    """A server that runs.

    Args:
        folder: holds its data and its socket.
        programs: folder of ``psql``, ``initdb`` and the others.
        port: of the loopback address, and in the name of the socket.
        password: of ``OWNER``, who owns everything.
        server: its processes.
    """

    folder: Path
    programs: Path
    port: int
    password: str
    server: ServerProcess

    def socket_url(self, database: str) -> str:
        """The SQLAlchemy URL of a database, over the socket."""
        return f"postgresql+asyncpg://{OWNER}@/{database}?host={self.folder}&port={self.port}"

    def sql(self, statement: str, *, database: str = "postgres") -> str:
        """What psql prints for a statement: rows, their columns separated by ``|``."""
        options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
        where = [f"--host={self.folder}", f"--port={self.port}", f"--username={OWNER}", f"--dbname={database}"]
        done = subprocess.run(
            [str(self.programs / "psql"), *options, *where, "--command", statement],
            env=surroundings(self.programs),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def copy_database(self, template: str, name: str) -> None:
        """A new database with the content of another, which nobody may be connected to."""
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    def drop_database(self, name: str) -> None:
        """Also when somebody is still connected."""
        self.sql(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def postgresql_server(
    *, port: int | None = None, password: str | None = None, settings: dict[str, str] | None = None
) -> Iterator[PostgreSQL]:
    """Runs a server until the end of the context.

    Args:
        port: on the loopback address, with the password; None: the socket only, which needs none.
        settings: of the server, instead of those that make it fast and forgetful.

    Raises:
        ComponentMissing: there is no PostgreSQL to be had, or nobody whom it may run as.
    """
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="edgewright-pg-"))  # short: the name of a socket has 107 characters at most
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        programs = _programs(folder, copied=user is not None)
        password = password or secrets.token_hex(16)
        _initialise(folder, programs, user, password)
        options = {"listen_addresses": "127.0.0.1" if port else "", "unix_socket_directories": str(folder)}
        options |= FAST if settings is None else settings
        server = ServerProcess(folder, programs, port or 5432, options, run_as=_as(user))
        try:
            server.start()
            yield PostgreSQL(folder, programs, port or 5432, password, server)
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> pwd.struct_passwd | None:
    """Whom the server runs as; None: as us."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ComponentMissing("PostgreSQL does not run as root, and there is neither a user postgres nor nobody here.")


def _programs(folder: Path, *, copied: bool) -> Path:
    """The folder of the programs: those of this machine, else of Debian's packages.

    Args:
        copied: whether somebody else has to reach them; our cache may be out of his reach.
    """
    found = shutil.which("postgres")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for candidate in candidates:
        if (candidate / STEADY).is_file():
            return candidate
    tree = debian_tree("postgresql")
    if copied:
        tree = Path(shutil.copytree(tree, folder / "programs", symlinks=True))
    return max(tree.glob("usr/lib/postgresql/*/bin"))


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """Arguments that start a process as a user."""
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _initialise(folder: Path, programs: Path, user: pwd.struct_passwd | None, password: str) -> None:
    known = folder / "password"
    known.touch(mode=0o600)
    if user is not None:
        os.chown(known, user.pw_uid, user.pw_gid)
    known.write_text(password)
    arguments = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={known}", "--no-sync"]
    done = subprocess.run(
        [str(programs / STEADY), f"--pgdata={folder / 'data'}", f"--username={OWNER}", "--encoding=UTF8", *arguments],
        env=surroundings(programs),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **_as(user),
    )
    known.unlink()
    if done.returncode != 0:
        raise ComponentMissing(f"initdb failed:\n{done.stderr[-2000:]}")

"""Real databases for tests: PostgreSQL, PgBouncer before it, and MariaDB. On loopback, in a folder of their own.

    server = PostgreSQL(program); server.url; server.run("SELECT …"); server.kill(); server.restart()

They do not wait for the disk: what a crash of the machine would do is nothing that a test can see, and a crash of the
server loses nothing that was written. So they live in memory where there is enough of it; MariaDB on a slow disk stops
for a whole second now and then. All of them have the database `fairlock`, and the user
`app` (password `open-sesame`) may do everything there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from .server import SOON, Server

USER, PASSWORD, DATABASE = "app", "open-sesame", "fairlock"


def memory(wanted: int = 1 << 30) -> str | None:
    """Return a folder in memory if this number of bytes is free there."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return None
    return "/dev/shm" if found.f_bavail * found.f_frsize >= wanted and os.access("/dev/shm", os.W_OK) else None


class Database(Server):
    """Base of both. `run` executes statements of a test, as the operator."""

    home = memory()

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, program: str | Path, *options: str, folder: Path | None = None) -> None:
        self._operator: Any = None
        super().__init__(program, *options, folder=folder)
        self.prepare()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{USER}:{PASSWORD}@{self.address}/{DATABASE}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _start(self) -> bool:
        if not self.data.exists():
            self.make()
        limit = time.monotonic() + SOON
        while True:  # what a killed one leaves behind may hold its memory for a moment
            try:
                return super()._start()
            except AssertionError:
                if time.monotonic() > limit or not self.is_in_the_way():
                    raise
                time.sleep(0.05)

    def is_in_the_way(self) -> bool:
        return False

    def make(self) -> None:
        raise NotImplementedError

    def prepare(self) -> None:
        raise NotImplementedError

    def connect(self, database: str = DATABASE) -> Any:
        raise NotImplementedError

    def run(self, sql: str, *values: object) -> list[Any]:
        """The rows, if there are any."""
        if self._operator is None:
            self._operator = self.connect()
        try:
            cursor = self._operator.cursor()
            cursor.execute(sql, values or None)
            return list(cursor.fetchall()) if cursor.description else []
        except Exception:
            self.forget_operator()
            raise

    def forget_operator(self) -> None:
        operator, self._operator = self._operator, None
        if operator is not None:
            try:
                operator.close()
            except Exception:
                pass  # its server is gone

    def answers(self, within: float = 5.0) -> bool:
        try:
            self.connect("").close()
            return True
        except self.errors:
            return False

    def tables(self) -> list[str]:
        raise NotImplementedError

    def forget_everything(self) -> None:
        for table in self.tables():
            self.run(f"DELETE FROM {table}")

    def kill(self) -> None:
        self.forget_operator()
        super().kill()
        (self.folder / "socket").unlink(missing_ok=True)

    def end(self) -> None:
        self.forget_operator()
        super().end()


def nobody() -> int | None:
    """PostgreSQL does not run as root."""
    if os.geteuid():
        return None
    import pwd

    return pwd.getpwnam("nobody").pw_uid


class PostgreSQL(Database):
    scheme = "postgresql"

    def __init__(self, program: str | Path, *options: str) -> None:
        import psycopg

        self.errors = (psycopg.Error,)
        self.user = nobody()
        super().__init__(program, *options)

    def make(self) -> None:
        if self.user is not None:
            os.chown(self.folder, self.user, -1)
        initdb = [str(Path(self.program).with_name("initdb")), "-D", str(self.data), "-U", "operator"]
        done = subprocess.run(
            [*initdb, "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"],
            cwd=self.folder, user=self.user, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"initdb says: {done.stdout} {done.stderr}"
        rules = "local all operator trust\nhost all operator 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 md5\n"
        (self.data / "pg_hba.conf").write_text(rules)

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": str(self.folder),
            "fsync": "off", "full_page_writes": "off", "max_connections": "300",
            "shared_buffers": "16MB", "log_timezone": "GMT", "timezone": "GMT", "autovacuum": "off", "jit": "off",
            "password_encryption": "md5", "max_wal_senders": "0", "wal_level": "minimal",
            "dynamic_shared_memory_type": "mmap",  # a killed one leaves nothing where nobody looks
        }  # fmt: skip
        return [self.program, "-D", str(self.data), *(f"--{k}={v}" for k, v in settings.items()), *self.options]

    def connect(self, database: str = DATABASE) -> Any:
        import psycopg

        name = database or "postgres"
        # By its socket: no test that cuts connections by their address cuts this one.
        return psycopg.connect(
            host=str(self.folder), port=self.port, user="operator", dbname=name, autocommit=True, connect_timeout=5,
            prepare_threshold=None,
        )  # fmt: skip

    def prepare(self) -> None:
        with self.connect("") as operator:
            operator.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            operator.execute(f"CREATE DATABASE {DATABASE} OWNER {USER}")

    def tables(self) -> list[str]:
        found = self.run("SELECT tablename FROM pg_tables WHERE tablename LIKE 'fairlock%'")
        return [name for (name,) in found]

    def is_in_the_way(self) -> bool:
        return "shared memory" in self.said() or "is another postmaster" in self.said()

    def _signal(self, number: signal.Signals) -> None:
        """To all of its processes, each of which is a group of its own."""
        if self.alive:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            for pid in [self.pid, *map(int, children)]:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass  # a connection that has ended meanwhile


class PgBouncer(Server):
    """In transaction mode, with few connections to the server, so that clients do share them."""

    scheme = "postgresql"
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, program: str | Path, server: PostgreSQL, size: int = 8) -> None:
        import psycopg

        self.errors = (psycopg.Error,)
        self.user = nobody()
        self.server = server
        self.size = size
        super().__init__(program)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{USER}:{PASSWORD}@{self.address}/{DATABASE}"

    def _command(self) -> list[str]:
        where = f"host=127.0.0.1 port={self.server.port} dbname={DATABASE}"
        (self.folder / "ini").write_text(
            f"[databases]\n{DATABASE} = {where}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = md5\nauth_file = {self.folder}/users\npool_mode = transaction\n"
            f"default_pool_size = {self.size}\nmax_client_conn = 500\nserver_login_retry = 0.1\n"
            f"query_wait_timeout = 5\n"
        )
        (self.folder / "users").write_text(f'"{USER}" "{PASSWORD}"\n')
        if self.user is not None:
            os.chown(self.folder, self.user, -1)
        return [self.program, str(self.folder / "ini"), *self.options]

    def answers(self, within: float = 5.0) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
            return True
        except self.errors:
            return False

    def heal(self) -> None:
        self.server.heal()
        super().heal()

    def forget_everything(self) -> None:
        self.server.forget_everything()


class MariaDB(Database):
    scheme = "mariadb"

    def __init__(self, program: str | Path, *options: str) -> None:
        import pymysql

        self.errors = (pymysql.Error,)
        super().__init__(program, *options)

    @property
    def share(self) -> Path:
        beside = Path(self.program).parent / "share"
        return beside if beside.exists() else Path("/usr/share/mysql")

    def _basics(self) -> list[str]:
        as_root = [] if os.geteuid() else ["--user=root"]
        return [
            self.program, "--no-defaults", f"--datadir={self.data}", f"--tmpdir={self.folder}", *as_root,
            f"--lc-messages-dir={self.share}",
            f"--character-sets-dir={self.share}/charsets", "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--skip-log-bin", "--innodb-fast-shutdown=2",
        ]  # fmt: skip

    def make(self) -> None:
        self.data.mkdir()
        (self.data / "mysql").mkdir()
        names = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")
        texts = [(self.share / name).read_text() for name in names]
        begin = "USE mysql;\nSET @auth_root_socket=NULL;\n"
        done = subprocess.run(
            [*self._basics(), "--bootstrap", "--skip-networking"], input=begin + "\n".join(texts),
            cwd=self.folder, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"mariadbd --bootstrap says: {done.stderr[-1500:]}"

    def _command(self) -> list[str]:
        return [
            *self._basics(), "--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={self.folder}/socket",
            f"--log-error={self.log}", "--max-connections=300", "--skip-name-resolve", *self.options,
        ]  # fmt: skip

    def answers(self, within: float = 5.0) -> bool:
        return os.path.exists(f"{self.folder}/socket") and super().answers(within)

    def connect(self, database: str = DATABASE) -> Any:
        import pymysql

        return pymysql.connect(
            unix_socket=f"{self.folder}/socket", user="root", database=database or None, autocommit=True,
            connect_timeout=5, read_timeout=30,
        )  # fmt: skip

    def prepare(self) -> None:
        with self.connect("") as operator, operator.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
            cursor.execute(f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON {DATABASE}.* TO {USER}@'127.0.0.1'")

    def tables(self) -> list[str]:
        return [name for (name,) in self.run("SHOW TABLES LIKE 'fairlock%'")]

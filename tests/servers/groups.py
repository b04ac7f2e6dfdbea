"""Servers that belong together: a master with its replica, the same under three Sentinels, a Cluster of six.

Each shows the current roles, and `heal` undoes whatever a test has done to it: all run, all are connected,
and each master has its replica. That may leave the roles swapped, so read them again.
"""

from __future__ import annotations

from pathlib import Path

from .server import Server, free_port, until

QUICKLY = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--repl-backlog-size", "1mb")


class Group:
    """Base of all groups. `servers`: all of them, in the order of starting."""

    servers: list[Server]

    def forget_everything(self) -> None:
        raise NotImplementedError

    def ready(self) -> bool:
        raise NotImplementedError

    def heal(self) -> None:
        for server in self.servers:
            server.heal()
        until(self.ready, f"{self!r} is whole again", 40)

    def end(self) -> None:
        for server in reversed(self.servers):
            server.end()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.servers))})"


def replicas_of(server: Server) -> list[int]:
    """The ports of the replicas that are in step with this one."""
    info = server.info("replication")
    slaves = [info[f"slave{number}"] for number in range(int(info["connected_slaves"]))]
    return [slave["port"] for slave in slaves if slave["state"] == "online"]


class WithReplica(Group):
    """A master and a replica, tied by hand: no one is promoted."""

    def __init__(self, program: str | Path, *options: str) -> None:
        self.servers = []
        try:
            self.master = self._join(Server(program, *QUICKLY, *options))
            after = ("--replicaof", f"127.0.0.1 {self.master.port}")
            self.replica = self._join(Server(program, *QUICKLY, *options, *after))
            until(self.ready, "the replica is in step")
        except BaseException:
            self.end()
            raise

    def _join(self, server: Server) -> Server:
        self.servers.append(server)
        return server

    @property
    def url(self) -> str:
        return self.master.url

    def ready(self) -> bool:
        return replicas_of(self.master) == [self.replica.port]

    def forget_everything(self) -> None:
        self.master.forget_everything()


class Sentinel(Server):
    def __init__(self, program: str | Path, config: str) -> None:
        self._config = config
        super().__init__(program)

    def _command(self) -> list[str]:
        config = self.folder / "sentinel.conf"
        if not config.exists():  # it writes into it what it has learnt
            config.write_text(self._config)
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), "--logfile", str(self.log)]
        return [self.program, str(config), "--sentinel", *place]


class Sentinels(Group):
    """A master and a replica, watched by three Sentinels, which promote the replica a second after the master's end."""

    service = "fairlock-tests"

    def __init__(self, program: str | Path, *options: str) -> None:
        self.pair = WithReplica(program, *options)
        self.servers = self.pair.servers
        lines = (
            f"sentinel monitor {self.service} 127.0.0.1 {self.pair.master.port} 2",
            f"sentinel down-after-milliseconds {self.service} 1000",
            f"sentinel failover-timeout {self.service} 6000",
            f"sentinel parallel-syncs {self.service} 1",
        )
        self.sentinels: list[Sentinel] = []
        try:
            for _ in range(3):
                self.sentinels.append(Sentinel(program, "\n".join(lines) + "\n"))
                self.servers.append(self.sentinels[-1])
            until(self.ready, "the Sentinels know each other")
        except BaseException:
            self.end()
            raise

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(each.address for each in self.sentinels)}/{self.service}"

    @property
    def master(self) -> Server:
        """Return the master, as the first Sentinel that answers knows it."""
        sentinel = next(each for each in self.sentinels if each.alive and each.answers())
        _, port = sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service)
        return next(each for each in self.pair.servers if each.port == int(port))

    @property
    def masters(self) -> list[Server]:
        return [self.master]

    @property
    def replica(self) -> Server:
        master = self.master
        return next(each for each in self.pair.servers[:2] if each is not master)

    def failover(self) -> None:
        """Have the replica promoted, as an operator would, and wait until it is."""
        old = self.master
        self.sentinels[0].call("SENTINEL", "FAILOVER", self.service)
        until(lambda: self.master is not old, "the replica is promoted")

    def ready(self) -> bool:
        known = [_pairs(each.call("SENTINEL", "MASTER", self.service)) for each in self.sentinels]
        agreed = {(one["port"], one["flags"], one["num-other-sentinels"], one["num-slaves"]) for one in known}
        master = self.master
        if agreed != {(str(master.port), "master", "2", "1")}:
            return False
        replicas = [each.call("SENTINEL", "REPLICAS", self.service) for each in self.sentinels]
        seen = {_pairs(one)["flags"] for each in replicas for one in each}
        return seen == {"slave"} and replicas_of(master) == [self.replica.port]

    def heal(self) -> None:
        for server in self.servers:
            server.heal()
        # A master that was replaced while it was down comes back as a master, and the Sentinels take 10 s to notice.
        replica, master = self.replica, self.master
        if replica.info("replication")["role"] == "master":
            replica.call("REPLICAOF", "127.0.0.1", master.port)
        super().heal()

    def forget_everything(self) -> None:
        self.master.forget_everything()


def _pairs(found: list[str]) -> dict[str, str]:
    return dict(zip(found[::2], found[1::2], strict=True))


class Cluster(Group):
    """Three masters with a replica each, tied by hand in the time that a client program would need to start."""

    def __init__(self, program: str | Path, *options: str) -> None:
        self.servers = []
        common = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", *QUICKLY)
        try:
            for _ in range(6):  # 7.0 knows --cluster-port; by default it would lie 10,000 above, among the system's own
                bus = ("--cluster-port", str(free_port()))
                self.servers.append(Server(program, *common, *bus, *options))
            self._tie()
        except BaseException:
            self.end()
            raise

    def _tie(self) -> None:
        first, *others = self.servers
        for number, server in enumerate(self.servers):
            server.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server, slots in zip(self.servers, ((0, 5460), (5461, 10922), (10923, 16383)), strict=False):
            server.call("CLUSTER", "ADDSLOTSRANGE", *slots)
        for server in others:
            bus = server.options[server.options.index("--cluster-port") + 1]
            first.call("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
        until(lambda: all(len(_nodes(server)) == 6 for server in self.servers), "all six have met")
        for master, replica in zip(self.servers[:3], self.servers[3:], strict=True):
            name = master.call("CLUSTER", "MYID")
            until(lambda r=replica, n=name: r.call("CLUSTER", "REPLICATE", n), "a replica knows its master")
        until(self.ready, "the Cluster is whole")

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(server.address for server in self.servers)}"

    @property
    def masters(self) -> list[Server]:
        """Return the nodes that have slots, as the running nodes see themselves."""
        return [each for each in self.servers if each.alive and each.info("replication")["role"] == "master"]

    def owner_of(self, key: str) -> Server:
        """The master that has this key."""
        eye = next(each for each in self.servers if each.alive)
        slot = int(eye.call("CLUSTER", "KEYSLOT", key))
        for begin, end, (_, port, *_), *_ in eye.call("CLUSTER", "SLOTS"):
            if begin <= slot <= end:
                return self.on(port)
        raise AssertionError(f"nobody has slot {slot}")

    def replica_of(self, master: Server) -> Server:
        return self.on(replicas_of(master)[0])

    def on(self, port: int) -> Server:
        return next(each for each in self.servers if each.port == int(port))

    def ready(self) -> bool:
        for server in self.servers:
            nodes = _nodes(server)
            if len(nodes) != 6 or any("fail" in flags for flags in nodes.values()):
                return False
            if "cluster_state:ok" not in server.call("CLUSTER", "INFO"):
                return False
        masters = self.masters
        return len(masters) == 3 and all(len(replicas_of(master)) == 1 for master in masters)

    def forget_everything(self) -> None:
        for master in self.masters:
            master.forget_everything()


def _nodes(server: Server) -> dict[str, str]:
    """Return the nodes that this one knows, and their flags: 'master', 'slave,fail', …"""
    lines = [line.split() for line in server.call("CLUSTER", "NODES").splitlines()]
    return {words[0]: words[2] for words in lines if "handshake" not in words[2]}

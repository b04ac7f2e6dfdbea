"""Play a plan: start the workers, make the faults happen, end everything, and pass the history to the checks."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

from . import checks
from .holds import Event, read
from .leftovers import leftovers
from .observer import Observer
from .plan import JOBS, LEASE, Fault, Plan
from .referee import Referee
from .stores import Pair, Target, nothing

HERE = Path(__file__).parent
SOON = 30.0  # seconds for what takes a moment, on a busy machine
SMALL = 8192  # bytes: less than any log of SQLite that has been used
OUTCRY = ("Traceback", "never retrieved", "was destroyed but", "Exception ignored", "Exception in", "never awaited")


class Nemesis:
    def __init__(self, target: Target, plan: Plan, folder: Path, source: Path | None = None) -> None:
        """source: a folder with another fairlock than ours, for the workers."""
        self.target, self.plan, self.folder = target, plan, folder
        self.env = dict(os.environ)
        if source is not None:
            self.env["PYTHONPATH"] = f"{source}{os.pathsep}{self.env.get('PYTHONPATH', '')}"
        self.referee = Referee(folder)
        self.rng = Random(f"nemesis {plan.seed}")
        self.numbers = count()
        self.wrong: list[str] = []
        self.over = threading.Event()
        self.started: list[subprocess.Popen[str]] = []
        self.workers: list[subprocess.Popen[str]] = []
        self.commands: dict[int, subprocess.Popen[str]] = {}

    def play(self, until_wrong: bool = False) -> list[str]:
        """Run the plan and return what was wrong. until_wrong: end as soon as anything is."""
        runners = [threading.Thread(target=self.run_commands, args=(n,)) for n in range(self.target.commands)]
        observer = Observer(self.target.direct, self.referee, self.over)
        try:
            self.workers = [self.start(*who) for who in self.target.processes]
            for runner in runners:
                runner.start()
            self.wait(lambda: len(self.events("ready")) >= len(self.workers), "the workers are ready")
            observer.start()
            self.meddle(until_wrong)
            if not (until_wrong and self.found()):
                self.settle()
                self.stop(runners)
                self.look_back()
        finally:
            self.over.set()
            for process in self.started:
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stderr):
                    with suppress(OSError):  # an order that was never read
                        if pipe is not None:
                            pipe.close()
            for each in [observer, *runners]:
                each.join()
            self.referee.close()
        return self.found()

    def found(self) -> list[str]:
        return [*self.wrong, *checks.all_of(self.referee.seen(), self.target.commands == 0)]

    def events(self, what: str) -> list[Event]:
        return [event for event in self.referee.seen() if event["what"] == what]

    def wait(self, happens: Callable[[], object], what: str, seconds: float = SOON) -> bool:
        limit = time.monotonic() + seconds
        while not happens():
            if time.monotonic() > limit:
                self.wrong.append(f"it never came to this in {seconds:g} s: {what}")
                return False
            time.sleep(0.05)
        return True

    # -- the workers

    def start(self, threads: int, tasks: int) -> subprocess.Popen[str]:
        number = next(self.numbers)
        words = [self.target.url, self.referee.path, f"{self.plan.seed}/{number}", str(threads), str(tasks)]
        words += [str(self.target.long), *self.target.jobs]
        with open(self.folder / f"stderr-{number}", "w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore::DeprecationWarning", str(HERE / "worker.py"), *words],
                stdin=subprocess.PIPE, stderr=errors, env=self.env, text=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def run_commands(self, number: int) -> None:
        """One `fairlock run` after the other."""
        for turn in count():
            if self.over.is_set():
                return
            hold, seconds = f"run/{number}/{turn}", str(self.rng.choice(self.target.visits))
            tool = [sys.executable, "-m", "fairlock", "-u", self.target.url, "run", "--lease", f"{LEASE}s", "-w", "5s"]
            command = [sys.executable, "-S", str(HERE / "visitor.py"), self.referee.path, hold, seconds]
            process = subprocess.Popen(
                [*tool, "lock", "--", *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                env=self.env,
            )  # fmt: skip
            self.started.append(process)
            self.commands[number] = process
            facts = {"hold": hold, "pid": process.pid, "owner": "run", "weight": 1, "timeout": SOON, "queued": False}
            self.referee.note("asked", name="lock", **facts)
            text = process.communicate()[1]
            self.referee.note("exit", pid=process.pid, code=process.returncode, text=text[-500:])
            self.referee.note("ended", hold=hold, how="", pid=process.pid)
            time.sleep(0.2)

    def tell(self, process: subprocess.Popen[str], order: str) -> None:
        assert process.stdin is not None
        with suppress(OSError):  # it was killed in the meantime
            process.stdin.write(f"{order}\n")
            process.stdin.flush()

    # -- the faults

    def meddle(self, until_wrong: bool) -> None:
        begun = time.monotonic()
        doings: list[tuple[float, bool, Callable[[], object]]] = []
        for number, fault in enumerate(self.plan.faults):
            begin, end = self.pair(number, fault)
            doings += [(fault.at, False, begin), (fault.end, True, end)]
        doings.append((self.plan.seconds, True, nothing))
        enough = False
        for at, ends, do in sorted(doings, key=lambda doing: doing[0]):
            while not enough and (rest := begun + at - time.monotonic()) > 0:
                time.sleep(min(rest, 0.5))
                enough = until_wrong and bool(self.found())
            if ends or not enough:
                do()

    def pair(self, number: int, fault: Fault) -> Pair:
        """How it begins and ends, both written down."""
        undo: list[Callable[[], object]] = []

        def begin() -> None:
            event = self.referee.note("fault", number=number, kind=fault.kind, pid=None)
            if fault.kind in self.target.faults:
                start, stop = self.target.faults[fault.kind]
                undo.append(stop)
                start()
            else:
                event["pid"], stop = self.meet(fault)
                undo.append(stop)

        def end() -> None:
            for stop in undo:
                stop()
                self.referee.note("healed", number=number, kind=fault.kind)

        return begin, end

    def meet(self, fault: Fault) -> tuple[int | None, Callable[[], object]]:
        """A fault of a process: which one, None if it meets all, and how it ends."""
        processes = [*self.workers, *self.commands.values()]
        place = fault.victim % len(processes)
        if fault.kind == "pause":
            place = self.holder(processes, place)
        worker, process = place < len(self.workers), processes[place]
        if fault.kind == "pause":
            process.send_signal(signal.SIGSTOP)
            return process.pid, lambda: process.send_signal(signal.SIGCONT)
        if fault.kind == "interrupt":
            if not worker or any(event["pid"] == process.pid for event in self.events("ready")):
                process.send_signal(signal.SIGINT)
        elif fault.kind == "kill":
            self.referee.note("killed", pid=process.pid)
            process.kill()
            if worker:
                self.workers[place] = self.start(*self.target.processes[place])
        elif fault.kind in ("evict", "evict at once"):
            for each in self.workers:
                self.tell(each, f"{fault.kind.replace(' ', '_')} {self.rng.choice(('lock', 'handoff', 'rw'))}")
            return None, nothing
        elif fault.kind == "file limit":
            self.limit_files(process, SMALL)
            return process.pid, lambda: self.limit_files(process)
        elif fault.kind == "resize":
            self.tell(self.workers[0], f"resize {self.rng.choice((1, 2, 3))}")
        elif worker:
            self.tell(process, fault.kind)
        return process.pid, nothing

    @staticmethod
    def limit_files(process: subprocess.Popen[str], size: int | None = None) -> None:
        """From here on no file of this process may grow beyond this size: what a quota does to it."""
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        with suppress(ProcessLookupError):  # it was killed in the meantime
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most if size is None else size, most))

    def holder(self, processes: list[subprocess.Popen[str]], otherwise: int) -> int:
        """Which of these holds a lock at this moment: nobody else is worth a pause."""
        holds = read(self.referee.seen())
        holders = [hold.pid for hold in holds if hold.holders and hold.how is None and hold.weight == 1]
        found = [place for place, process in enumerate(processes) if process.pid in holders[-1:]]
        return found[0] if found else otherwise

    # -- the end

    def settle(self) -> None:
        """With all faults over, every name is acquired again."""
        healed = self.referee.note("all healed")["at"]

        def again(name: str) -> bool:
            return any(e["at"] > healed and e["name"].partition("/")[0] == name for e in self.events("in"))

        for name in {name for job in self.target.jobs for name in JOBS[job]}:
            self.wait(lambda name=name: again(name), f"{name} is acquired again")  # type: ignore[misc]

    def stop(self, runners: list[threading.Thread]) -> None:
        self.over.set()
        for process in self.workers:
            self.tell(process, "stop")
        limit = time.monotonic() + SOON
        for number, process in enumerate(self.workers):
            try:
                process.wait(max(limit - time.monotonic(), 0.1))
                if process.returncode:
                    self.wrong.append(f"worker {number} (pid {process.pid}) ended with {process.returncode}")
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGUSR1)  # it prints where its threads are
                time.sleep(0.5)
                self.wrong.append(f"worker {number} (pid {process.pid}) does not end")
        for runner in runners:
            runner.join(SOON)
        self.referee.note("stopped")

    def look_back(self) -> None:
        """Check what the processes printed and what is left in the store."""
        for path in sorted(self.folder.glob("stderr-*")):
            text = path.read_text()
            if any(word in text for word in OUTCRY) or "File " in text:
                self.wrong.append(f"{path.name}: {text[-3000:]}")
        done = {event["key"]: event["fence"] for event in self.events("done")}
        if any(event["kind"] == "delete" for event in self.events("fault")):
            done = {}
        if self.target.commands:
            gone = {owner for event in self.events("bye") for owner in event["owners"]}
            self.wrong += leftovers(self.target.direct, gone, done, checks.longest())
        else:
            self.wrong += [text for event in self.events("left") for text in event["left"]]

    def story(self) -> str:
        """The plan and the end of the history, for people."""
        events = self.referee.seen()
        first = events[0]["at"] if events else 0.0
        queues = []
        for event in events:
            facts = " ".join(f"{k}={v}" for k, v in event.items() if k not in ("what", "at"))
            queues.append(f"{event['at'] - first:8.3f} {event['what']} {facts}")
        (self.folder / "history").write_text("\n".join(queues))
        return f"{self.plan}\nthe whole history: {self.folder}/history; its end:\n" + "\n".join(queues[-150:])

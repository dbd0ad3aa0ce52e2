"""What clients were told, held against each other and against history.

The queue is checked as a whole (Jepsen's total queue): what was acknowledged is there
after the drain, and nothing else is. Beyond that no job comes back after its ack, no
lease is settled twice, no write of a replaced owner counts, and no read that began after
an acknowledged change misses it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

from headway.core import events
from headway.core.states import JobState
from tests.cluster.chaos.history import Told
from tests.cluster.chaos.records import Op
from tests.endtoend.told import seq_of, token_of

NEVER_S = float("inf")
KINDS = ("lost", "unexpected", "again", "stale write", "stale read", "strange")
ENDS: Mapping[str, type] = {
    "ack": events.Acked,
    "release": events.Released,
    "nack": events.Retried,
}
KEPT = "kept-"
"""How the names of queues begin that nobody works on before the faults are over."""
DRAIN = "drain"
_REFUSALS = {"enqueue": (), "lease": (), "ack": (), "count": ("unknown_queue",)}
"""What may be answered by a 4xx, where nothing is wrong with what was asked."""
_LIVE = ("ready", "scheduled", "leased", "waiting")


class Checker:
    """Goes through all records; what is wrong is kept by its kind."""

    def __init__(self, ops: Iterable[Op], told: Mapping[str, Told]) -> None:
        self.ops = sorted(ops, key=lambda op: op.began_s)
        self.told = told
        self.faults: list[tuple[str, str]] = []
        self.figures: Counter[str] = Counter()
        self._ids: dict[int, str] = {}
        """The job of each number that was accepted."""
        self._accepted_s: dict[str, float] = {}
        """When it was first known of a job that it is there."""
        self._acked_s: dict[str, float] = {}
        """When it was first known of a job that it is done."""
        drains = [op.began_s for op in self.ops if op.verb == DRAIN]
        self._drained_s = min(drains, default=NEVER_S)
        """From when on the queues were worked on that were kept before."""

    def check(self) -> list[str]:
        self._enqueued()
        self._settled()
        self._delivered()
        self._histories()
        self._counted()
        self._shown()
        self._strange()
        return [f"{kind}: {text}" for kind, text in self.faults]

    def kinds(self) -> dict[str, int]:
        """How many faults of each kind there are."""
        found = Counter(kind for kind, _ in self.faults)
        return {kind: found[kind] for kind in KINDS}

    def _fault(self, kind: str, text: str) -> None:
        self.faults.append((kind, text))

    def _of(self, verb: str, outcome: str = "ok") -> Iterable[Op]:
        return (op for op in self.ops if op.verb == verb and op.outcome == outcome)

    def _enqueued(self) -> None:
        for op in self._of("enqueue"):
            for number, job in zip(op.numbers, op.ids, strict=True):
                known = self._ids.setdefault(number, job)
                if known != job:
                    text = f"{number} is {known}, and {job}"
                    self._fault("unexpected", text)
                before_s = self._accepted_s.get(job, op.ended_s)
                self._accepted_s[job] = min(before_s, op.ended_s)
        self.figures["jobs accepted"] = len(self._ids)
        tried = {number for op in self.ops for number in op.numbers}
        self.figures["jobs tried"] = len(tried)

    def _settled(self) -> None:
        """Each token is settled once, by whoever was told so."""
        settled: dict[str, str] = {}
        jobs = self._jobs()
        for op in self.ops:
            if op.verb not in ENDS or op.outcome != "ok":
                continue
            stale = set(op.stale)
            self.figures["stale settlements refused"] += len(stale)
            for token in op.tokens:
                if token in stale:
                    continue
                if token in settled:
                    text = f"{token} was settled by {settled[token]}, then by {op}"
                    self._fault("stale write", text)
                settled[token] = f"{op.client} ({op.verb}, {op.ended_s:.3f})"
                if op.verb == "ack" and token in jobs:
                    self._acked_s.setdefault(jobs[token], op.ended_s)
                self._is_settled(token, op.verb)

    def _jobs(self) -> dict[str, str]:
        """The job of each token."""
        return {given.token: given.id for op in self._of("lease") for given in op.jobs}

    def _is_settled(self, token: str, verb: str) -> None:
        """History must say so, too."""
        told = self.told.get(_partition(token))
        if told is None:
            self._fault("lost", f"{verb} of {token}: nobody knows the partition")
            return
        ended = told.account.ended.get(token_of(token))
        if ended is not ENDS[verb] and ended is not events.Buried:
            self._fault("lost", f"{verb} of {token} was answered; history: {ended}")

    def _delivered(self) -> None:
        """Lost, unexpected, and what came back after its ack."""
        tried = {number for op in self.ops for number in op.numbers}
        given: Counter[str] = Counter()
        seen: set[int] = set()
        for op in self._of("lease"):
            for job in op.jobs:
                given[job.id] += 1
                seen.add(job.number)
                if job.number not in tried:
                    self._fault("unexpected", f"{job} was enqueued by nobody")
                elif self._ids.setdefault(job.number, job.id) != job.id:
                    text = f"{job.id} came with {job.number} of {self._ids[job.number]}"
                    self._fault("unexpected", text)
                if op.began_s > self._acked_s.get(job.id, NEVER_S):
                    self._fault("again", f"{job} came to {op.client} after its ack")
        accepted = {number for op in self._of("enqueue") for number in op.numbers}
        for number in sorted(accepted - seen):
            self._fault(
                "lost", f"{number}, accepted as {self._ids[number]}, never came"
            )
        self.figures["jobs recovered"] = len(seen - accepted)
        self.figures["deliveries"] = given.total()
        self.figures["deliveries more than once"] = given.total() - len(given)

    def _histories(self) -> None:
        """What was answered is there, and every job has come to its end."""
        for told in self.told.values():
            for fault in told.faults:
                self._fault("stale write", fault)
            for seq in told.account.open_jobs():
                text = f"{told.partition}_{seq} is {told.state(seq)} after the drain"
                self._fault("lost", text)
            self.figures["events in history"] += told.events
            self.figures["owners in history"] += len(told.epochs)
        known = set(self._ids.values())
        for job in known:
            told_of = self.told.get(_partition(job))
            state = None if told_of is None else told_of.state(seq_of(job))
            if state is not JobState.DONE:
                self._fault("lost", f"{job} was accepted, and is {state}")
        for told in self.told.values():
            for seq in told.account.records:
                if f"{told.partition}_{seq}" not in known:
                    text = f"{told.partition}_{seq} is in history only"
                    self._fault("unexpected", text)
        for op in self._of("lease"):
            for given in op.jobs:
                told_of = self.told.get(_partition(given.id))
                token = token_of(given.token)
                leased = told_of and told_of.leases.get(token)
                if leased != seq_of(given.id):
                    self._fault("stale write", f"{given}: history gave it {leased}")

    def _counted(self) -> None:
        """A count shows what was accepted before it began, and no more than was tried."""
        done: dict[str, list[float]] = {}
        tried: dict[str, list[float]] = {}
        for job, at_s in self._accepted_s.items():
            queue = self._queue(job)
            done.setdefault(queue, []).append(at_s)
        first: dict[int, tuple[float, str]] = {}
        for op in self.ops:
            if op.verb == "enqueue":
                for number in op.numbers:
                    first.setdefault(number, (op.began_s, op.queue))
        for began_s, queue in first.values():
            tried.setdefault(queue, []).append(began_s)
        for times in (*done.values(), *tried.values()):
            times.sort()
        for op in self.ops:
            is_told = op.outcome == "ok" or op.code == "unknown_queue"
            if op.verb != "count" or not is_told or not self._is_kept(op.queue, op):
                continue
            count = max(op.count, 0)
            least = bisect_left(done.get(op.queue, []), op.began_s)
            most = bisect_left(tried.get(op.queue, []), op.ended_s)
            self.figures["counts checked"] += 1
            if not least <= count <= most:
                text = f"{op.queue} has {count}, not {least} to {most}: {op}"
                self._fault("stale read", text)

    def _queue(self, job: str) -> str:
        told = self.told.get(_partition(job))
        record = told and told.account.records.get(seq_of(job))
        return record.queue if record else ""

    def _is_kept(self, queue: str, op: Op) -> bool:
        """Whether nobody may have worked on the queue before the answer was there."""
        return queue.startswith(KEPT) and op.ended_s < self._drained_s

    def _shown(self) -> None:
        """A job that is there is shown, and one that is done does not live."""
        for op in self.ops:
            if op.verb != "show" or (op.outcome != "ok" and op.code != "unknown_job"):
                continue
            (job,) = op.ids
            self.figures["jobs looked at"] += 1
            is_done = op.began_s > self._acked_s.get(job, NEVER_S)
            is_there = op.began_s > self._accepted_s.get(job, NEVER_S)
            if is_done and op.state in _LIVE:
                self._fault(
                    "stale read", f"{job} is done, and shown as {op.state}: {op}"
                )
            elif (
                is_there and self._is_kept(self._queue(job), op) and op.state != "ready"
            ):
                self._fault("stale read", f"{job} is ready, and shown as {op}")

    def _strange(self) -> None:
        """Answers that nothing explains."""
        for op in self.ops:
            if op.code == "internal":
                self._fault("strange", f"a bug: {op}")
            elif op.outcome == "fail" and op.verb in _REFUSALS:
                is_cut = op.code.endswith(("Error", "Refused", "timeout"))
                is_known = op.code in ("busy", *_REFUSALS[op.verb])
                if not is_cut and not is_known:
                    self._fault("strange", f"refused: {op}")


def _partition(text: str) -> str:
    """Of a job's identity, or a token."""
    return text.partition(".")[0].rpartition("_")[0]

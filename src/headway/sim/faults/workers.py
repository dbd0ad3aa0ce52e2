"""Who takes work out: workers that ack, fail, wait, dawdle and die."""

from functools import partial
from random import Random
from typing import Any

from headway.core.commands import (
    Ack,
    Extend,
    Lease,
    Nack,
    Release,
    Settled,
    Wait,
)
from headway.runtime.owner import Ask
from headway.runtime.views import Handed, LeasedJob
from headway.sim.faults.producers import Replier
from headway.sim.faults.stage import Stage

RESTS_MS = 15_000
"""After a death its place is empty for so long at most."""


class Worker:
    """Asks for jobs, and does with each what the seed's rates say."""

    def __init__(self, stage: Stage, name: str, replier: Replier) -> None:
        self._stage = stage
        self._name = name
        self._replier = replier
        self._chance: Random = stage.chance(name)
        self._round = 0

    def poll(self) -> None:
        """Long polls: with a wait that the owner holds open."""
        chance = self._chance
        self._round += 1
        wait_ms = chance.choice([0, 3_000, 6_000])
        queues = None
        if chance.random() < 0.4:
            queues = (chance.choice(self._stage.configs).name,)
        most = 10 if self._stage.is_healed else chance.choice([1, 1, 2, 5])
        lease_ms = chance.choice([None, None, 3_000, 12_000])
        if self._stage.is_healed:
            queues, lease_ms = None, None
        command = Lease(self._name, queues, most, lease_ms, wait_ms=wait_ms)
        self._stage.counts["polls"] += 1
        again = partial(self._again, self._round)
        self._stage.network.ask(command, self._heard, again, wait_ms + 2_000)

    def _again(self, number: int) -> None:
        if number == self._round:
            self.poll()

    def _heard(self, reply: Any) -> None:
        """An answer may come after its round was given up; its jobs are worked on."""
        jobs = reply.jobs if isinstance(reply, Handed) else []
        end_ms = self._chance.randrange(20, 1_000)
        for job in jobs:
            self._stage.panel.delivered(job)
            self._stage.counts["deliveries"] += 1
            end_ms = max(end_ms, self._work(job))
        self._stage.agenda.after(end_ms, partial(self._again, self._round))

    def _work(self, job: LeasedJob) -> int:
        """Answers how long the worker is busy with the job."""
        chance, rates = self._chance, self._stage.rates
        run_ms = chance.randrange(10, 1_500)
        if self._stage.is_healed or rates.is_calm:
            self._stage.agenda.after(run_ms, partial(self._ack, job))
            return run_ms
        if chance.random() < rates.dies:
            self._stage.counts["dead workers"] += 1
            return run_ms + chance.randrange(RESTS_MS)
        if chance.random() < rates.slow:
            self._stage.counts["slow workers"] += 1
            run_ms += 14_000
        if chance.random() < rates.extends:
            command = Extend([job.token], chance.choice([2_000, 8_000]))
            self._stage.agenda.after(run_ms // 2, partial(self._say, command))
        self._stage.agenda.after(run_ms, partial(self._end, job))
        return run_ms

    def _end(self, job: LeasedJob) -> None:
        chance, rates = self._chance, self._stage.rates
        draw = chance.random()
        if draw < rates.fails:
            self._fail(job)
        elif draw < rates.fails + rates.releases:
            self._say(Release([job.token]))
        elif chance.random() < rates.waits:
            self._wait(job)
        else:
            self._ack(job)

    def _ack(self, job: LeasedJob, tries: int = 3) -> None:
        command = Ack([job.token])
        heard = partial(self._acked, job)
        self._stage.counts["acks"] += 1
        silent = partial(self._ack, job, tries - 1) if tries > 1 else None
        self._stage.network.ask(command, heard, silent)

    def _acked(self, job: LeasedJob, reply: Any) -> None:
        if isinstance(reply, Settled) and not reply.stale:
            self._stage.panel.total.acked(job.seq, job.token)

    def _fail(self, job: LeasedJob) -> None:
        chance = self._chance
        payload = None
        if chance.random() < 0.2:
            payload = b"%d'" % job.seq
            self._stage.panel.total.changes(job.seq, payload)
        delay_ms = chance.choice([None, None, 0, 4_000])
        is_bury = chance.random() < 0.1
        self._say(Nack(job.token, "no luck", delay_ms, is_bury, payload))

    def _wait(self, job: LeasedJob) -> None:
        chance, replier = self._chance, self._replier
        key = replier.key()
        timeout_ms = chance.choice([2_000, 10_000])
        command = Wait(job.token, key, timeout_ms, chance.random() < 0.4)
        if replier.is_early():
            replier.send(job.queue, key)
            delay_ms = chance.choice([10, 1_000, 5_000])
            self._stage.agenda.after(delay_ms, partial(self._say, command))
            return
        self._say(command)
        replier.answer(job.queue, key, timeout_ms)

    def _say(self, command: Ask, tries: int = 2) -> None:
        """Said again if nobody answers: a stale token changes nothing."""
        self._stage.counts["words"] += 1
        silent = partial(self._say, command, tries - 1) if tries > 1 else None
        self._stage.network.ask(command, _ignore, silent)


def _ignore(reply: Any) -> None:
    """A refusal means that somebody else has the job: nothing is left to do."""

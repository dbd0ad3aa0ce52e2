"""The end of every story: all rules are lifted, and all that is open is worked off."""

import msgspec

from headway.core.commands import (
    Ack,
    Configure,
    DropSchedule,
    Hold,
    Lease,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.states import JobState
from tests.core.fuzz import Fuzz
from tests.core.fuzz_rules import KINDS, QUEUES, TENANTS, config_of


def probe(fuzz: Fuzz) -> None:
    """A worker that would take everything: whatever could start must have started."""
    fuzz.send(Lease("probe", None, 1_000, None, fuzz.now_ms + 1))
    fuzz.pass_ms(1)


def drain(fuzz: Fuzz) -> None:
    """Lifts every rule and works until nothing is open (invariants 1, 2 and 29)."""
    probe(fuzz)
    for name in QUEUES:
        plain = msgspec.structs.replace(config_of(name, 0), attempts_max=3)
        fuzz.send(Configure(plain))
        for hold in Hold:
            fuzz.send(SetHold(name, hold, is_on=False))
        for tenant in TENANTS:
            fuzz.send(SetTenant(name, tenant, is_paused=False, cap=-1))
        for kind in KINDS:
            fuzz.send(SetKind(name, kind, is_paused=False, cap=-1))
    for schedule in ("one", "two"):
        fuzz.send(DropSchedule("plain", schedule))
    for _ in range(60):
        if not fuzz.history.open_jobs():
            break
        fuzz.send(Lease("drain", None, 1_000))
        fuzz.send(Ack(list(fuzz.book.leases)))
        next_ms = fuzz.partition.next_ms()
        fuzz.pass_ms(max(1_000, 0 if next_ms is None else next_ms - fuzz.now_ms))
    assert fuzz.history.open_jobs() == [], "invariants 1 and 29"
    jobs = fuzz.all_jobs()
    dead = {seq for seq, job in jobs.items() if job.state is JobState.DEAD}
    assert set(jobs) == dead

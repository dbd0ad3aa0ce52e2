"""Schedules at work: each tick enqueues at most one job."""

from headway.core import events, intake
from headway.core.book import Book, Cron
from headway.core.commands import Changed, DropSchedule, Enqueue, FactKind, PutSchedule
from headway.core.cron import next_tick_ms, ticks_due
from headway.core.errors import RuleBroken


def put(book: Book, command: PutSchedule, now_ms: int) -> Changed:
    """New or changed: ticks count from now, or on from the last one dealt with."""
    schedule = command.schedule
    queue = book.queue(schedule.queue)
    key = (queue.name, schedule.name)
    old = book.crons.get(key)
    if old is not None and old.next_ms is not None:
        book.timers.remove(old, old.next_ms, old.timer_place)
    cron = Cron(schedule, now_ms if old is None else old.last_ms)
    book.crons[key] = cron
    if old is not None and old.schedule.is_paused:
        # Ticks that fell into the pause were not missed.
        cron.last_ms = now_ms
    arm(book, cron, now_ms)
    book.know(FactKind.SCHEDULE, *key)
    changed = events.RuleChanged(now_ms, queue.name, f"schedule {schedule.name}")
    book.decision.events.append(changed)
    return Changed(1)


def drop(book: Book, command: DropSchedule, now_ms: int) -> Changed:
    cron = book.crons.pop((command.queue, command.name), None)
    if cron is None:
        return Changed(0)
    if cron.next_ms is not None:
        book.timers.remove(cron, cron.next_ms, cron.timer_place)
    book.know(FactKind.SCHEDULE, command.queue, command.name)
    what = f"schedule {command.name} dropped"
    book.decision.events.append(events.RuleChanged(now_ms, command.queue, what))
    return Changed(1)


def on_timer(book: Book, cron: Cron, now_ms: int) -> None:
    """A tick has come, or several were missed: by the schedule's policy."""
    cron.next_ms = None
    schedule = cron.schedule
    ticks = ticks_due(schedule, cron.last_ms, now_ms)
    for tick_ms in ticks:
        _enqueue(book, cron, tick_ms, now_ms)
    # What the policy left out is dealt with, too, unless more is still to come.
    is_more = ticks and next_tick_ms(schedule, ticks[-1]) is not None
    cron.last_ms = ticks[-1] if is_more else now_ms
    book.know(FactKind.SCHEDULE, schedule.queue, schedule.name)
    arm(book, cron, now_ms)


def _enqueue(book: Book, cron: Cron, tick_ms: int, now_ms: int) -> None:
    schedule = cron.schedule
    seq = 0
    try:
        accepted = intake.enqueue(
            book, Enqueue(schedule.queue, [schedule.spec]), now_ms
        )
        seq = accepted.seqs[0]
    except RuleBroken:
        # A full queue skips the tick: history says so, and the next one comes.
        seq = 0
    ticked = events.Ticked(now_ms, schedule.queue, schedule.name, tick_ms, seq)
    book.decision.events.append(ticked)


def arm(book: Book, cron: Cron, now_ms: int) -> None:
    """Sets the timer of the schedule's next tick."""
    cron.next_ms = None
    if cron.schedule.is_paused:
        return
    next_ms = next_tick_ms(cron.schedule, cron.last_ms)
    if next_ms is not None:
        cron.next_ms = max(next_ms, now_ms)
        cron.timer_place = book.timers.add(cron, cron.next_ms)

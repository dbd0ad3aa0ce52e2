"""What the killed processes have said, and what can't be true of it.

The total-queue checker: of all that was accepted nothing is lost, nothing is delivered
that nobody has attempted to enqueue, and what was acknowledged does not come again.
"""

from dataclasses import dataclass, field

from tests.faults.crash.jobs import LONG_MS, is_keyed

ENDING = ("ack", "nack", "release", "wait")


@dataclass
class Held:
    """A lease, as far as it is known."""

    seq: int
    token: int
    started_ms: int
    until_ms: int
    """It ends then at the earliest."""
    is_long: bool
    tries: int = 0
    """Attempts to end it, whatever came of them."""
    reply_key: str = ""


@dataclass
class Account:
    """Lines come in; faults come out."""

    faults: list[str] = field(default_factory=list)
    attempted: set[str] = field(default_factory=set)
    accepted: dict[str, int] = field(default_factory=dict)
    """The seq of each name that was accepted or delivered."""
    acknowledged: set[str] = field(default_factory=set)
    """Names whose enqueue was answered."""
    delivered: set[str] = field(default_factory=set)
    recovered: set[str] = field(default_factory=set)
    """Nobody knew whether they were accepted, and they were."""
    done: dict[int, int] = field(default_factory=dict)
    """Tokens of acknowledged acks, by job."""
    redelivered: int = 0
    life: int = 0
    _names: dict[int, str] = field(default_factory=dict)
    _held: dict[int, Held] = field(default_factory=dict)
    _newest: dict[int, Held] = field(default_factory=dict)
    """The newest lease of each job."""
    _trying: dict[str, list[str]] = field(default_factory=dict)
    _cancels: dict[int, int | None] = field(default_factory=dict)
    """Jobs that somebody tried to cancel, and the life in which it was answered."""
    _answered: dict[str, int] = field(default_factory=dict)
    """How often a reply key was told that its reply counts."""
    _replied: set[str] = field(default_factory=set)

    def hear(self, line: str) -> None:
        """A line of the process that lives now."""
        thread, act, verb, *words = line.split(" ")
        if act == "try":
            self._trying[thread] = [verb, *words]
            self._try(verb, words)
        elif act == "ok" and self._trying.get(thread, [""])[0] == verb:
            tried = self._trying.pop(thread)[1:]
            self._settle(verb, tried, words)
        else:
            self.faults.append(f"not understood: {line}")

    def end_life(self) -> None:
        """Killed: what it tried last may have happened, or not."""
        self._trying.clear()
        self.life += 1

    def unknown_keyed(self) -> list[str]:
        """Jobs with a key that nobody has heard of since: to be enqueued again."""
        unheard = self.attempted - self.accepted.keys()
        return sorted(name for name in unheard if is_keyed(name))

    def long_held(self) -> list[int]:
        """Tokens that must still be valid: long leases that nobody tried to end."""
        leases = self._newest.values()
        return [held.token for held in leases if held.is_long and not held.tries]

    def deliver(self, held: Held, name: str) -> None:
        """A job is in somebody's hands."""
        seq = held.seq
        if name not in self.attempted:
            self.faults.append(f"unexpected: job {seq} is {name!r}")
        if name not in self.acknowledged and name not in self.delivered:
            self.recovered.add(name)
        self._know(name, seq)
        self.delivered.add(name)
        if self.done.get(seq, held.token) < held.token:
            self.faults.append(f"job {seq} was done and is delivered again")
        cancelled = self._cancels.get(seq)
        if cancelled is not None and cancelled < self.life:
            self.faults.append(f"job {seq} was cancelled and is delivered again")
        before = self._newest.get(seq)
        if before is not None and before.token < held.token:
            self.redelivered += 1
            self._follow(before, held)
        if before is None or before.token < held.token:
            self._newest[seq] = held
        self._held[held.token] = held

    def check_drained(self) -> None:
        """After everything that was left has been delivered."""
        gone = {self._names[seq] for seq in self._cancels if seq in self._names}
        for name in sorted(self.acknowledged - self.delivered - gone):
            self.faults.append(f"lost: {name!r}, job {self.accepted[name]}")

    def _follow(self, before: Held, held: Held) -> None:
        """A job is redelivered when its lease is over, and not before."""
        told = f"job {held.seq}, leased until {before.until_ms}"
        if not before.tries and held.started_ms < before.until_ms:
            self.faults.append(f"{told}, was delivered again at {held.started_ms}")
        is_early = held.started_ms < before.started_ms + LONG_MS
        if before.reply_key and before.reply_key not in self._replied and is_early:
            self.faults.append(f"{told}, goes on without its reply")

    def _try(self, verb: str, words: list[str]) -> None:
        if verb == "enqueue":
            twice = [name for name in words if name in self.attempted]
            if any(not is_keyed(name) for name in twice):
                self.faults.append(f"the test itself: {twice} were tried before")
            self.attempted.update(words)
        elif verb == "reply":
            self._replied.add(words[0])
        elif verb == "cancel":
            self._cancels.setdefault(int(words[0]), None)
        elif verb in ENDING:
            for token in _tokens(words):
                self._held[token].tries += 1

    def _settle(self, verb: str, tried: list[str], words: list[str]) -> None:
        if verb == "enqueue":
            for name, seq in zip(tried, words, strict=True):
                self._know(name, int(seq))
                self.acknowledged.add(name)
        elif verb == "lease":
            for word in words[1:]:
                self._leased(int(words[0]), word.split(":"))
        elif verb in (*ENDING, "extend"):
            self._ended(verb, tried, {int(word) for word in words})
        elif verb == "cancel" and words == ["1"]:
            self._cancels[int(tried[0])] = self.life
        elif verb == "reply" and words[0] in ("resolved", "early"):
            self._answered[tried[0]] = self._answered.get(tried[0], 0) + 1
            if self._answered[tried[0]] > 1:
                self.faults.append(f"{tried[0]} was answered twice")

    def _leased(self, lease_ms: int, parts: list[str]) -> None:
        seq, token, until_ms = map(int, parts[:3])
        started_ms = until_ms - lease_ms
        held = Held(seq, token, started_ms, until_ms, lease_ms == LONG_MS)
        self.deliver(held, parts[3])

    def _ended(self, verb: str, tried: list[str], stale: set[int]) -> None:
        for token in _tokens(tried):
            held = self._held[token]
            if token in stale:
                if held.is_long and held.tries == (verb in ENDING):
                    self.faults.append(f"{verb}: lease {token} was lost before its end")
            elif verb == "ack":
                self.done[held.seq] = token
            elif verb == "extend":
                held.is_long = True
                held.until_ms = max(held.until_ms, held.started_ms + LONG_MS)
            elif verb == "wait":
                held.reply_key = tried[1]

    def _know(self, name: str, seq: int) -> None:
        if self.accepted.setdefault(name, seq) != seq:
            self.faults.append(f"{name!r} is job {self.accepted[name]} and job {seq}")
        if self._names.setdefault(seq, name) != name:
            self.faults.append(f"job {seq} is {self._names[seq]!r} and {name!r}")


def _tokens(words: list[str]) -> list[int]:
    return [int(word) for word in words if word.isdigit()]

"""The process that is killed: mixed load from several threads on one file.

Every attempt is told before it is made, every outcome after it is known, one line each,
in order. It ends only by being killed, or by telling what it did not expect.
"""

import json
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final, TypedDict

import headway
from tests.faults.crash import jobs

PRODUCERS: Final = 2
WORKERS: Final = 3


class Told(TypedDict):
    """What earlier lives have left to be done."""

    seed: int
    leases_ms: list[int]
    """How long leases are; one is drawn for each."""
    again: list[str]
    """Jobs with a key of which nobody knows whether they were accepted."""
    held: list[int]
    """Tokens of leases that nobody has ended."""


class Hand:
    """One thread: what it tries, and what comes of it."""

    def __init__(
        self,
        queue: headway.Headway,
        told: Told,
        name: str,
        replies: deque[list[str]],
        say: Callable[[str], object],
    ) -> None:
        self.queue = queue
        self.told = told
        self.name = name
        self.chance = Random(f"{told['seed']} {name}")
        self.replies = replies
        """Reply keys that somebody waits for, with their queues."""
        self._say = say
        self._number = 0

    def tell(self, *words: object) -> None:
        self._say(" ".join(str(word) for word in (self.name, *words)))

    def enqueue(self, names: list[str]) -> None:
        """All of one queue."""
        first, queue = names[0], jobs.queue_of(names[0])
        self.tell("try", "enqueue", *names)
        if len(names) == 1:
            payload, fields = jobs.payload_of(first), jobs.fields_of(first)
            seqs = [self.queue.enqueue(queue, payload, **fields)]
        else:
            specs = [jobs.spec_of(name) for name in names]
            seqs = self.queue.enqueue_many(queue, specs)
        self.tell("ok", "enqueue", *seqs)
        if self.chance.random() < 0.05:
            self.cancel(seqs[-1])

    def produce(self) -> None:
        """New jobs; and replies and cancels, now and then."""
        queue = self.chance.randrange(len(jobs.QUEUES))
        count = self.chance.choice([1, 1, 1, 5])
        self.enqueue([self._new_name(queue) for _ in range(count)])
        if self.replies and self.chance.random() < 0.5:
            self.reply(*self.replies.popleft())

    def work(self) -> None:
        """Some leases, and everything that may become of them."""
        lease_ms = self.chance.choice(self.told["leases_ms"])
        most = self.chance.choice([1, 4, 8])
        self.tell("try", "lease")
        found = self.queue.lease(most=most, wait=20, lease=lease_ms)
        lines = [
            f"{job.seq}:{job.token}:{job.lease_until_ms}:{jobs.name_of(job.payload)}"
            for job in found
        ]
        self.tell("ok", "lease", lease_ms, *lines)
        done = [job for job in found if self.chance.random() < 0.55]
        if done:
            self.ack([job.token for job in done])
        for job in found:
            if job not in done:
                self.settle(job.token, job.queue, job.seq)

    def ack(self, tokens: list[int]) -> None:
        self.tell("try", "ack", *tokens)
        self.tell("ok", "ack", *self.queue.ack(*tokens))

    def settle(self, token: int, queue: str = "", seq: int = 0) -> None:
        """One of the other ends of a lease, or none: it stays held."""
        drawn = self.chance.random()
        if drawn < 0.2:
            self.tell("try", "release", token)
            self.tell("ok", "release", *self.queue.release(token))
        elif drawn < 0.5:
            self.nack(token, is_bury=drawn < 0.24)
        elif drawn < 0.7:
            self.tell("try", "extend", token)
            settled = self.queue.extend(token, lease=jobs.LONG_MS)
            self.tell("ok", "extend", *settled.stale)
        elif drawn < 0.8 and seq:
            self.cancel(seq)
        elif queue:
            self.wait(token, queue)

    def cancel(self, seq: int) -> None:
        """Answers 1 if it is cancelled, 0 if it runs, -1 if it is over."""
        self.tell("try", "cancel", seq)
        try:
            is_cancelled = int(self.queue.cancel(seq))
        except headway.RuleBroken:
            is_cancelled = -1
        self.tell("ok", "cancel", is_cancelled)

    def nack(self, token: int, *, is_bury: bool) -> None:
        self.tell("try", "nack", token)
        retry_in_ms = self.chance.choice([0, 0, 30])
        try:
            self.queue.nack(token, "no luck", retry_in=retry_in_ms, is_bury=is_bury)
        except headway.RuleBroken:
            self.tell("ok", "nack", token)
        else:
            self.tell("ok", "nack")

    def wait(self, token: int, queue: str) -> None:
        """The reply comes before, after, from another thread, or never."""
        key = f"reply-{token}"
        drawn = self.chance.random()
        if drawn < 0.2:
            self.reply(queue, key)
        self.tell("try", "wait", token, key)
        is_done = self.chance.random() < 0.3
        try:
            self.queue.wait(token, key, jobs.LONG_MS, is_done_on_reply=is_done)
        except headway.RuleBroken:
            self.tell("ok", "wait", token)
            return
        self.tell("ok", "wait")
        if drawn < 0.6:
            self.replies.append([queue, key])

    def reply(self, queue: str, key: str) -> None:
        self.tell("try", "reply", key)
        self.tell("ok", "reply", self.queue.reply(queue, key, key.encode()))

    def take_up(self) -> None:
        """What earlier lives have left: enqueued again, and settled."""
        for name in self.told["again"]:
            self.enqueue([name])
        for token in self.told["held"]:
            if self.chance.random() < 0.4:
                self.ack([token])
            else:
                self.settle(token)

    def _new_name(self, queue: int) -> str:
        self._number += 1
        kind = self.chance.choice("ip")
        return f"{kind}{queue}-{self.told['seed']}-{self.name}-{self._number}"


_one_at_a_time = threading.Lock()


def say(line: str) -> None:
    """One write for one line: whole or not at all, and nothing stays behind in us."""
    with _one_at_a_time:
        os.write(1, f"{line}\n".encode())


def main(path: str) -> None:
    told: Told = json.loads(sys.stdin.readline())
    say("main try open")
    queue = headway.open(path)
    for config in jobs.configs():
        queue.configure(config)
    say("main ok open")
    replies: deque[list[str]] = deque()
    names = ["left"]
    names += [f"producer{number}" for number in range(PRODUCERS)]
    names += [f"worker{number}" for number in range(WORKERS)]
    for name in names:
        hand = Hand(queue, told, name, replies, say)
        threading.Thread(target=run, args=(hand,)).start()


def run(hand: Hand) -> None:
    """Until we are killed."""
    try:
        if hand.name == "left":
            hand.take_up()
        while True:
            if hand.name.startswith("worker"):
                hand.work()
            else:
                hand.produce()
    except BaseException:
        traceback.print_exc()
        os._exit(3)


if __name__ == "__main__":
    main(sys.argv[1])

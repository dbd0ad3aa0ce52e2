"""A node: keeps its lease, and serves the partitions that are meant for it."""

import asyncio
from collections.abc import Callable
from typing import Final

from headway.core.cluster import holder, plan, ranked, shares
from headway.core.errors import BadValue
from headway.server.acts import Acts
from headway.server.cluster.atlas import Atlas
from headway.server.cluster.members import ClusterMembers
from headway.server.cluster.meter import Meter
from headway.server.cluster.registrar import Registrar, boot_s
from headway.server.cluster.residents import OPENING_MAX, Resident
from headway.server.house import Ground, Host
from headway.server.settings import WRITES, Member, Settings
from headway.server.truth import InDatabase
from headway.store.errors import StoreError
from headway.store.postgres.cluster import Me, Seen

HURRY_S: Final = 5.0
"""So long it is looked often after something has become free."""
LATE: Final = 0.3
"""So much of a lease is left when its node has missed three renewals."""
HAND_OVER_S: Final = 2.0
"""So long the next partition waits for somebody to claim the last."""
SPACE_S: Final = 1.0
"""Between two that are handed over, if there is time: whoever takes one is busy with it,
and those that are sent to it meanwhile wait."""
INDEX_PAUSE_S: Final = 1.0
"""So much later its index is fed, as that starts a process."""
FORGOTTEN_S: Final = 86_400.0
"""Nodes that were not heard of for a day, and hold nothing, are known no more."""


class Node:
    """This process's part in the cluster; all on the loop."""

    def __init__(self, settings: Settings, member: Member, me: Me, host: Host) -> None:
        assert settings.store is not None
        self._settings = settings
        self._databases = {"": settings.store, **member.databases}
        self._me = me
        self._host = host
        self._loop = asyncio.get_running_loop()
        self.registrar = Registrar(settings.store.value, me, self)
        self.places = Atlas(me.name, me.lease_ms / 1_000)
        self._residents: dict[str, Resident] = {}
        self.places.registrar = self.registrar
        self.places.residents = self._residents
        self.meter = Meter(me.name)
        self._members = ClusterMembers(me, self.places, self.registrar)
        self._acts = Acts(settings.data, host.watch, self._loop)
        """Of all partitions: what is done to one is found when it has moved on."""
        self._asked: set[str] = set()
        """Partitions of which a claim is on its way."""
        self._ending: dict[str, asyncio.Task[None]] = {}
        """Those that were held, and are not cleared away yet."""
        self._handed: tuple[str, float] | None = None
        """The last that was let go for another, and when."""
        self._handing: asyncio.Task[None] | None = None
        self._next: asyncio.TimerHandle | None = None
        """When it is looked whether another may be handed over."""
        self._space_s = SPACE_S
        self._turn = asyncio.Semaphore(OPENING_MAX)
        self._lapse: asyncio.TimerHandle | None = None
        self._free_s: float | None = None
        self._is_missing = False
        self._is_leaving = False
        self._is_joined = False
        self._first: asyncio.Future[None] = self._loop.create_future()
        """The first renewal, or what stands against it."""
        self.ended = asyncio.Event()
        """It must end: another process has its name."""
        self.key = b""
        """Signs what all nodes must be able to read."""

    async def join(self, key: bytes, partitions: list[str]) -> None:
        """Becomes a node, once no earlier process of the name has a lease any more."""
        registrar = self.registrar
        registrar.start()
        await self._first
        self.key = await registrar.asked(lambda one, _: one.shared("signing", key))
        await registrar.asked(
            lambda one, _: one.add_partitions(partitions, is_first_only=True)
        )
        seen = await registrar.asked(lambda one, _: one.look())
        default = self._settings.default_queue
        order = ranked(default, sorted(seen.view.holdings))[:1]
        await registrar.asked(lambda one, _: one.place(default, tuple(order)))
        registrar.ask(lambda one, _: one.forget(FORGOTTEN_S))
        self._is_joined = True
        registrar.look_soon()

    async def is_settled(self, most_s: float) -> None:
        """Until all that is meant for it is open, or time is up."""
        until_s = boot_s() + most_s
        while boot_s() < until_s and not self.ended.is_set():
            view, have = self.places.view, self._residents
            mine = [one for one, node in shares(view).items() if node == self._me.name]
            missing = [
                name
                for name in mine
                if not (name in have and have[name].is_open)
                and holder(view, view.holdings[name]) in (None, self._me.name)
            ]
            if view.holdings and not missing:
                return
            await asyncio.sleep(0.01)

    async def leave(self, most_s: float) -> None:
        """Hands over what it has, one after another, and ends its lease."""
        self._is_leaving = True
        self.registrar.leave()
        until_s = boot_s() + most_s
        # Half of the time is for that which takes longer than it should.
        self._space_s = min(SPACE_S, most_s / 2 / max(1, len(self._residents)))
        while self._residents and boot_s() < until_s and self.places.is_valid():
            self._act()
            if not self._is_given():
                break
            await asyncio.sleep(0.01)

    def end_waits(self) -> None:
        for resident in self._residents.values():
            resident.settle()

    async def close(self) -> None:
        """Nothing is held any more when this answers."""
        self._is_leaving = True
        until_s = boot_s() + self._me.lease_ms / 1_000
        while self._asked and boot_s() < until_s:
            await asyncio.sleep(0.01)
        for pending in (self._lapse, self._next, self._handing):
            if pending is not None:
                pending.cancel()
        for resident in list(self._residents.values()):
            self._let_go(resident, None)
        await asyncio.gather(*self._ending.values(), return_exceptions=True)
        self.registrar.ask(lambda tables, me: tables.leave(me))
        await self.registrar.close()
        self._acts.close()

    def beaten(self, seen: Seen, began_s: float) -> None:
        self.registrar.took_notice()
        if self._residents and not self.places.is_valid():
            self._lapsed()
        if self._is_missing:
            self._is_missing = False
            self._host.watch.happened("lease renewed")
        self.places.seen(seen, began_s)
        if not self._first.done():
            self._first.set_result(None)
        self._arm()
        for resident in list(self._residents.values()):
            holding = seen.view.holdings.get(resident.partition)
            if (
                holding is None
                or holding.node != self._me.name
                or holding.claim != resident.claim
            ):
                self._lose(resident)
        self._act()

    def missed(self, error: StoreError) -> None:
        self.registrar.took_notice()
        self.meter.renewals_missed += 1
        if not self._first.done():
            self._first.set_exception(error)
        elif not self._is_missing:
            self._is_missing = True
            self._host.watch.warned("lease not renewed", error=type(error).__name__)

    def ousted(self) -> None:
        self.registrar.took_notice()
        if self._first.done():
            self.places.valid_s = 0.0
            self._lapsed()
            self.ended.set()

    def ground(self, partition: str, is_held: Callable[[], bool]) -> Ground:
        settings = self._settings
        default = settings.default_queue
        holding = self.places.view.holdings[partition]
        address = self._databases.get(holding.database)
        if address is None:
            raise BadValue("database", holding.database, "is not known to this node")
        return Ground(
            partition=partition,
            truth=InDatabase(address.value, partition, settings.throttling),
            data=settings.data / partition,
            writes=(settings.writes or settings.data) / partition / WRITES,
            key=self.key,
            default_queue=default,
            has_default=partition in (self.places.of_queue(default) or ())[:1],
            queue_length=settings.queue_length,
            is_held=is_held,
            members=self._members,
            acts=self._acts,
            index_pause_s=INDEX_PAUSE_S,
        )

    def is_valid(self) -> bool:
        return self.places.is_valid()

    def found(self, partition: str, queues: list[str], *, is_used: bool = True) -> None:
        """One that is not in use there, and is placed elsewhere, has left the partition."""
        places = self.places
        new = [
            one
            for one in queues
            if (placed := places.of_queue(one)) is None
            or (is_used and partition not in placed)
        ]
        if new:
            self.registrar.ask(lambda tables, _: tables.found(new, partition))

    def turned(self, *, is_opened: bool = False) -> None:
        self.meter.opened += is_opened
        self.places.turned()

    def _act(self) -> None:
        """Does what the tables ask of it now."""
        if not self._is_joined or not self.places.is_valid():
            return
        view, me = self.places.view, self._me.name
        targets = shares(view)
        if not self._is_leaving:
            for name, holding in view.holdings.items():
                is_free = holder(view, holding) in (None, me)
                is_mine = targets.get(name) == me and name not in self._residents
                if is_free and is_mine and name not in self._asked:
                    self._claim(name)
        for name, to in plan(view, me).releases:
            resident = self._residents.get(name)
            if resident is None:
                self._release_again(name, to)
            elif self._may_hand_over():
                self._hand_over(resident, to)
            elif self._next is None:
                self._next = self._loop.call_later(self._space_s / 4, self._act_again)
        self._hurry()

    def _act_again(self) -> None:
        self._next = None
        self._act()

    def _claim(self, name: str) -> None:
        self._asked.add(name)

        def told(claim: int | Exception | None) -> None:
            self._asked.discard(name)
            if not isinstance(claim, int) or name in self._residents:
                return
            resident = Resident(name, claim, self, self._host)
            self._residents[name] = resident
            resident.open(self._turn, self._ending.get(name))

        self.registrar.ask(lambda tables, me: tables.claim(me, name), told)

    def _hand_over(self, resident: Resident, to: str) -> None:
        """Goes on with it until nothing of it is left here alone."""
        name = resident.partition

        async def hand_over() -> None:
            await resident.is_taken_in()
            self._handed = (name, boot_s())
            self._handing = None
            if self._residents.get(name) is resident:
                self._let_go(resident, to)

        self._handing = self._loop.create_task(hand_over())

    def _may_hand_over(self) -> bool:
        if self._handing is not None:
            return False
        if self._handed is None:
            return True
        name, since_s = self._handed
        holding = self.places.view.holdings.get(name)
        is_taken = holding is None or holding.node not in (None, self._me.name)
        return boot_s() - since_s > (self._space_s if is_taken else HAND_OVER_S)

    def _is_given(self) -> bool:
        """Whether there is somebody who takes what this node has."""
        targets = shares(self.places.view)
        me = self._me.name
        view = self.places.view
        if me in view.nodes and not view.nodes[me].is_leaving:
            return True  # The tables don't say so yet: the next look will.
        return any(targets.get(name) != me for name in self._residents)

    def _let_go(self, resident: Resident, to: str | None) -> None:
        """Stops its owner, and tells the tables as soon as that is done."""
        name = resident.partition
        self._residents.pop(name, None)
        resident.settle()
        self._end(resident, lambda: self._released(resident, to))
        self.places.turned()

    def _released(self, resident: Resident, to: str | None) -> None:
        name, claim = resident.partition, resident.claim
        self.meter.handed_over += to is not None
        self._host.watch.happened("partition released", partition=name, to=to)
        self.registrar.ask(lambda tables, me: tables.release(me, name, claim, to))
        self.registrar.look_soon()

    def _release_again(self, name: str, to: str) -> None:
        """The tables were not told: they could not be reached when it was let go."""
        if name not in self._ending and name not in self._asked:
            claim = self.places.view.holdings[name].claim
            self.registrar.ask(lambda tables, me: tables.release(me, name, claim, to))

    def _lose(self, resident: Resident) -> None:
        """It is another's by now, or may be."""
        self._residents.pop(resident.partition, None)
        self.meter.lost += 1
        resident.end()
        self._host.watch.warned("partition lost", partition=resident.partition)
        self._end(resident, lambda: None)
        self.places.turned()

    def _end(self, resident: Resident, then: Callable[[], None]) -> None:
        name = resident.partition
        before = self._ending.get(name)

        async def end() -> None:
            try:
                await resident.shut()
                then()
                await resident.clear()
            except Exception as error:
                self._host.watch.broken(error)
            if before is not None:
                await asyncio.wait([before])
            if self._ending.get(name) is task:
                del self._ending[name]

        task = self._loop.create_task(end())
        self._ending[name] = task

    def _arm(self) -> None:
        """Notices the end of the lease, whatever the thread that renews it does."""
        if self._lapse is not None:
            self._lapse.cancel()
        left_s = max(0.0, self.places.valid_s - boot_s())
        self._lapse = self._loop.call_later(left_s + 0.001, self._check)

    def _check(self) -> None:
        if self.places.is_valid():
            self._arm()
        else:
            self._lapsed()

    def _lapsed(self) -> None:
        if self._residents:
            self._host.watch.warned("lease over", partitions=len(self._residents))
        for resident in list(self._residents.values()):
            self._lose(resident)
        self.places.turned()

    def _hurry(self) -> None:
        """While something is free it is looked often, though not for ever."""
        view = self.places.view
        is_free = any(holder(view, one) is None for one in view.holdings.values())
        if not is_free:
            self._free_s = None
        elif self._free_s is None:
            self._free_s = boot_s()
        is_new = self._free_s is not None and boot_s() - self._free_s < HURRY_S
        # A lease that was not renewed in time may be over soon.
        holders = {one.node for one in view.holdings.values()}
        is_late = any(
            node.is_alive and node.left_ms < self._me.lease_ms * LATE
            for node in view.nodes.values()
            if node.name in holders
        )
        self.registrar.hurry(is_on=is_new or is_late)

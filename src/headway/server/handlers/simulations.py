"""What if: a scenario, run beside the server in virtual time."""

from typing import Final

from headway.server.call import Call, answer
from headway.server.plans import InThread, Plan
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.whatif import simulate
from headway.wire.live import Simulated, Simulation

_SCENARIO: Final = """\
duration = "60s"
workers = [{ slots = 20 }]
queues = [{ name = "payment", slo = "5s" }]

[[loads]]
name = "payment"
queue = "payment"
arrivals = { kind = "poisson", per_second = 12 }
service = { kind = "exponential", mean = "1s" }
"""


def run(call: Call) -> Plan:
    """Run a small scenario, and say which promises it would keep.

    One at a time, for at most 20 s of a processor, in a process of its own.
    """
    body: Simulation = call.body
    return InThread(lambda: answer(simulate(body.scenario)))


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/simulations",
        handler=run,
        verb=Verb.OPERATE,
        is_unwritten=True,
        tag="dashboard",
        body=Simulation,
        answers={200: Simulated},
        problems=("simulation_busy", "simulation_stopped"),
        example={"scenario": _SCENARIO},
    ),
)

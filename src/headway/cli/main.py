"""The `headway` command: its group, and where its subcommands are."""

from typing import Final

import click

from headway.cli.sections import Sections

SECTIONS: Final = {
    "Serve": {
        "serve": "headway.cli.serve:serve",
        "worker": "headway.cli.worker:worker",
        "bridge": "headway.cli.bridge:bridge",
        "token": "headway.cli.token:token",
        "callback": "headway.cli.callback:callback",
        "migrate": "headway.cli.migrate:migrate",
        "nodes": "headway.cli.nodes:nodes",
        "partitions": "headway.cli.partitions:partitions",
        "verify": "headway.cli.verify:verify",
        "backup": "headway.cli.backup:backup",
        "compile": "headway.cli.compiling:compile_core",
    },
    "Jobs": {
        "enqueue": "headway.cli.enqueue:enqueue",
        "job": "headway.cli.jobs:job",
        "jobs": "headway.cli.search:jobs",
        "why": "headway.cli.why:why",
        "timeline": "headway.cli.search:timeline",
        "running": "headway.cli.jobs:running",
        "reply": "headway.cli.work:reply",
    },
    "Work by hand": {
        "lease": "headway.cli.work:lease",
        "extend": "headway.cli.work:extend",
        "ack": "headway.cli.work:ack",
        "nack": "headway.cli.work:nack",
        "release": "headway.cli.work:release",
        "wait": "headway.cli.work:wait",
    },
    "Queues": {
        "queues": "headway.cli.queues:queues",
        "queue": "headway.cli.queues:queue",
        "pause": "headway.cli.holds:pause",
        "resume": "headway.cli.holds:resume",
        "block": "headway.cli.holds:block",
        "unblock": "headway.cli.holds:unblock",
        "tenant": "headway.cli.shares:tenant",
        "kind": "headway.cli.shares:kind",
        "schedule": "headway.cli.schedules:schedule",
        "purge": "headway.cli.purge:purge",
        "autoscale": "headway.cli.search:autoscale",
    },
    "Dead letters": {
        "dead": "headway.cli.dead:dead",
        "operation": "headway.cli.operations:operation",
    },
    "Analyse": {
        "pipeline": "headway.cli.pipeline:pipeline",
        "report": "headway.cli.report_page:report",
        "plan": "headway.cli.plan:plan",
        "mine": "headway.cli.mine:mine",
        "spark-worker": "headway.cli.spark_worker:spark_worker",
    },
    "Try out": {
        "demo": "headway.cli.demo.command:demo",
        "simulate": "headway.cli.simulate:simulate",
    },
}
"""What the help shows, in its order; `module:attribute` of each command."""


@click.group(
    cls=Sections,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="headway", message="headway %(version)s")
def headway() -> None:
    """A durable job queue that keeps its promises.

    Every job says how long it may wait. Headway starts it in time, gives every
    tenant its fair share, and lets no flood cost anyone but the one who sends it.
    """


def main() -> None:
    """The entry point of the installed command."""
    headway(prog_name="headway")


if __name__ == "__main__":
    main()

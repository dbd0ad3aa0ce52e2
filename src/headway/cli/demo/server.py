"""The demonstration's server: `headway serve`, but that it ends with its parent."""

import os
import signal
import sys
from pathlib import Path

from headway.cli.demo.child import report, when_left
from headway.core.errors import RuleBroken
from headway.server.serving import serve
from headway.server.settings import Settings


def main(data: str, port: str) -> None:
    when_left(lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        serve(
            Settings(data=Path(data), port=int(port)),
            lambda address: report("listens", address),
        )
    except RuleBroken as error:
        report("refused", str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs the fault simulation from a shell: python -m headway.sim.faults N."""

import sys

from headway.sim.faults.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

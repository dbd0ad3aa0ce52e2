"""The gold tables, in the order in which they are made."""

from typing import Final

from headway.spark.gold.promises import PROMISES
from headway.spark.gold.waits import RUNS, WAITS

GOLD: Final = (PROMISES, WAITS, RUNS)

"""The gold tables, in the order in which they are made."""

from typing import Final

from headway.spark.gold.advice import ADVICE, DEMAND
from headway.spark.gold.costs import COSTS
from headway.spark.gold.failures import FAILURES
from headway.spark.gold.fairness import DISPLACEMENT, FAIRNESS, FAIRNESS_INDEX, WEIGHTS
from headway.spark.gold.limits import LIMIT_TENANTS, LIMITS
from headway.spark.gold.load import LOAD
from headway.spark.gold.promises import PROMISES
from headway.spark.gold.replies import REPLIES
from headway.spark.gold.schedules import SCHEDULES
from headway.spark.gold.waits import RUNS, WAITS

GOLD: Final = (
    PROMISES,
    WAITS,
    RUNS,
    LOAD,
    FAIRNESS,
    FAILURES,
    REPLIES,
    SCHEDULES,
    COSTS,
    LIMITS,
    LIMIT_TENANTS,
    DEMAND,
    WEIGHTS,
)
CONDITIONS: Final = tuple(
    dict.fromkeys(gold.condition for gold in GOLD if gold.condition is not None)
)
"""Of events that some tables are made of, and that a batch may have none of."""
VIEWS: Final = (FAIRNESS_INDEX, DISPLACEMENT, ADVICE)
"""Made of those, for the days that were touched."""

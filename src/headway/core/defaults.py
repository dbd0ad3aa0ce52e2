"""Every default and bound of the product, in one table."""

from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

SLO_MS: Final = 30 * SECOND_MS
PRIORITY: Final = 100
WEIGHT: Final = 1.0
COST: Final = 1
LEASE_MS: Final = 30 * SECOND_MS
TIMEOUT_MS: Final = DAY_MS
ATTEMPTS_MAX: Final = 5
BACKOFF_FIRST_MS: Final = SECOND_MS
BACKOFF_MAX_MS: Final = 5 * MINUTE_MS
LIFETIME_MS: Final = 14 * DAY_MS
DEAD_KEPT_MS: Final = 30 * DAY_MS
IDEMPOTENCY_WINDOW_MS: Final = HOUR_MS
IDEMPOTENCY_KEYS_MAX: Final = 1_000_000
EARLY_REPLY_MS: Final = DAY_MS
EARLY_REPLIES_MAX: Final = 10_000
THROTTLER_TIMEOUT_MS: Final = SECOND_MS
VERDICT_MS: Final = 10 * SECOND_MS
FULL_WAIT_MS: Final = 5 * SECOND_MS
"""How long an enqueue is held back by a full queue whose rules say so."""
FULL_WAITERS_MAX: Final = 100
"""Enqueues that one partition holds back at once; others are refused."""

MARGIN_SHARE: Final = 10
"""The margin is at least the SLO divided by this."""
OVER_SHARE_STARTS: Final = 50
"""Every 50th start (2 %) may go to a tenant above its fair share."""

SLO_CLASSES_MAX: Final = 16
TIME_MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: later times are refused."""
DURATION_MAX_MS: Final = 3_660 * DAY_MS
COUNT_MAX: Final = 1_000_000_000
WEIGHT_MIN: Final = 0.001
WEIGHT_MAX: Final = 1_000.0
NAME_LENGTH_MAX: Final = 128
QUEUES_MAX: Final = 100_000
LABELS_MAX: Final = 16
LIMITS_MAX: Final = 16
WINDOWS_MAX: Final = 16
THROTTLERS_MAX: Final = 64
RESULT_BYTES_MAX: Final = 256 << 10
"""Of a result as JSON; of a longer one only that it was is kept."""
RESULT_PROBLEM_MAX: Final = 1_024
ERRORS_KEPT: Final = 20
"""A job keeps its first error and the newest ones, this many in all."""

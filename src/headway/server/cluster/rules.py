"""How every route finds its partition, or its partitions."""

from enum import Enum, auto
from typing import Final

import msgspec


class By(Enum):
    """What in a request says where it belongs."""

    QUEUE = auto()
    """The queue in the path."""
    DEFAULT = auto()
    """The queue of the four simple endpoints."""
    SOURCE = auto()
    """The queue of a callback source."""
    JOB = auto()
    """The job or delivery in the path, which begins with its partition."""
    TOKEN = auto()
    """One token in the body, which begins with its partition."""
    TOKENS = auto()
    """Tokens in the body, perhaps of several partitions."""
    LEASE = auto()
    """The queues in the body, perhaps of several partitions."""
    CHUNK = auto()
    """The queue in the query."""
    WRITE = auto()
    """Whichever partition knows the write."""
    OPERATION = auto()
    """Whichever partition knows the operation, or the one in the query."""
    PARTITION = auto()
    """The partition in the path."""
    READER = auto()
    """The partition in the body."""
    NAMED = auto()
    """The partition in the query; a local one if there is none."""
    ANY = auto()
    """Every partition would answer the same."""
    HEALTH = auto()
    """The node itself."""
    LOCAL = auto()
    """All partitions that this node holds."""
    EVERY = auto()
    """All partitions there are."""
    WIDTH = auto()
    """The partitions of the queue in the path are what it is about."""


class Wide(Enum):
    """What becomes of it where the queue has several partitions."""

    HOME = auto()
    """Its first partition has it alone."""
    SPREAD = auto()
    """One of them takes it, in turn."""
    RULES = auto()
    """All of them, each with its part of the limits."""
    ALL = auto()
    """All of them, as it is; their answers are made one."""
    WALK = auto()
    """One after another, page by page."""


class Rule(msgspec.Struct, frozen=True):
    """Where a request goes."""

    by: By
    wide: Wide = Wide.HOME
    is_long: bool = False
    """Its answer may be held back for long."""
    is_repeatable: bool = False
    """It may be sent again although it may have been carried out: what was granted to
    an answer that got lost comes back by itself."""


_JOB: Final = Rule(By.JOB)
_ANY: Final = Rule(By.ANY)
_STEER: Final = Rule(By.ANY, is_repeatable=True)
_EVERY: Final = Rule(By.EVERY)
_NAMED: Final = Rule(By.NAMED)
_WRITE: Final = Rule(By.WRITE)
_TOKENS: Final = Rule(By.TOKENS)
_HOME: Final = Rule(By.QUEUE)
_ALL: Final = Rule(By.QUEUE, Wide.ALL)
_RULES: Final = Rule(By.QUEUE, Wide.RULES)

RULES: Final = {
    "jobs_enqueue": Rule(By.QUEUE, Wide.SPREAD),
    "jobs_show": _JOB,
    "jobs_why": _JOB,
    "jobs_cancel": _JOB,
    "results_result": Rule(By.JOB, is_long=True),
    "search_search": _EVERY,
    "search_timeline": _JOB,
    "search_counts": _ALL,
    "search_tenant_counts": _ALL,
    "search_dead_groups": _ALL,
    "writes_put_chunk": Rule(By.CHUNK),
    "writes_publish": _WRITE,
    "writes_show": _WRITE,
    "writes_discard": _WRITE,
    "work_lease": Rule(By.LEASE, is_long=True, is_repeatable=True),
    "work_ack": _TOKENS,
    "work_extend": Rule(By.TOKENS, is_repeatable=True),
    "work_release": _TOKENS,
    "work_nack": _TOKENS,
    "work_wait": Rule(By.TOKEN),
    "work_reply": _ALL,
    "callbacks_take": Rule(By.SOURCE, Wide.ALL),
    "callbacks_take_at_key": Rule(By.SOURCE, Wide.ALL),
    "queues_list_queues": _EVERY,
    "queues_show": _ALL,
    "queues_put": _RULES,
    "queues_patch": _RULES,
    "queues_pause": _ALL,
    "queues_resume": _ALL,
    "queues_block": _ALL,
    "queues_unblock": _ALL,
    "width_show": Rule(By.WIDTH),
    "width_widen": Rule(By.WIDTH),
    "queues_list_tenants": _ALL,
    "queues_set_tenant": _RULES,
    "queues_list_kinds": _ALL,
    "queues_set_kind": _RULES,
    "ranking_queues": _EVERY,
    "ranking_busy_tenants": _ALL,
    "ranking_workers": _EVERY,
    "dead_list_dead": Rule(By.QUEUE, Wide.WALK),
    "dead_redrive": _ALL,
    "dead_discard": _ALL,
    "dead_purge": _ALL,
    "dead_redrive_one": _JOB,
    "schedules_list_all": _EVERY,
    "schedules_list_queue": _HOME,
    "schedules_put": _HOME,
    "schedules_pause": _HOME,
    "schedules_resume": _HOME,
    "schedules_run_now": _HOME,
    "schedules_drop": _HOME,
    "operations_list_operations": _EVERY,
    "operations_show": Rule(By.OPERATION),
    "operations_stop": Rule(By.OPERATION),
    "operations_running": _EVERY,
    "capacity_metrics": Rule(By.LOCAL),
    "capacity_autoscale": _EVERY,
    "history_about": _EVERY,
    "history_page": Rule(By.PARTITION),
    "history_follow": Rule(By.READER),
    "history_forget": _EVERY,
    "records_put": Rule(By.DEFAULT),
    "records_get": Rule(By.DEFAULT, is_repeatable=True),
    "records_ack": _JOB,
    "records_nack": _JOB,
    "live_me": _ANY,
    "live_live": Rule(By.NAMED, is_long=True),
    "live_trends": _NAMED,
    "live_node": _NAMED,
    "live_acts": _NAMED,
    "nodes_list_nodes": _ANY,
    "nodes_list_partitions": _ANY,
    "nodes_drain": _STEER,
    "nodes_undrain": _STEER,
    "nodes_move": _STEER,
    "simulations_run": _ANY,
    "pages_index": _ANY,
    "pages_file": _ANY,
    "about_livez": Rule(By.HEALTH),
    "about_readyz": Rule(By.HEALTH),
    "about_openapi": _ANY,
}
"""By the operation of a route; a test knows that none is missing."""


def partition_of_job(text: str) -> str:
    """The partition that a job's or delivery's id begins with; empty if none does."""
    return text.rpartition("_")[0]


def partition_of_token(text: str) -> str:
    """The same for a lease token, behind which a dot and its queue follow."""
    return text.partition(".")[0].rpartition("_")[0]

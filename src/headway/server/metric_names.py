"""Every metric: its name, its kind and what it means."""

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """How the values of a metric are to be read."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNTYPED = "untyped"
    """Of names from elsewhere that do not say what they are."""


_C, _G, _H, _U = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Kind.UNTYPED

METRICS: Final[dict[str, tuple[Kind, str]]] = {
    "headway_jobs_enqueued_total": (_C, "Jobs accepted."),
    "headway_jobs_started_total": (_C, "Jobs handed to a worker, once per attempt."),
    "headway_starts_in_time_total": (
        _C,
        "Starts that waited no longer than their SLO; held time does not count.",
    ),
    "headway_starts_late_total": (_C, "Starts that waited longer than their SLO."),
    "headway_jobs_acked_total": (_C, "Jobs that their worker has done."),
    "headway_jobs_retried_total": (_C, "Attempts that failed and are made again."),
    "headway_jobs_lost_total": (
        _C,
        "Leases that ended without a word from their worker.",
    ),
    "headway_jobs_buried_total": (_C, "Jobs that went to the dead letters."),
    "headway_jobs_expired_total": (_C, "Jobs whose lifetime was over."),
    "headway_jobs_cancelled_total": (_C, "Jobs that were cancelled or purged."),
    "headway_jobs_released_total": (_C, "Jobs that their worker gave back unused."),
    "headway_wait_seconds": (
        _H,
        "Time from ready to start, without held time.",
    ),
    "headway_run_seconds": (
        _H,
        "Time from start until a worker acked, failed, released or waits for a reply.",
    ),
    "headway_lane_ready_jobs": (_G, "Jobs that could start."),
    "headway_lane_late_jobs": (
        _G,
        "Ready jobs past their SLO, of those that were looked at: a lower bound.",
    ),
    "headway_lane_oldest_wait_seconds": (
        _G,
        "How long the oldest ready job has waited, of those that were looked at.",
    ),
    "headway_lane_is_sure": (
        _G,
        "1 if every ready job was looked at; 0 if some are in the store only.",
    ),
    "headway_lane_arrivals_per_second": (
        _G,
        "Jobs that became ready in a second, averaged over about half a minute.",
    ),
    "headway_lane_run_mean_seconds": (
        _G,
        "Mean run time, averaged over about half a minute.",
    ),
    "headway_queue_jobs": (_G, "Jobs of a queue by state."),
    "headway_queue_length_max": (
        _G,
        "Ready, scheduled and leased jobs at which a queue refuses more.",
    ),
    "headway_queue_enqueued_bytes_total": (_C, "Payload bytes accepted."),
    "headway_queue_replies_kept": (
        _G,
        "Replies kept for jobs that have not asked for them yet.",
    ),
    "headway_limit_used": (_G, "Units of a limit in use, over all its values."),
    "headway_limit_max": (
        _G,
        "Units of a limit; not told for limits that hold for each value of something.",
    ),
    "headway_throttler_verdicts_total": (
        _C,
        "Verdicts of a queue's throttler: start, later or refuse.",
    ),
    "headway_throttler_errors_total": (
        _C,
        "Jobs on which a queue's throttler gave no verdict: it raised, was too slow, "
        "its process ended or was not loaded.",
    ),
    "headway_slots": (
        _G,
        "Worker slots: busy with a job, or idle and waiting for one.",
    ),
    "headway_slots_wanted": (_G, "Worker slots wanted to keep the promises."),
    "headway_requests_rate_limited_total": (
        _C,
        "Requests refused because their token has made too many.",
    ),
    "headway_commits_total": (_C, "Commits to the store."),
    "headway_commit_rows_total": (_C, "Rows written by commits."),
    "headway_commit_seconds": (_H, "Time until a commit is on stable storage."),
    "headway_batch_commands": (_H, "Commands decided and committed together."),
    "headway_tick_late_seconds": (
        _H,
        "By how much ticks of schedules came after their time.",
    ),
    "headway_ticks_skipped_total": (
        _C,
        "Ticks of schedules whose job was refused, by a full queue for instance.",
    ),
    "headway_replies_unclaimed_total": (
        _C,
        "Replies that nobody waited for: early, repeated or late.",
    ),
    "headway_memory_jobs": (_G, "Jobs in memory."),
    "headway_memory_jobs_max": (_G, "Ready jobs that memory holds at most, about."),
    "headway_memory_turns": (_G, "Turns, one of a tenant in a lane, in memory."),
    "headway_store_bytes": (_G, "Size of the store's file, 0 if it has none."),
    "headway_store_log_bytes": (_G, "Size of the store's log, 0 if it has none."),
    "queued_messages": (_G, "Ready jobs of the default queue."),
    "delayed_messages": (_G, "Scheduled jobs of the default queue."),
    "queue_max_len": (_G, "Longest the default queue may be, 0 if nothing bounds it."),
    "total_queued_messages": (
        _U,
        "Jobs ever accepted by the default queue, since its owner began.",
    ),
    "queued_messages_size": (
        _U,
        "Payload bytes ever accepted by the default queue, since its owner began.",
    ),
    "mem_bytes_heap": (
        _G,
        "Resident memory of the process without mapped files: heap and stacks.",
    ),
    "mem_bytes_sys": (_G, "Resident memory of the process, as the system counts it."),
}
"""In the order of the page that describes them."""

NODE_METRICS: Final[dict[str, tuple[Kind, str]]] = {
    "headway_node_lease_left_seconds": (
        _G,
        "How long the lease of this node goes on for certain; 0 when it is over.",
    ),
    "headway_node_partitions": (_G, "Partitions that this node holds and answers for."),
    "headway_node_renewals_missed_total": (
        _C,
        "Renewals of the lease that the database did not take.",
    ),
    "headway_node_opened_total": (_C, "Partitions that this node has begun to serve."),
    "headway_node_handovers_total": (
        _C,
        "Partitions that this node has handed over to another.",
    ),
    "headway_node_lost_total": (
        _C,
        "Partitions that this node has lost: its lease was over, or another took them.",
    ),
    "headway_node_forwarded_total": (
        _C,
        "Requests that this node has sent on, once for each time they were sent.",
    ),
    "headway_node_forward_seconds": (
        _H,
        "Time until another node has answered, without requests that may wait there.",
    ),
    "headway_node_peer_errors_total": (
        _C,
        "Calls to other nodes without an answer: not sent, or lost on their way.",
    ),
}
"""Of a node of a cluster, beside those of its partitions."""

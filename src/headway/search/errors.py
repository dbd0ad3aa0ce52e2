"""Errors of the index.

SearchFailed
├── NotIndexed      there is no index yet, or it was removed
├── NotUnderstood   history of which this version does not know what it says
├── SearchTooSlow   would have taken too long; narrower filters take less
└── OutOfOrder      events that do not follow those that were indexed: a bug of ours

What is wrong with a search itself is a BadValue, as everywhere.
"""


class SearchFailed(Exception):
    """The index can't answer, or can't go on."""


class NotIndexed(SearchFailed):
    """Whoever feeds the index has not begun, or it has been removed."""


class NotUnderstood(SearchFailed):
    """An event of an unknown kind, or one that is cut short."""


class SearchTooSlow(SearchFailed):
    """The search was given up. Name a queue, a label or a shorter time."""


class OutOfOrder(SearchFailed, AssertionError):
    """Events are applied in the order of their numbers, without gaps."""

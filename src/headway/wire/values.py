"""Values that bodies are made of; their types carry their rules."""

from typing import Annotated, Final

from msgspec import Meta

from headway.core import defaults

BATCH_MAX: Final = 1_000
"""Jobs, tokens or seqs in one request."""
PAYLOAD_MAX: Final = 1 << 20
"""Bytes of one payload."""
END: Final = r"$(?!\n)"
"""The end of a text, in every dialect: in Python `$` alone allows another newline."""
TEXT: Final = r"^[^\x00-\x1f\x7f]*" + END
QUEUE: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}" + END
WRITTEN: Final = r"^[0-9]{1,15}(\.[0-9]{1,9})? ?(ms|s|m|h|d)" + END
DATE: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})" + END
)

QueueName = Annotated[
    str,
    Meta(pattern=QUEUE, description="Letters, digits, dots, dashes and underscores."),
]
Name = Annotated[str, Meta(max_length=defaults.NAME_LENGTH_MAX, pattern=TEXT)]
Given = Annotated[
    str, Meta(min_length=1, max_length=defaults.NAME_LENGTH_MAX, pattern=TEXT)
]
"""A name that may not be empty."""
Key = Annotated[str, Meta(min_length=1, max_length=1_024, pattern=TEXT)]
Token = Annotated[str, Meta(max_length=256, pattern=TEXT)]
Milliseconds = Annotated[int, Meta(ge=0, le=defaults.DURATION_MAX_MS)]
_Written = Annotated[
    str,
    Meta(
        pattern=WRITTEN,
        max_length=32,
        description='Milliseconds, or text such as "500ms", "5s" or "2h".',
        examples=["5s"],
    ),
]
Duration = Annotated[int, Meta(ge=0, le=defaults.DURATION_MAX_MS)] | _Written
Span = Annotated[int, Meta(ge=1, le=defaults.DURATION_MAX_MS)] | _Written
"""A duration that is not 0."""
Moment = (
    Annotated[int, Meta(ge=0, le=defaults.TIME_MAX_MS)]
    | Annotated[
        str,
        Meta(
            pattern=DATE,
            max_length=64,
            description="Milliseconds since 1970 UTC, or a date and time with its zone.",
            examples=["2026-11-27T08:00:00Z"],
        ),
    ]
)
Count = Annotated[int, Meta(ge=0, le=defaults.COUNT_MAX)]
Positive = Annotated[int, Meta(ge=1, le=defaults.COUNT_MAX)]
Priority = Annotated[int, Meta(ge=-defaults.COUNT_MAX, le=defaults.COUNT_MAX)]
Weight = Annotated[float, Meta(ge=defaults.WEIGHT_MIN, le=defaults.WEIGHT_MAX)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Labels = Annotated[
    dict[Given, Annotated[str, Meta(max_length=256, pattern=TEXT)]],
    Meta(max_length=defaults.LABELS_MAX),
]
Headers = Annotated[
    dict[Given, Annotated[str, Meta(max_length=4_096, pattern=TEXT)]],
    Meta(max_length=32),
]
ErrorText = Annotated[str, Meta(max_length=16_384)]
Base64 = Annotated[str, Meta(max_length=PAYLOAD_MAX * 4 // 3 + 4)]

"""Tasks of a Django project: what they did is written to a file, or kept."""

import os
from typing import Any

from django.db import connection

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

done: list[Any] = []


def note(text: str) -> None:
    """One line, whole, whoever else writes; without a file it is kept."""
    done.append(text)
    path = os.environ.get("TEST_NOTES")
    if path is not None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{text}\n".encode())
        os.close(file)


@task
def greet(name: str, *, times: int = 1) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s", [name])
        (found,) = cursor.fetchone()
    note(f"greets {found * times}")


@task(queue_name="mail", priority=10)
async def send(to: list[str]) -> None:
    note(f"sends to {to}")


@task(takes_context=True)
def count(context: Any) -> None:
    note(f"{context.task_result.id} {context.attempt}")


@task
def fail() -> None:
    note("fails")
    raise ValueError("as it should")


def plain() -> None:
    """No task."""

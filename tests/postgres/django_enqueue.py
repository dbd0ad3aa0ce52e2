"""Leaves jobs by a connection of Django's: kept in one block, taken back in another."""

import os
import sys
from urllib.parse import urlsplit

import django
from django.conf import settings

import headway
from headway.integrations.postgres import Inbox


class OnPurpose(Exception):
    pass


def main(partition: str) -> None:
    parts = urlsplit(os.environ["HEADWAY_STORE"])
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": parts.path[1:],
                "USER": parts.username,
                "HOST": parts.hostname,
                "PORT": parts.port,
            }
        }
    )
    django.setup()
    from django.db import connection, transaction

    inbox = Inbox(partition)
    with transaction.atomic():
        inbox.enqueue(connection, "mail", headway.spec(b"1"), headway.spec(b"2"))
    try:
        with transaction.atomic():
            inbox.enqueue(connection, "mail", headway.spec(b"never"))
            raise OnPurpose
    except OnPurpose:
        pass
    with transaction.atomic():
        inbox.enqueue(connection, "mail", headway.spec(b"3"))
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1])

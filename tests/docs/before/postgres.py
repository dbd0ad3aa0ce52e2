"""How the SQL of docs/postgres.md runs: rights are given by the owner, used by the shop."""

import psycopg


def sql(text: str) -> None:
    role = "headway" if text.startswith("GRANT") else "shop"
    address = f"postgresql://{role}@localhost/jobs"
    with psycopg.connect(address) as connection:
        connection.execute(text)

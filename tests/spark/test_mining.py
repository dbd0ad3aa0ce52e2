"""Dead letters in a lake: what they died of, and the way back for those still dead."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headway.cli.main import headway
from headway.client.blocking import Client
from headway.search.error_lines import first_line
from headway.spark.errors_sql import error_line
from headway.spark.lake.lake import Lake
from headway.spark.mining import Letter, Mine, Redriven, Selection
from tests.server.process import Served
from tests.spark.work import enqueue, lease, run

pytestmark = pytest.mark.xdist_group("spark")
ALL = Selection()
VALUE = "ValueError: no <number>"


def bury(served: Served, errors: list[str]) -> None:
    tokens = lease(served, len(errors))
    failures = [
        {"token": token, "error": error, "bury": True}
        for token, error in zip(tokens, errors, strict=True)
    ]
    assert served.ask("POST", "/v1/nack", {"jobs": failures}).status == 200


def deaths(served: Served) -> None:
    """Six jobs of two tenants die of one error, two of another; one is done."""
    for number in range(6):
        enqueue(served, 1, tenant="acme" if number % 2 else "other")
        bury(served, [f"ValueError: no {number}\n  at length"])
    enqueue(served, 3, kind="other")
    bury(served, ["KeyError: 'x'", "KeyError: 'x'"])
    assert served.ask("POST", "/v1/ack", {"tokens": lease(served, 1)}).status == 200


def dead(served: Served) -> list[str]:
    served.hang_up()
    found = served.ask("GET", "/v1/queues/mail/dead").json["jobs"]
    return [one["id"] for one in found]


def redrive(
    found: Mine, served: Served, letters: Iterable[Letter], *, is_dry: bool = False
) -> Redriven:
    client = Client(served.address)
    try:
        return found.redrive(client, iter(letters), rate=500, is_dry=is_dry, tell=print)
    finally:
        client.close()


def test_deaths_are_grouped_chosen_and_put_back(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    deaths(served)
    died = dead(served)
    found = Mine(spark, run(spark, served, tmp_path / "lake"))
    first, second = found.groups(ALL, 10)
    assert (first.error, first.kind, first.jobs, first.tenants) == (VALUE, "k", 6, 2)
    assert (first.redriven, first.sample, first.reason) == (0, died[5], "failed")
    assert first.text == "ValueError: no 5\n  at length"
    assert first.first_at < first.last_at
    assert (second.error, second.kind, second.jobs) == ("KeyError: 'x'", "other", 2)
    assert found.groups(ALL, 1) == [first]

    chosen = list(found.letters(Selection(error=VALUE), 4))
    assert [one.id for one in chosen] == died[:4]
    chosen = list(found.letters(Selection(error=VALUE), 100))
    acme = [one.id for one in found.letters(Selection(tenant="acme", kind="k"), 9)]
    assert acme == died[1:6:2]
    assert list(found.letters(Selection(queue="none"), 9)) == []
    assert list(found.letters(Selection(until_ms=1_000), 9)) == []
    assert len(list(found.letters(Selection(since_ms=1_000), 99))) == 8

    foreign = [
        one._replace(partition="elsewhere", id="elsewhere_1")
        for one in found.letters(ALL, 2)
    ]
    assert redrive(found, served, foreign) == Redriven(chosen=2, elsewhere=2)

    # One is put back by hand; another one, too, and dies again of something else.
    dead(served)
    for one in died[:2]:
        assert served.ask("POST", f"/v1/jobs/{one}/redrive").status == 200
    token, _ = lease(served, 2)
    failure = {"token": token, "error": "again", "bury": True}
    assert served.ask("POST", "/v1/nack", {"jobs": [failure]}).status == 200
    (again,) = set(dead(served)) & set(died[:2])

    assert redrive(found, served, chosen, is_dry=True) == Redriven(6, 4, 2)
    assert set(dead(served)) == {again, *died[2:]}
    assert redrive(found, served, chosen[:3]) == Redriven(3, 1, 2)
    assert redrive(found, served, chosen) == Redriven(6, 3, 3)
    assert set(dead(served)) == {again, *died[6:]}
    assert redrive(found, served, chosen) == Redriven(6, 0, 6)

    found = Mine(spark, run(spark, served, tmp_path / "lake"))
    groups = {one.error: (one.jobs, one.redriven) for one in found.groups(ALL, 10)}
    assert groups == {VALUE: (6, 6), "KeyError: 'x'": (2, 0), "again": (1, 0)}
    assert {one.id for one in found.letters(ALL, 9)} == {again, *died[6:]}


def test_the_commands_tell_what_they_found(
    spark: Any, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths(served)
    lake: Lake = run(spark, served, tmp_path / "lake")
    # The session of all tests is used, and goes on.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    where = ["--lake", lake.place.root]

    def told(*command: str) -> str:
        asked = ["mine", *command, *where]
        ended = CliRunner().invoke(headway, asked, env={"COLUMNS": "250"})
        assert ended.exit_code == 0, ended.output
        return ended.output

    assert VALUE in told("groups")
    assert dead(served)[0] in told("preview", "--tenant", "other")
    assert "no dead letter fits" in told("preview", "--tenant", "nobody")
    wish = ["redrive", "--server", served.address, "--error", "KeyError"]
    said = told(*wish)
    assert "of 2 jobs 2 would be put back" in said
    assert "--yes does it" in said
    assert len(dead(served)) == 8
    assert "of 2 jobs 2 were put back" in told(*wish, "--yes")
    assert len(dead(served)) == 6
    assert "2 are not dead any more" in told(*wish, "--yes")


def test_errors_are_told_apart_as_the_search_does(spark: Any) -> None:
    chance = random.Random(7)
    parts = [
        *[
            "0",
            "1",
            "7",
            "x",
            "X",
            "a",
            "f",
            "F",
            "g",
            "z",
            "0x",
            "0X1f",
            "deadbeef",
            "12345678",
            "123456789a",
            "cafe",
            "-",
            "_",
            ":",
            "<",
            ">",
            "$1",
        ],
        *(chr(code) for code in (9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160)),
        *"\u1680\u2003\u2028\u2029\u202f\u205f\u3000é😀\\",
        "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
        "  ",
        "\r\n",
        "9" * 40,
        "long " * 30,
        "",
    ]
    texts = ["", "\n \n", "x" * 990 + "12345678901234567890", "a" * 198 + "1 2"]
    texts += [
        "".join(chance.choices(parts, k=chance.randint(1, 14))) for _ in range(4_000)
    ]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    rows = frame.select("text", error_line(frame.text).alias("line")).collect()
    assert len(rows) == len(texts)
    wrong = [
        (row.text, row.line, first_line(row.text))
        for row in rows
        if row.line != first_line(row.text)
    ]
    assert wrong == []

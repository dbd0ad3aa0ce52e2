"""Rules that are changed one by one."""

from tests.server.process import Served

PATH = "/v1/queues/changing"


def test_a_rule_is_changed_and_taken_back(served: Served) -> None:
    assert served.ask("PUT", PATH, {"slo": "5s", "cost": 3}).status == 200
    changed = served.ask("PATCH", PATH, {"cost": 4}).json["rules"]
    assert (changed["slo"], changed["cost"]) == ("5s", 4)
    back = served.ask("PATCH", PATH, {"cost": None}).json["rules"]
    assert (back["slo"], back["cost"]) == ("5s", 1)


def test_a_rule_that_there_is_not_is_refused_even_as_null(served: Served) -> None:
    served.ask("PUT", PATH, {})
    for body in ({"slow": None}, {"slow": 1}):
        answer = served.ask("PATCH", PATH, body)
        assert (answer.status, answer.json["key"]) == (400, "slow")
    answer = served.ask("PATCH", PATH, {"cost": -1})
    assert (answer.status, answer.json["key"]) == (400, "cost")

"""The page on scale says what its program says."""

from pathlib import Path

from benchmarks import scaling_model
from benchmarks.scaling_model import Cluster

ROOT = Path(__file__).resolve().parents[2]


def test_page_and_picture_are_as_the_model_has_them() -> None:
    page = (ROOT / scaling_model.PAGE).read_text()
    assert scaling_model.written(page) == page, "run python -m benchmarks.scaling_model"
    assert (ROOT / scaling_model.PICTURE).read_text() == scaling_model.picture()


def test_nobody_passes_anything_on_to_himself() -> None:
    assert scaling_model.hint_share(1) == 0
    alone, many = (scaling_model.node_us(nodes, 1) for nodes in (1, 1_000))
    assert alone < many < alone + 3 * scaling_model.COSTS["hop"].value


def test_one_queue_on_one_partition_is_as_much_as_its_node_can_do() -> None:
    one = Cluster(10, 1, 10)
    assert scaling_model.imbalance(one, 20.0, is_wide=False) > 9.9
    assert scaling_model.imbalance(one, 20.0, is_wide=True) < 1.1


def test_who_has_no_room_never_catches_up() -> None:
    assert scaling_model.catch_up_s(1, 0.5) == float("inf")
    times = [scaling_model.catch_up_s(each, 0.5) for each in (2, 4, 8)]
    assert times == sorted(times, reverse=True)
    assert times[-1] > scaling_model.ASSUMED.lease_s

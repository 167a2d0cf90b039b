# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmark makes of its rounds; nothing is measured here."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "bench"))

import aims                                                      # noqa: E402
import overload_report                                           # noqa: E402
import overloads                                                 # noqa: E402
import report                                                    # noqa: E402
import rounds                                                    # noqa: E402
from scenarios import SCENARIOS                                  # noqa: E402


def cpu(*numbers):
    """Rounds with that CPU time; None is one that failed."""
    return [n and {"cpu": n} for n in numbers]


# The machine is ten times as slow in the last two.
SLOWED = cpu(1, 2, 3, 10, 20), cpu(2, 2, 2, 20, 20)


def test_a_ratio_is_taken_within_each_round():
    assert rounds.ratio(*SLOWED, "cpu") == 1
    assert rounds.ratios(*SLOWED, "cpu") == [0.5, 1, 1.5, 0.5, 1]
    # Not that of the medians, which are of different rounds.
    assert (rounds.median(SLOWED[0], "cpu") /
            rounds.median(SLOWED[1], "cpu")) == 1.5


def test_rounds_that_failed_are_left_out_with_their_partner():
    assert rounds.ratios(cpu(1, None, 3, 4), cpu(1, 1, None, 2), "cpu") == [
        1, 2]
    assert rounds.ratio(cpu(None), cpu(1), "cpu") is None
    assert rounds.median(cpu(None), "cpu") is None


def test_the_middle_half_is_between_the_quartiles():
    assert rounds.middle_half([5, 1, 3, 2, 4]) == (2, 4)
    assert rounds.middle_half([7]) == (7, 7)
    assert rounds.middle_half([]) is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_take_their_turn_in_each_round(count):
    names = [f"n{i}" for i in range(8)]
    orders = list(rounds.orders(names, count))
    assert len(orders) == count
    assert all(sorted(order) == names for order in orders)
    assert orders == list(rounds.orders(names, count))


def test_each_second_round_goes_the_other_way():
    first, second, third, fourth = rounds.orders("abcdefgh", 4)
    assert second == first[::-1] and fourth == third[::-1]
    assert third != first and third != second


def test_what_an_aim_compares_runs_together():
    groups = aims.groups(list(SCENARIOS))
    assert sorted(sum(groups, [])) == sorted(SCENARIOS)
    for aim in aims.AIMS:
        assert any(aim.scenarios() <= set(group) for group in groups), aim
    # And nothing else does: it would wait for no reason.
    assert ["gateway-small"] in groups


def test_groups_that_a_later_aim_joins_become_one():
    def between(a, b):
        return aims.Aim((a, "x"), (b, "y"), most=1)
    chain = [between("a", "b"), between("d", "e"), between("b", "e"),
             between("c", "unknown")]
    assert aims.groups(list("abcde"), chain) == [list("abde"), ["c"]]


def test_an_aim_between_scenarios_is_judged_by_rounds():
    aim = aims.Aim(("one", "penstock"), ("two", "haproxy"), most=1)
    found = {"one": {"penstock": SLOWED[0]}, "two": {"haproxy": SLOWED[1]}}
    assert aim.title() == "cpu: one penstock / two haproxy"
    assert aim.measured(found) == (1, (0.5, 1))
    assert aim.is_reached(1) and not aim.is_reached(1.01)
    assert aim.measured({"one": found["one"]}) is None


def test_an_aim_of_one_number_is_its_median():
    aim = aims.Aim(("one", "penstock"), least=2)
    assert aim.measured({"one": {"penstock": SLOWED[0]}}) == (3, (2, 10))
    assert aim.is_reached(2) and not aim.is_reached(1.99)


def test_the_table_has_what_was_measured():
    rows = report.aims({SCENARIOS["gateway-small"]: {
        "penstock": cpu(1, 2, 13), "relay": cpu(1, 1, 10)}})
    assert rows == [["cpu: gateway-small penstock / relay", "1.30",
                     "1.15–1.65", "≤ 1.2", "**no**"]]


def test_a_scenario_shows_how_sure_its_ratio_is():
    found = {name: [{"cpu": n, "rate": 1, "p50": 1, "p99": 1} for n in numbers]
             for name, numbers in (("penstock", (1, 2, 13)),
                                   ("relay", (1, 1, 10)))}
    lines = report.details(SCENARIOS["gateway-small"], found)
    assert any(line.endswith("| 1.30 | 1.15–1.65 |") for line in lines)
    # One that none took part in is shown too.
    assert report.details(SCENARIOS["gateway-small"], {})


def test_the_readme_tells_of_no_span_since_it_shows_none():
    assert " span " in report.markdown({}, 5, [])
    assert " span " not in report.readme({}, 5)


# --- under overload ---

def load_rounds(*goodputs):
    columns = dict.fromkeys(overloads.COLUMNS["load"], 1)
    return [{**columns, "goodput": n} for n in goodputs]


def test_the_aims_are_of_trials_and_of_what_they_measure():
    for aim in overloads.AIMS:
        for end in filter(None, (aim.of, aim.to)):
            assert aim.key in overloads.COLUMNS[
                overloads.TRIALS[end[0]].kind], aim


def test_an_aim_under_overload_is_judged():
    found = {overloads.TRIALS["load-3"]: {
        "penstock": load_rounds(0.9, 0.94, 0.99)}}
    goodput, late, failed = report.aims(found, overloads.AIMS)
    assert goodput == ["goodput: load-3 penstock", "0.94", "0.92–0.96",
                       "≥ 0.95", "**no**"]
    assert late[-1] == "yes" and failed[-1] == "**no**"


def test_what_a_refusal_costs_is_compared_within_each_round():
    found = {overloads.TRIALS[overloads.SERVED]: {
                 "penstock": cpu(10, 20, 100)},
             overloads.TRIALS[overloads.REFUSED]: {
                 "penstock": cpu(4, 4, 60)}}
    assert any("| 0.40 |" in line for line in overload_report.summary(found))
    assert report.aims(found, overloads.AIMS)[0][1] == "0.40"
    text = overload_report.markdown(found, 3, ["nginx: ended"])
    assert "| penstock | 20.00 |" in text and "- nginx: ended" in text

"""Which rules of the help are on."""

import pytest

from dm_jupyter.core.assistance import Assistance


def test_all_of_the_help_is_on_unless_it_is_switched_off() -> None:
    every = frozenset(Assistance.names())
    assert Assistance().on() == every
    assert Assistance.for_dialect("markdown").on() == every
    assert Assistance.none().on() == frozenset()
    assert Assistance().without("advice").on() == every - {"advice"}
    assert Assistance.only(("advice", "links")).on() == {"advice", "links"}


def test_a_model_that_calls_tools_gets_the_data_and_no_lessons() -> None:
    on = Assistance.for_dialect("tools").on()
    assert {"profile", "links", "ledger", "grounding"} <= on
    assert on.isdisjoint({"opening", "advice"})


def test_a_record_keeps_each_rule_and_one_that_it_does_not_know_was_off() -> None:
    some = Assistance.only(("advice", "links"))
    assert Assistance.from_json(some.to_json()) == some
    assert Assistance.from_json({"advice": True, "of another release": True}).on() == {"advice"}


def test_an_unknown_rule_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no rule 'hint'; the rules are profile, links, "):
        Assistance.only(("hint",))
    with pytest.raises(ValueError, match="no rule 'hint'"):
        Assistance().without("hint")

"""What is told of several tasks that broke together."""

from dm_jupyter.core.errors import EndpointRefusedError, PolicyError, first_fault


def test_of_faults_within_faults_the_first_is_told() -> None:
    first, second, third = (PolicyError(word) for word in ("first", "second", "third"))
    inner = ExceptionGroup("two", [first, second])
    assert first_fault(ExceptionGroup("all", [inner, third])) is first
    assert first_fault(ExceptionGroup("all", [third, inner])) is third


def test_a_refusal_knows_its_status_or_0() -> None:
    assert EndpointRefusedError("no such model", 404).status == 404
    assert EndpointRefusedError("no").status == 0

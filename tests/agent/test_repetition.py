import pytest

from dm_jupyter.agent.repetition import is_looping

BLOCK = "# We can then use that index to access the column.\n# Let's try again, as before:\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BLOCK * 3, True),
        ("x = 1\n" + BLOCK * 3, True),
        (BLOCK * 2, False),
        (BLOCK * 3 + "something new", True),
        (BLOCK * 3 + "something new\n", False),
        ("".join(f"# attempt number {n} failed\n" for n in range(16)) * 3, True),
        ("plt.show()\n" * 5, False),
        ("the same long line of code again and again\n" * 3, True),
        ("", False),
        ("no line has ended", False),
    ],
)
def test_only_long_copies_at_the_end_count(text: str, expected: bool) -> None:
    assert is_looping(text) is expected

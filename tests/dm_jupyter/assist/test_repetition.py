import pytest

from dm_jupyter.assist.repetition import is_looping

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


LESS_AND_LESS = """\
# The mistake was that I was trying to use 'Moderna' as a string, when it should be a list.
# I also added a check to ensure that the vaccine names are present in the data.
# I also added a check to ensure that the vaccine names are not null.
# I also added a check to ensure that the vaccine names are not the same.
# I also added a check to ensure that the vaccine names are not the same for any two countries.
# I also added a check to ensure that the vaccine names are not the same for any two in a month.
"""
"""Of a real turn that went on like this for another 200 tokens, each line longer than the last."""
ONCE_MORE = """
# The correct approach is to use a simple linear regression:
# fit = sm.OLS(y, sm.add_constant(X)).fit()
# coef_age = round(fit.params[1], 2)
# coef_pclass = round(fit.params[2], 2)
# relationship_age = "significant" if fit.pvalues[1] < 0.05 else "not significant"
# print(f"@coef_age[{coef_age}]")
"""
"""A real block of comments that came again and again instead of code."""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import pandas as pd\n" + LESS_AND_LESS, 7),
        ("import pandas as pd\n" + ONCE_MORE * 3, 15),
    ],
    ids=["comments that begin alike", "a block of comments"],
)
def test_comments_that_lead_nowhere_are_noticed_early(text: str, lines: int) -> None:
    ends = [at for at, char in enumerate(text, 1) if char == "\n" and is_looping(text[:at])]
    assert text[: ends[0]].count("\n") == lines


def test_a_line_that_never_ends_is_noticed() -> None:
    circle = "and the mean of the second column, "
    assert is_looping("The answer is the mean of the first column, " + circle * 12)
    assert not is_looping("The answer is the mean of the first column, " + circle * 8)
    assert not is_looping("# " + "-" * 600)
    assert not is_looping("codes = [" + ", ".join(f"'region {n}'" for n in range(90)))


LEGITIMATE = {
    "axes": "".join(
        f"ax = axes[{n}]\nax.hist(df['{name}'], bins=20)\nax.set_xlabel('value')\n"
        "ax.set_ylabel('count')\nax.grid(True)\nplt.tight_layout()\n"
        for n, name in enumerate(("price", "size", "rooms", "year", "floor"))
    ),
    "figures": "plt.figure()\nplt.show()\n" * 4,
    "columns": "".join(
        f"df['{name}'] = pd.to_numeric(df['{name}'], errors='coerce')\n"
        for name in ("a", "b", "c", "d", "e", "f", "g")
    ),
    "steps": "".join(
        f"# Step {n}: calculate the mean of the column {name}\n{name} = df['{name}'].mean()\n"
        for n, name in enumerate(("price", "size", "rooms", "year", "floor", "yard"))
    ),
    "table": "| region | sales | share |\n|---|---|---|\n"
    + "".join(f"| the region in the north {n} | 0.0 | 0.0 |\n" for n in range(12)),
    "same rows": "| the region in the north | 0.0 | 0.0 |\n" * 12,
    "same lines of a csv file": "the region in the north,2020-01-01,12.50,0.00,0.00\n" * 12,
    "same lines with tabs": "the region in the north\tnot known\tnot known\t0.00\n" * 12,
    "same blocks of rows": "| the region in the north | 0.0 |\n| the region in the south | 1 |\n"
    * 9,
    "matrix": "matrix = [\n" + "    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],\n" * 12 + "]\n",
    "printed matrix": "[[0. 0. 0. 0. 0. 0. 0. 0. 0. 0. 0. 0. 0.]\n"
    + " [0. 0. 0. 0. 0. 0. 0. 0. 0. 0. 0. 0. 0.]\n" * 12,
    "columns of figures": "0.00        0.00        0.00        0.00        0.00\n" * 12,
    "list": "".join(f"- The mean of the column measured in year {n} is 3.\n" for n in range(9)),
    "plan": "# Load the data\n# Drop rows without a price\n# Fit a line\n# Print the slope\n" * 2,
    "headings": "".join(f"## The sales of region {n}\n\nThey grew.\n\n" for n in range(9)),
    "again": "df = df.dropna()\nprint(df.describe())\nprint(df['price'].mean())\n" * 2,
}


@pytest.mark.parametrize("text", LEGITIMATE.values(), ids=LEGITIMATE)
def test_what_recurs_for_a_reason_is_left_alone(text: str) -> None:
    assert not any(is_looping(text[:end]) for end in range(len(text) + 1))


CIRCLES = {
    "prose": "The mean of the column is the mean of the column, the sum, the count.\n" * 3,
    "code": "df = df.merge(other, on='the region', how='left', suffixes=('', '_r'))\n" * 3,
    "calls": "print(df['the region'].mean(), df['the region'].sum(), len(df))\n" * 3,
    "comments": "# first, second, third: the mean, the sum, the count of the column\n" * 3,
    "list of names": "names = ['the first name', 'the second name', 'the third name']\n" * 3,
    "endless rows": "| the region in the north | 0.0 | 0.0 |\n" * 40,
    "endless blocks of rows": "| the region in the north | 0 |\n| the region in the south | 1 |\n"
    * 20,
}


@pytest.mark.parametrize("text", CIRCLES.values(), ids=CIRCLES)
def test_what_recurs_without_end_or_reason_is_noticed(text: str) -> None:
    assert is_looping(text)


def _comments(count: int, alike: int) -> str:
    """Comments that begin with the same characters, so many of them."""
    start = "# " + "y" * (alike - 2)
    return "".join(f"{start}{number} and then\n" for number in range(10, 10 + count))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{'x' * 40}\n" * 3, True),  # 120 characters
        (f"{'x' * 39}\n" * 3, False),
        (f"# {'y' * 198}\n" * 2, True),  # 200 characters of comments
        (f"# {'y' * 197}\n" * 2, False),
        (f"{'y' * 300}\n" * 2, False),
        (_comments(5, 40), True),
        (_comments(4, 40), False),
        (_comments(5, 38), False),
        ("".join(f"a line of number {n:02}\n" for n in range(16)) * 3, True),
        ("".join(f"a line of number {n:02}\n" for n in range(17)) * 3, False),
        ("| 1 | 2 |\n" * 40, True),
        ("| 1 | 2 |\n" * 39, False),
        ("1.5  2.5  nan\n" * 40, True),
        ("a;b c;d\n" * 40, True),
        ("a;b c;d\n" * 39, False),
        ("ab" * 200, True),  # 400 characters of a line that goes on
        ("ab" * 199, False),
        ("12" * 200, False),
        ((f"{'a' * 129}b" * 9)[:900], True),  # pieces of 130
        ((f"{'a' * 130}b" * 9)[:900], False),
    ],
)
def test_as_much_as_is_said_must_be_copies(text: str, expected: bool) -> None:
    assert is_looping(text) is expected

"""Which names of a question no cell uses or shows."""

from __future__ import annotations

import pytest

from dm_jupyter.assist.grounding import unshown_values, unused_names

ISLAND = "How many penguins live on Deception Island?"


@pytest.mark.parametrize(
    "told",
    ["df[df.island == 'Biscoe'].size", "print(df.island.nunique())", "df[df.mass > 10]"],
)
def test_a_name_whose_first_word_no_cell_uses_is_unused(told: str) -> None:
    assert unused_names(ISLAND, ["penguins.csv", told]) == ["Deception Island"]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (ISLAND, "print('Deception:', n)"),
        (ISLAND, "df.query('island == \"deception\"')"),
        (ISLAND, "Deception  4"),
        (ISLAND, "no row has island == 'Deception' (of 344)"),
        ("How many live on Biscoe? Deception may be left out.", "i == 'Biscoe'"),
        ("What is the mean by Welch's test?", "df.corr()"),
        ("How many of the people live in Italy in December?", "df[df.town == 'Italy']"),
        ("How many of them live in the USA, and who is CEO?", "df.size"),
        ("What share of the women on the Titanic survived?", "titanic.csv"),
        ("How heavy are the Gento penguins?", "species == 'Gentoo'"),
        ("What is the mean Length of the petals?", "df['petallength'].mean()"),
        ("Wie viele Pinguine leben auf der Insel Torgersen?", "df.size"),
        ("What Is The Average Revenue In Each Store Category?", "df.groupby('store').sum()"),
    ],
)  # fmt: skip
def test_other_names_are_not_called_unused(question: str, told: str) -> None:
    assert unused_names(question, [told]) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Oman", "df[df.country == 'Romania'].people.sum()"),
        ("Mali", "df[df.country == 'Somalia'].people.sum()"),
        ("Niger", "df[df.country == 'Nigeria'].people.sum()"),
        ("Austria", "df[df.country == 'Mali']"),
    ],
)
def test_a_name_within_another_one_is_unused(name: str, told: str) -> None:
    question = f"How many people live in {name} on average?"
    assert unused_names(question, [told]) == [name]
    assert list(unshown_values("", question, [told])) == [name]
    assert list(unshown_values(f"- 'country': '{name}' (3)", "How many?", [told])) == [name]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Oman", "df[df.people == 'Omani']"),
        ("Japan", "japanese = df[df.kind == 3]"),
        ("Indian", "df.country.eq('India')"),
        ("Germans", "df.land == 'Germany'"),
        ("Oman", "rows_of_oman2 = 3"),
        ("Gentoo", "nGentoo = 3"),
        ("Tukey", "pairwise_tukeyhsd(a, b)"),
        ("Mann-Whitney", "stats.mannwhitneyu(a, b)"),
        ("McDonald", "df.firm == 'McDonald'"),
        ("Z\u00fcrich", "df.city == 'Zu\u0308rich'"),
        ("Zu\u0308rich", "df.city == 'Z\u00fcrich'"),
    ],
)
def test_another_form_of_a_name_is_that_name(name: str, told: str) -> None:
    question = f"How many people are there for {name} on average?"
    assert unused_names(question, [told]) == []
    assert unshown_values("", question, [told]) == {}

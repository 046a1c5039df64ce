from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.short_answer import states

WORDS = st.sampled_from(
    ["rock", "jazz", "metal", "is", "not", "or", "the", "genre", "which", "5", "7", ",", ".", ":"]
)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("Rock", "Rock"),
        ("Rock", "**rock**."),
        ("Rock", "The genre is Rock."),
        ("Rock", "The answer is: \u201cRock\u201d."),
        ("Rock", "The answer is:\n\nRock"),
        ("Rock", "Answer: Rock"),
        ("Rock", "Genres: Rock"),
        ("Accept", "The album belongs to the artist Accept."),
        ("Calgary", "The employee who helps the customer lives in Calgary."),
        ("Balls to the Wall", "It is Balls to the Wall."),
        ("Southern and Central Asia", "Kabul is located in Southern and Central Asia."),
        ("2012-08-25", "The first one was hired on 2012-08-25."),
        ("Papiamento", "It is Papiamento, which is the most spoken language."),
        ("Accept", "Der K\u00fcnstler hei\u00dft Accept."),
        ("347", "There are 347 albums."),
        ("347", "There are 347 albums in the 3 shops."),
        ("3", "There are 3 of them in the 3 shops."),
        ("3", "There are 3 albums."),
    ],
)
def test_a_plain_sentence_states_its_value(value: str, answer: str) -> None:
    assert states(value, answer, "Which artist, genre or number of albums have the 3 shops?")


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("Rock", "Rock, Jazz or Metal"),
        ("Metal", "Rock, Jazz or Metal"),
        ("Metal", "The genre is Rock, Jazz, Metal."),
        ("Metal", "Rock and Metal"),
        ("Metal", "The genre could be Rock / Metal."),
        ("Rock", "It is not rock."),
        ("Rock", "It isn't Rock."),
        ("Rock", "The genre is Jazz. It is followed by Rock"),
        ("Rock", "Is it Rock or is it Rock"),
        ("Rock", "1. Jazz\n2. Rock"),
        ("Rock", "Jazz: Rock"),
        ("Rock", "It is Rock, which is wrong."),
        ("Rock", "Es ist kein Rock"),
        ("Accept", "I can not accept this question without data."),
        ("2012-08-25", "2012-08-25 or 2012-08-26"),
        ("2012-08-26", "From 2012-08-25 to 2012-08-26"),
        ("5", "I could not find the top 5."),
        ("5", "Here are the top 5."),
        ("5", "They are not 5."),
        ("7", "It is not 7."),
        ("7", "7 or 8"),
        ("", "nothing"),
    ],
)
def test_guesses_denials_and_repeated_questions_state_nothing(value: str, answer: str) -> None:
    assert not states(value, answer, "Which are the top 5 of both genres and artists?")


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("Rock", True),
        ("The more common genre is Rock.", True),
        ("Jazz Rock", False),
        ("Rock is less common", False),
        ("Among Jazz and Rock", False),
    ],
)
def test_a_value_that_the_question_names_is_stated_behind_a_verb(answer: str, stated: bool) -> None:
    question = "Which genre is more common, Rock or Jazz?"
    assert states("Rock", answer, question) is stated


@given(st.text(), st.text(), st.text())
def test_no_text_raises(value: str, answer: str, question: str) -> None:
    assert states(value, answer, question) in {True, False}


@given(st.lists(WORDS, max_size=8).map(" ".join), st.lists(WORDS, max_size=8).map(" ".join))
def test_no_answer_states_two_values(answer: str, question: str) -> None:
    assert sum(states(value, answer, question) for value in ("rock", "jazz", "metal")) <= 1
    assert sum(states(value, answer, question) for value in ("5", "7")) <= 1 or not question

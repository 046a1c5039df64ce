"""Dates with names of months, compact and placeholder dates, code pages, and "NA" among codes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dm_jupyter.data.profile import FileProfile
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


class Text:
    """Writes a text file in an encoding, profiles it and runs its load code."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def __call__(
        self, content: str, encoding: str = "utf-8", end: bytes = b""
    ) -> tuple[pd.DataFrame, FileProfile]:
        path = self._folder / "x.csv"
        path.write_bytes(content.encode(encoding) + end)
        profile = assert_load_code_agrees(path, self._monkeypatch)
        return loaded(self._folder, profile.tables[0], self._monkeypatch), profile


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Text:
    return Text(tmp_path, monkeypatch)


def _note(profile: FileProfile, name: str) -> str:
    return next(column.note or "" for column in profile.tables[0].columns if column.name == name)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3. März 2024", "17. Dez. 2023"),
        ("3 mars 2024", "17 déc. 2023"),
        ("3 de marzo de 2024", "17 de diciembre de 2023"),
        ("3 marzo 2024", "17 dicembre 2023"),
        ("3 mrt. 2024", "17 december 2023"),
        ("3º de março de 2024", "17 dez. 2023"),
        ("3 marca 2024 r.", "17 grudnia 2023 r."),
        ("Sunday, 3 March 2024", "Sunday, 17 Dec 2023"),
    ],
)
def test_names_of_months_become_dates(text: Text, first: str, second: str) -> None:
    frame, profile = text(f"id;when\n1;{first}\n2;-\n3;{second}\n")
    expected = [pd.Timestamp(2024, 3, 3), pd.NaT, pd.Timestamp(2023, 12, 17)]
    pd.testing.assert_series_equal(
        frame["when"], pd.Series(expected, name="when"), check_dtype=False
    )
    assert "read as missing: '-'" in _note(profile, "when")


def test_the_first_of_a_month_in_french_and_a_short_name_in_polish(text: Text) -> None:
    frame, _ = text("a;b\n1er août 2024;1 wrz 2024\n2 juil. 2024;2 paź 2024\n")
    assert frame["a"].tolist() == [pd.Timestamp(2024, 8, 1), pd.Timestamp(2024, 7, 2)]
    assert frame["b"].tolist() == [pd.Timestamp(2024, 9, 1), pd.Timestamp(2024, 10, 2)]


@pytest.mark.parametrize("odd", ["31. Februar 2024", "3. Mürz 2024", "3. März 24", "offen"])
def test_one_text_that_is_no_such_date_leaves_the_column_as_it_is(text: Text, odd: str) -> None:
    frame, profile = text(f"id;when\n1;3. März 2024\n2;4. Mai 2024\n3;5. Mai 2024\n4;{odd}\n")
    assert frame["when"].tolist()[3] == odd
    assert "date" in _note(profile, "when") + said(profile)


def test_a_time_behind_a_written_date_is_not_lost(text: Text) -> None:
    frame, profile = text("id;when\n1;3. März 2024 14:05\n2;4. Mai 2024 15:05\n")
    assert frame["when"].tolist() == ["3. März 2024 14:05", "4. Mai 2024 15:05"]
    assert "dates as text" in _note(profile, "when")


def test_whole_numbers_that_write_dates_are_named(text: Text) -> None:
    _, profile = text(
        "a,b,c,d\n20240131,20240131101500,20240131,20240105T101500\n"
        "20240229,20240229235959,20240230,20240106T101500\n,20240301000000,20240288,\n"
    )
    assert "YYYYMMDD, format='%Y%m%d'" in _note(profile, "a")
    assert "YYYYMMDDhhmmss" in _note(profile, "b")
    assert not _note(profile, "c")
    assert "dates as text" in _note(profile, "d")


@pytest.mark.parametrize("far", ["31.12.9999", "01.01.1900"])
def test_a_date_that_stands_for_none_is_named(text: Text, far: str) -> None:
    frame, profile = text(f"id;end\n1;{far}\n2;13.02.2024\n3;28.02.2024\n")
    assert frame["end"].dt.year[0] in {9999, 1900}
    assert f"'{far}'" in said(profile)


def test_an_early_birthday_among_others_is_no_placeholder(text: Text) -> None:
    _, profile = text("id;born\n1;01.01.1900\n2;13.02.1905\n3;28.02.1921\n")
    assert "far from" not in said(profile)


WORDS = {
    "de": "id;name\n1;Müller\n2;Köln\n3;Jäger\n4;Größe\n",
    "fr": "id;nom\n1;Léa\n2;Besançon\n3;Hélène\n4;Éric\n",
    "dk": "id;navn\n1;Ærø\n2;Købmagergade\n3;Århus\n",
    "caps": "ID;STADT\n1;MÜNCHEN\n2;KÖLN\n3;DÜSSELDORF\n",
    "one": "id;name\n1;Köln\n2;Bonn\n3;Berlin\n",
}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp850", "mac_roman"])
@pytest.mark.parametrize("words", ["de", "fr", "dk", "caps"])
def test_the_code_page_is_the_one_that_makes_words(text: Text, words: str, encoding: str) -> None:
    frame, profile = text(WORDS[words], encoding)
    rows = [line.split(";")[1] for line in WORDS[words].splitlines()[1:]]
    assert frame.iloc[:, 1].tolist() == rows
    assert ("is a guess" in said(profile)) is (encoding in {"cp850", "mac_roman"})


def test_one_umlaut_is_no_chinese_sign(text: Text) -> None:
    frame, _ = text(WORDS["one"], "cp1252")
    assert frame["name"].tolist() == ["Köln", "Bonn", "Berlin"]


def test_quotes_and_units_beyond_ascii_are_windows_ones(text: Text) -> None:
    frame, _ = text("id;t\n1;5 €\n2;“Wien”\n3;l’eau – 3 °C\n4;½ ± µm\n", "cp1252")
    assert frame["t"].tolist() == ["5 €", "“Wien”", "l’eau – 3 °C", "½ ± µm"]


PAGES = {
    "cp1250": ["Łódź", "Gdańsk", "Częstochowa", "Przemyśl", "Żory", "Białystok"],
    "iso8859_2": ["Plzeň", "Děčín", "Třebíč", "Růžena", "Žatec", "Ústí"],
    "cp1251": ["Москва", "Новосибирск", "Население", "Цена"],
    "koi8_r": ["Казань", "Екатеринбург", "Город", "Область"],
    "cp866": ["Товар", "Количество", "Продажи", "Регион"],
    "cp1253": ["Αθήνα", "Θεσσαλονίκη", "Πληθυσμός", "Τιμή"],
    "cp1254": ["İstanbul", "Şanlıurfa", "Diyarbakır", "Muğla", "Satış", "Müşteri"],
    "cp1257": ["Šiauliai", "Panevėžys", "Kėdainiai", "Mažeikiai", "Jūratė", "Gyventojų"],
    "cp932": ["東京都", "大阪府", "売上", "合計"],
    "gb18030": ["北京", "上海", "销售额", "城市人口"],
    "big5hkscs": ["臺北市", "高雄市", "銷售額", "人口總數"],
    "cp949": ["서울특별시", "부산광역시", "매출", "합계"],
}


@pytest.mark.parametrize("page", PAGES)
def test_code_pages_of_other_languages_are_found(text: Text, page: str) -> None:
    rows = PAGES[page]
    frame, _ = text("id;name\n" + "".join(f"{at};{row}\n" for at, row in enumerate(rows)), page)
    assert frame["name"].tolist() == rows


@pytest.mark.parametrize("page", ["cp932", "gb18030", "cp1251", "cp1253"])
def test_a_long_file_is_read_in_the_page_of_a_short_one(text: Text, page: str) -> None:
    rows = PAGES[page] * 5000
    frame, profile = text("name\n" + "".join(f"{row}\n" for row in rows), page)
    assert frame["name"].tolist() == rows
    assert "not valid" not in said(profile)


@pytest.mark.parametrize(("page", "bad"), [("cp1252", b"\x81"), ("cp1251", b"\x98")])
def test_one_byte_that_a_code_page_lacks_spoils_no_file(text: Text, page: str, bad: bytes) -> None:
    rows = (["Москва", "Казань"] if page == "cp1251" else ["5 €", "Köln"]) * 9000
    frame, profile = text("\n".join(["name", *rows, ""]), page, bad + b"x\n")
    assert f"some bytes are not valid {page}" in said(profile)
    assert frame["name"].tolist() == [*rows, "\ufffdx"]


def test_hungarian_is_told_from_western_languages_by_two_letters(text: Text) -> None:
    rows = ["Győr", "Pécs", "Székesfehérvár", "Hódmezővásárhely", "Erzsébet", "Főváros"]
    frame, _ = text("id;name\n" + "".join(f"{at};{row}\n" for at, row in enumerate(rows)), "cp1250")
    assert frame["name"].tolist() == rows
    portuguese = "id;nome\n1;Camões\n2;Mário\n3;Óbidos\n4;Simões\n"
    assert text(portuguese, "cp1252")[0]["nome"].tolist() == ["Camões", "Mário", "Óbidos", "Simões"]


@pytest.mark.parametrize("rows", [["£12", "£7", "£100"], ["50 m³", "7 km²", "3 m²"], ["¾", "½"]])
def test_signs_of_prices_and_units_are_no_polish_letters(text: Text, rows: list[str]) -> None:
    frame, _ = text("id;size\n" + "".join(f"{at};{row}\n" for at, row in enumerate(rows)), "cp1252")
    assert frame["size"].tolist() in (rows, [12, 7, 100])


def test_a_code_page_known_from_few_letters_is_a_guess(text: Text) -> None:
    _, profile = text("id;city\n1;Plzeň\n2;Jičín\n3;Žďár\n4;Třebíč\n", "cp1250")
    assert "is a guess" in said(profile)


def test_namibia_is_kept_among_countries(text: Text) -> None:
    frame, profile = text("country,pop\nDE,83\nNA,2.5\nFR,\n,5\n")
    assert frame["country"].tolist()[:3] == ["DE", "NA", "FR"]
    assert frame["country"].isna().tolist() == [False, False, False, True]
    assert frame["pop"].isna().tolist() == [False, False, True, False]
    assert "'NA' in 'country' is kept" in said(profile)


def test_na_among_other_codes_is_named_and_left_missing(text: Text) -> None:
    frame, profile = text("state,pop\nCA,83\nNA,2\nTX,67\nNY,5\n")
    assert frame["state"].isna().sum() == 1
    assert "'NA' stands among codes in 'state'" in said(profile)


def test_na_among_numbers_too_is_the_mark_of_the_file(text: Text) -> None:
    frame, profile = text("country,pop\nDE,NA\nNA,2.5\nFR,3\n")
    assert frame["country"].isna().sum() == frame["pop"].isna().sum() == 1
    assert "'NA'" not in said(profile)


def test_two_tables_of_texts_in_one_are_named(text: Text) -> None:
    frame, profile = text("name,city\nAnn,Rome\nBob,Oslo\n\nitem,color\nCup,red\nHat,red\n")
    assert len(frame) == 5
    assert "row 5 of the file may be the header" in said(profile)


def test_labels_to_the_right_that_tell_of_their_rows_are_of_one_table(text: Text) -> None:
    towns = ["Oslo", "Rome", "Paris", "Berlin", "Vienna", "Madrid"]
    rows = "".join(f"{at},{town} North,,{town} N.,{at}\n" for at, town in enumerate(towns))
    frame, profile = text(f"wins,team,,label,rounds\n{rows}")
    assert len(profile.tables) == 1
    assert frame.columns.tolist() == ["wins", "team", "label", "rounds"]

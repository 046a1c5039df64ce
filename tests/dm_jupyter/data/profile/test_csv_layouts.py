"""Layouts of text files: their load code gives the table that a careful reader sees."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dm_jupyter.data.profile import FileProfile
from dm_jupyter.data.profile.csv_file import WHOLE_BYTES
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


class Text:
    """Writes a text file, profiles it and runs the load code of each of its tables."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def tables(self, content: str, name: str = "x.csv") -> tuple[list[pd.DataFrame], FileProfile]:
        path = self._folder / name
        path.write_bytes(content.encode())
        profile = assert_load_code_agrees(path, self._monkeypatch)
        frames = [loaded(self._folder, table, self._monkeypatch) for table in profile.tables]
        return frames, profile

    def __call__(self, content: str, name: str = "x.csv") -> tuple[pd.DataFrame, FileProfile]:
        frames, profile = self.tables(content, name)
        assert len(frames) == 1
        return frames[0], profile


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Text:
    return Text(tmp_path, monkeypatch)


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "\ufeffSEP=;\n"])
def test_a_line_that_names_the_separator_is_no_row(text: Text, first: str) -> None:
    frame, _ = text(f"{first}a;b\n1,5;x, y\n2,5;z\n")
    assert frame.to_dict("list") == {"a": [1.5, 2.5], "b": ["x, y", "z"]}


def test_a_header_of_two_rows_gives_joined_names(text: Text) -> None:
    frame, profile = text("Region,Sales,,Notes\n,2023,2024,\nN,1,2,x\nS,3,4,y\n")
    assert list(frame.columns) == ["Region", "Sales | 2023", "Sales | 2024", "Notes"]
    assert frame["Sales | 2024"].tolist() == [2, 4]
    assert "joined with ' | '" in said(profile)


def test_a_header_of_three_rows_fills_its_groups(text: Text) -> None:
    frame, _ = text("k,2023,,,\n,N,,S,\n,a,b,a,b\nx,1,2,3,4\ny,5,6,7,8\n")
    names = ["k", "2023 | N | a", "2023 | N | b", "2023 | S | a", "2023 | S | b"]
    assert list(frame.columns) == names
    assert frame["2023 | S | b"].tolist() == [4, 8]


def test_a_first_row_without_values_is_no_header(text: Text) -> None:
    frame, _ = text("id,x,y\nn/a,n/a,n/a\n2,3,4\n3,5,6\n")
    assert len(frame) == 3


@pytest.mark.parametrize(
    ("units", "notes"),
    [
        (",EUR,%", [None, "in EUR", "in %"]),
        ("-,[kg],(m/s)", [None, "in [kg]", "in (m/s)"]),
        ("text,int,float", [None, None, None]),
    ],
)
def test_a_row_of_units_is_a_note_and_no_row(
    text: Text, units: str, notes: list[str | None]
) -> None:
    frame, profile = text(f"k,a,b\n{units}\nx,1,2.5\ny,2,3.5\n")
    assert frame["a"].tolist() == [1, 2]
    assert [column.note for column in profile.tables[0].columns] == notes


def test_units_that_tell_columns_apart_are_part_of_the_names(text: Text) -> None:
    frame, _ = text("k,mass,mass\n,kg,lb\nx,1,2.2\ny,2,4.4\n")
    assert list(frame.columns) == ["k", "mass | kg", "mass | lb"]


def test_tables_below_each_other_are_loaded_each(text: Text) -> None:
    frames, profile = text.tables(
        "Table 1: People\nid,name,age\n1,Ann,30\n2,Bob,40\n\n"
        "Table 2: Codes\ncode,meaning\nA,active\nB,blocked\n\nTable 3\nk,v\nx,1\n"
    )
    assert [frame.shape for frame in frames] == [(2, 3), (2, 2), (1, 2)]
    assert frames[0]["age"].tolist() == [30, 40]
    assert frames[1]["meaning"].tolist() == ["active", "blocked"]
    names = [table.name for table in profile.tables]
    assert names[:2] == ["lines 2 to 4 (Table 1: People)", "lines 7 to 9 (Table 2: Codes)"]
    assert "3 tables" in said(profile)


def test_line_breaks_in_cells_do_not_move_the_second_table(text: Text) -> None:
    frames, _ = text.tables('id,t\n1,"a\nb"\n2,"c"\n\nid2,v,w\n1,2,3\n2,3,4\n')
    assert frames[1].to_dict("list") == {"id2": [1, 2], "v": [2, 3], "w": [3, 4]}


def test_tables_side_by_side_keep_their_names(text: Text) -> None:
    frames, _ = text.tables("y,v,,y,v\n2020,1,,2020,5\n2021,2,,2021,6\n2022,3,,,\n")
    assert [list(frame.columns) for frame in frames] == [["y", "v"], ["y", "v"]]
    assert frames[0]["v"].tolist() == [1, 2, 3]
    assert frames[1]["v"].tolist() == [5, 6]


@pytest.mark.parametrize(
    "content",
    [
        "Station:,Berlin\nCode:,123\n\nday,temp,rain\n1,3,0\n2,4,1\n",
        "Annual report, 2024\nBy: x\n\nday,temp,rain,wind\n1,3,0,2\n2,4,1,2\n",
    ],
)
def test_labels_and_values_above_a_table_are_no_table(text: Text, content: str) -> None:
    frame, profile = text(content)
    assert frame["temp"].tolist() == [3, 4]
    assert "lines above the header are skipped" in said(profile)


def test_remarks_between_rows_are_left_out(text: Text) -> None:
    frame, profile = text("# made 2024\na,b\n1,2\n# sensor replaced, see log\n3,4\n# end\n")
    assert frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert "2 lines of remarks" in said(profile)


def test_a_hash_sign_in_a_value_is_no_remark(text: Text) -> None:
    frame, _ = text("id,tag\n1,#blue\n#2,red\n")
    assert frame["tag"].tolist() == ["#blue", "red"]


@pytest.mark.parametrize(
    ("content", "firsts"),
    [
        ("# exported 2024\ntag,count\n#love,5\n#fun,3\nplain,2\n#x,9\n", "#love #fun plain #x"),
        ("# palette 2024\ncolor,count\n#ff0000,5\n#00ff00,3\n", "#ff0000 #00ff00"),
        (
            "Name,Total,Note\n#1001,5\n#1002,7,gift\n#1003,9\n#1004,11\n#1005,2,x\n",
            "#1001 #1002 #1003 #1004 #1005",
        ),
        ("# made 2024\ntag,city\n#love,Rome\n#fun,Oslo\n# end\n", "#love #fun"),
        ("# made 2024\ntag,n,v\n#love,,\n#fun,1,n/a\na,2,3\n", "#love #fun a"),
        ("# palette\ncolor\n#ff0000\n#00ff00\n# end\n", "#ff0000 #00ff00"),
        ("# made 2024\n#id,name\n1,a\n2,b\n", "1 2"),
    ],
)
def test_rows_that_begin_with_a_hash_sign_are_data(text: Text, content: str, firsts: str) -> None:
    frame, _ = text(content)
    assert frame.iloc[:, 0].astype(str).tolist() == firsts.split()


def test_a_record_behind_a_hash_sign_is_a_remark_among_figures(text: Text) -> None:
    frame, profile = text("# made 2024\na,b\n1,2\n#3,4\n5,6\n")
    assert frame.to_dict("list") == {"a": [1, 5], "b": [2, 6]}
    assert "1 lines of remarks" in said(profile)


def test_remarks_below_the_header_are_counted_too(text: Text) -> None:
    frame, profile = text("# made 2024\na,b\n# in meters\n# by hand\n1,2\n# moved\n3,4\n")
    assert frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert "3 lines of remarks" in said(profile)


def test_many_remarks_cut_no_value_with_a_hash_sign(text: Text) -> None:
    rows = "".join(f"#{n},a#{n},{n}\n# see the log\n" for n in range(150))
    frame, profile = text(f"# made 2024\ntag,other,n\n{rows}")
    assert frame["other"].tolist() == [f"a#{n}" for n in range(150)]
    assert frame["tag"].tolist() == [f"#{n}" for n in range(150)]
    assert "150 lines of remarks" in said(profile)
    rows = "".join(f"{n},{n}\n# see the log\n" for n in range(150))
    frame, profile = text(f"# made 2024\na,b\n{rows}")
    assert frame["b"].tolist() == [*range(150)]
    assert 'comment="#"' in str(profile.tables[0].load_code)
    assert "cut at '#'" not in said(profile)


def test_values_that_very_many_remarks_cut_are_warned_of(text: Text) -> None:
    rows = "".join(f"{n},a#{n}\n# see the log\n" for n in range(250))
    frame, profile = text(f"# made 2024\nn,other\n{rows}")
    assert set(frame["other"]) == {"a"}
    assert "values are cut at '#'" in said(profile)


def test_rows_and_columns_of_separators_alone_are_left_out(text: Text) -> None:
    frame, _ = text("a;b;;\n1;2;;\n;;;\n3;4;;\n;;;\n;;;\n")
    assert frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert str(frame["a"].dtype) == "int64"


def test_many_empty_rows_are_left_out(text: Text) -> None:
    frame, _ = text("a,b\n" + "1,2\n,\n" * 150)
    assert (len(frame), frame["b"].sum()) == (150, 300)


def test_a_note_padded_with_separators_is_a_footer(text: Text) -> None:
    frame, profile = text("k;a;b\nN;1;2\nS;2;3\n;;\nSource: office;;\n")
    assert frame["a"].tolist() == [1, 2]
    assert "Source: office" in said(profile)


def test_a_last_row_without_figures_is_data(text: Text) -> None:
    frame, _ = text("country,a,b\nChile,1,2\nNorway,3,4\nIceland,,\n")
    assert frame["country"].tolist()[-1] == "Iceland"


def test_the_index_that_pandas_wrote_is_an_index(text: Text) -> None:
    frame, profile = text(",a,b\n0,x,1\n1,y,2\n2,z,3\n")
    assert list(frame.columns) == ["a", "b"]
    assert "it is the index" in said(profile)


def test_another_first_column_without_a_name_stays(text: Text) -> None:
    frame, _ = text(",a\n5,1\n6,2\n9,3\n")
    assert list(frame.columns) == ["Unnamed: 0", "a"]


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("id,name\n1,'Smith, J'\n2,'Doe, A'\n", "Smith, J"),
        ('id,name\n1,"he said \\"no, no\\" twice"\n2,"x"\n', 'he said "no, no" twice'),
        ('id, name\n1, "p, q"\n2, "x"\n', "p, q"),
    ],
)
def test_other_ways_to_quote(text: Text, content: str, value: str) -> None:
    frame, _ = text(content)
    assert list(frame.columns) == ["id", "name"]
    assert frame["name"].tolist()[0] == value


def test_apostrophes_in_texts_quote_nothing(text: Text) -> None:
    frame, _ = text("id,t\n1,it's\n2,'so' called\n")
    assert frame["t"].tolist() == ["it's", "'so' called"]


def test_blanks_that_fill_up_texts_are_no_part_of_them(text: Text) -> None:
    frame, _ = text("name   ,city   ,v\nAnn    ,Berlin ,  5\nBob    ,Rome   , 10\n")
    assert frame.to_dict("list") == {"name": ["Ann", "Bob"], "city": ["Berlin", "Rome"],
                                     "v": [5, 10]}  # fmt: skip


def test_commas_in_a_single_column_part_nothing(text: Text) -> None:
    frame, _ = text("comment\nhello there\nthis is, a test\nbye\n")
    assert frame["comment"].tolist() == ["hello there", "this is, a test", "bye"]


FIXED = """\
ID  Name            City          Amount
1   Ann Lee         New York       12.50
2   Bob             Rome          103.00
3   Cy de la Cruz                   5.25
"""


@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.prn"])
def test_columns_at_fixed_places_may_hold_blanks_and_gaps(text: Text, name: str) -> None:
    frame, profile = text(FIXED, name)
    assert "read_fwf" in str(profile.tables[0].load_code)
    assert frame["Name"].tolist() == ["Ann Lee", "Bob", "Cy de la Cruz"]
    assert frame["City"].isna().tolist() == [False, False, True]
    assert frame["Amount"].tolist() == [12.5, 103.0, 5.25]


def test_titles_rules_and_notes_around_fixed_columns_are_left_out(text: Text) -> None:
    frame, _ = text(
        "Weather\n\nStation    Temp  Rain\n---------  ----  ----\nBerlin     12.5   0.3\n"
        "New York          1.2\nRome       22.0\n\nSource: x\n",
        "x.txt",
    )
    assert frame["Station"].tolist() == ["Berlin", "New York", "Rome"]
    assert frame["Rain"].dropna().tolist() == [0.3, 1.2]


def test_a_table_drawn_with_lines_is_read(text: Text) -> None:
    frame, _ = text("| k   | v  |\n|-----|---:|\n| a b | 12 |\n| c   |  7 |\n", "x.txt")
    assert frame.to_dict("list") == {"k": ["a b", "c"], "v": [12, 7]}


def test_a_first_row_of_figures_below_texts_is_data(text: Text) -> None:
    frame, profile = text("Ann,5,3.5\nBob,6,4.5\nCy,7,9.1\n")
    assert frame.iloc[0].tolist() == ["Ann", 5, 3.5]
    assert "no header" in said(profile)


def test_a_first_row_that_comes_again_cell_by_cell_is_data(text: Text) -> None:
    frame, _ = text("Ann,Rome,red\nBob,Rome,blue\nCy,Oslo,red\nDi,Oslo,blue\n")
    assert len(frame) == 4


def test_a_large_file_profits_from_the_same_layout(text: Text) -> None:
    rows = "".join(f"{i},{i % 50},{'y' * 90}\n" for i in range(1, 180_001))
    content = f"Report\nby x\n\nid,temp,text\n,°C,\n{rows}\n# end\n\nSource: y\n"
    assert len(content) > WHOLE_BYTES
    frame, profile = text(content)
    assert (len(frame), frame["id"].iloc[-1]) == (180_000, 180_000)
    assert profile.tables[0].columns[1].note == "in °C"


def test_each_row_that_is_counted_is_loaded(text: Text) -> None:
    _, profile = text("a,b\n1,2\n\n3,4\n  \n5,6\n")
    assert "were counted" not in said(profile)
    assert profile.tables[0].row_count == 3


def test_tabs_that_align_columns_part_them_once(text: Text) -> None:
    frame, _ = text("gene\t\tstart\t\tend\nA\t\t12\t\t15\nB\t\t7\t\t9\n")
    assert list(frame.columns) == ["gene", "start", "end"]


def test_fixed_columns_without_a_header_keep_the_first_row(text: Text) -> None:
    frame, profile = text("001 Ann       12.5\n002 Bob Lee  103.0\n003 Cy         5.2\n", "x.txt")
    assert frame["column_1"].tolist() == ["001", "002", "003"]
    assert frame["column_3"].tolist() == [12.5, 103.0, 5.2]
    assert "no header" in said(profile)


def test_long_notes_below_a_short_table_do_not_hide_its_separator(text: Text) -> None:
    notes = "".join(f'"Note {i}: a sentence, which says much; it is long."\n' for i in range(40))
    frame, profile = text(f'Notes\t"Year"\tDeaths\n\t"2010"\t5\n\t"2011"\t6\n"---"\n{notes}')
    assert frame["Deaths"].tolist() == [5, 6]
    assert "Note 0" in said(profile)


def test_a_note_in_few_words_is_a_footer_and_a_label_is_none(text: Text) -> None:
    frame, _ = text("k,a,b\nx,1,2\nNorth East,,\nNA = not there.,,\n")
    assert frame["k"].tolist() == ["x", "North East"]


def test_amounts_in_parentheses_are_no_marks_of_notes(text: Text) -> None:
    frame, profile = text("change,shop\n(1)%,Bonn\n(4)%,Kiel\n")
    assert frame["change"].tolist() == [-1, -4]
    assert "note" not in said(profile)
    frame, profile = text("n,shop,a\n(1),Bonn,5\n(2),Kiel,6\n(1) estimated,,\n")
    assert len(frame) == 2
    assert "(1) estimated" in said(profile)


@pytest.mark.parametrize(
    "content",
    [
        "probe;blei\nP01;<0,05\nP02;0,31\nP03;0,4\n",
        "name;value\nfoo;missing value\nbar;5\nbaz;6\n",
        "item;price;stock\nA;on request;sold out\nB;12.5;3\nC;7.0;9\n",
        "v;t\n5 (est.);x\n7;x\n8;y\n",
    ],
)
def test_a_first_row_without_bare_figures_is_data(text: Text, content: str) -> None:
    frame, _ = text(content)
    header, *rows = content.splitlines()
    assert frame.columns.tolist() == header.split(";")
    assert len(frame) == len(rows)

"""Builds the workbooks of the awkward files: what stands in their cells can be read here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import CoveredTableCell, Table, TableCell, TableRow
from odf.text import P
from openpyxl.worksheet.worksheet import Worksheet

BOOKS: dict[str, Callable[[Path], None]] = {}
"""What builds each workbook, by its name."""
Fill = Callable[[Worksheet], None]


def _sheet(name: str) -> Callable[[Fill], Fill]:
    """Enters a workbook of one sheet, which the function fills."""

    def enter(fill: Fill) -> Fill:
        def build(path: Path) -> None:
            book = openpyxl.Workbook()
            sheet = book.active
            assert isinstance(sheet, Worksheet)
            fill(sheet)
            book.save(path)

        BOOKS[name] = build
        return fill

    return enter


def _rows(sheet: Worksheet, rows: Sequence[Sequence[Any]], merges: Sequence[str] = ()) -> None:
    for row in rows:
        sheet.append(list(row))
    for merge in merges:
        sheet.merge_cells(merge)


@_sheet("haushalt_zwei_kopfzeilen.xlsx")
def _budget(sheet: Worksheet) -> None:
    rows = [
        ["Haushaltsplan der Gemeinde", None, None, None, None],
        [],
        ["Bereich", 2023, None, 2024, None],
        [None, "Plan", "Ist", "Plan", "Ist"],
        ["Schulen", 120000, 118500.5, 125000, 126300.25],
        ["Straßen", 80000, 95250.75, 90000, 71000],
        ["Kultur", 15000, 14900, 15500, 15512.1],
        ["Feuerwehr", 22000, 21000.4, 23000, 22950],
    ]
    _rows(sheet, rows, ["A1:E1", "A3:A4", "B3:C3", "D3:E3"])


@_sheet("trial_three_levels.xlsx")
def _trial(sheet: Worksheet) -> None:
    rows = [
        ["Patient", "Visit 1", None, None, "Visit 2", None, None],
        [None, "Blood pressure", None, "Pulse", "Blood pressure", None, "Pulse"],
        [None, "sys", "dia", "rest", "sys", "dia", "rest"],
        ["P-001", 128, 82, 71, 121, 79, 68],
        ["P-002", 141, 95, 80, 138, 90, 77],
        ["P-003", 117, 74, 64, None, None, None],
        ["P-004", 133, 85, 72, 130, 84, 70],
    ]
    _rows(sheet, rows, ["A1:A3", "B1:D1", "E1:G1", "B2:C2", "E2:F2"])


@_sheet("wasseranalyse_einheiten.xlsx")
def _water(sheet: Worksheet) -> None:
    rows = [
        ["Probe", "Nitrat", "pH", "Leitfähigkeit"],
        [None, "(mg/l)", "(-)", "(µS/cm)"],
        ["W1", 12.5, 7.1, 512],
        ["W2", 48.25, 6.8, 733],
        ["W3", 3.1, 7.4, 405],
        ["W4", 22.0, 7.0, 598],
    ]
    _rows(sheet, rows)


@_sheet("population_title_notes.xlsx")
def _population(sheet: Worksheet) -> None:
    rows = [
        ["Table 3.1 Resident population by canton"],
        ["In thousands, end of year"],
        [],
        ["Canton", 2021, 2022, "2023 p"],
        ["Zürich", 1564.7, 1579.9, 1605.5],
        ["Bern", 1047.5, 1051.4, 1063.5],
        ["Uri", 37.0, 37.3, 37.9],
        ["Genève", 509.4, 514.1, 524.4],
        [],
        ["p provisional figures"],
        ["Source: population statistics"],
        ["© Statistics Office 2024"],
    ]
    _rows(sheet, rows, ["A1:D1", "A2:D2"])


@_sheet("sales_grand_total.xlsx")
def _sales(sheet: Worksheet) -> None:
    rows = [
        ["Product", "Jan", "Feb", "Mar"],
        ["Tea", 120.5, 99.0, 140.25],
        ["Coffee", 310.0, 295.75, 333.0],
        ["Cocoa", 45.5, 60.25, 38.0],
        ["Grand Total", 476.0, 455.0, 511.25],
    ]
    _rows(sheet, rows)


@_sheet("two_tables_below.xlsx")
def _below(sheet: Worksheet) -> None:
    rows = [
        ["Product", "Units", "Price"],
        ["Bolt", 100, 0.12],
        ["Nut", 250, 0.08],
        ["Washer", 400, 0.02],
        [],
        [],
        ["Depot", "City", "Staff", "Opened"],
        ["D1", "Porto", 12, 1999],
        ["D2", "Braga", 5, 2011],
        ["D3", "Faro", 7, 2020],
    ]
    _rows(sheet, rows)


@_sheet("two_tables_beside.xlsx")
def _beside(sheet: Worksheet) -> None:
    rows = [
        ["Product", "Units", None, None, "Depot", "Staff", "City"],
        ["Bolt", 100, None, None, "D1", 12, "Porto"],
        ["Nut", 250, None, None, "D2", 5, "Braga"],
        ["Washer", 400, None, None, "D3", 7, "Faro"],
        ["Screw", 80, None, None, None, None, None],
        ["Nail", 999, None, None, None, None, None],
    ]
    _rows(sheet, rows)


@_sheet("error_cells.xlsx")
def _errors(sheet: Worksheet) -> None:
    rows = [
        ["Region", "Sales", "Share"],
        ["North", 120, 0.25],
        ["South", "#REF!", "#DIV/0!"],
        ["East", 80, 0.5],
        ["West", "#N/A", 0.25],
    ]
    _rows(sheet, rows)


@_sheet("formulas_never_calculated.xlsx")
def _formulas(sheet: Worksheet) -> None:
    _rows(sheet, [["Item", "Net", "Tax", "Gross"]])
    for row, (item, net) in enumerate([("A", 100), ("B", 50.5), ("C", 10), ("D", 7.25)], start=2):
        sheet.append([item, net, 0.19, f"=B{row}*(1+C{row})"])


@_sheet("zahlen_als_text.xlsx")
def _as_text(sheet: Worksheet) -> None:
    rows = [
        ["Kunde", "Umsatz", "Rabatt"],
        ["Alpha", "1.234,50", "2,5 %"],
        ["Beta", "99,00", "0 %"],
        ["Gamma", "-12,75", "10 %"],
        ["Delta", "1.000.000,00", "3,25 %"],
    ]
    _rows(sheet, rows)


@_sheet("codes_as_text.xlsx")
def _codes(sheet: Worksheet) -> None:
    rows = [
        ["Material", "Plant", "Batch", "Qty"],
        ["000000000000100234", "0100", "1E5", 12],
        ["000000000000100235", "0100", "200", 7.5],
        ["000000000000200001", "0200", "3E7", 0],
        ["000000000000200002", "0310", "410", 99],
    ]
    _rows(sheet, rows)


@_sheet("filtered_hidden_rows.xlsx")
def _filtered(sheet: Worksheet) -> None:
    rows = [
        ["id", "status", "amount"],
        [1, "open", 10.5],
        [2, "closed", 99.0],
        [3, "open", 20.25],
        [4, "closed", 75.0],
        [5, "open", 5.0],
    ]
    _rows(sheet, rows)
    sheet.auto_filter.ref = "A1:C6"
    for row in (3, 5):
        sheet.row_dimensions[row].hidden = True


def _with_notes(path: Path) -> None:
    book = openpyxl.Workbook()
    notes = book.worksheets[0]
    notes.title = "About"
    _rows(notes, [["This workbook comes from the finance portal."], [], ["Contact: desk 12"]])
    data = book.create_sheet("Data")
    _rows(data, [["code", "value"], ["x1", 1.5], ["x2", 2.5], ["x3", 4.0], ["x4", 8.25], ["x5", 0]])
    lookup = book.create_sheet("Lists")
    _rows(
        lookup, [["code", "label"], ["x1", "one"], ["x2", "two"], ["x3", "three"], ["x4", "four"]]
    )
    lookup.sheet_state = "hidden"
    book.save(path)


BOOKS["notes_data_hidden.xlsx"] = _with_notes


@_sheet("table_off_the_corner.xlsx")
def _off_corner(sheet: Worksheet) -> None:
    rows = [
        [None, None, "Device", None, "Reading", "Unit"],
        [None, None, "d1", None, 0.5, "V"],
        [None, None, "d2", None, 0.7, "V"],
        [],
        [None, None, "d3", None, 12, "mA"],
        [None, None, "d4", None, 9.5, "mA"],
    ]
    _rows(sheet, [[], [], *rows])


@_sheet("dates_native_and_text.xlsx")
def _dates(sheet: Worksheet) -> None:
    rows = [
        ["Vorgang", "Beginn", "Ende"],
        ["a", date(2024, 1, 15), datetime(2024, 1, 20, 14, 30)],
        ["b", "17.02.2024", datetime(2024, 2, 21, 9, 0)],
        ["c", date(2024, 3, 1), datetime(2024, 3, 8, 16, 45)],
        ["d", "28.04.2024", None],
    ]
    _rows(sheet, rows)


@_sheet("names_twice.xlsx")
def _twice(sheet: Worksheet) -> None:
    rows = [
        ["Shop", "Amount", "Date", "Amount", None],
        ["A", 1.5, "x", 10, "p"],
        ["B", 2.5, "y", 20, "q"],
        ["C", 3.5, "z", 30, "r"],
    ]
    _rows(sheet, rows)


@_sheet("regions_merged_down.xlsx")
def _merged_down(sheet: Worksheet) -> None:
    rows = [
        ["Region", "City", "Sales"],
        ["North", "Kiel", 10.5],
        [None, "Bremen", 20.0],
        [None, "Hamburg", 30.25],
        ["South", "Ulm", 5.0],
        [None, "Passau", 7.75],
    ]
    _rows(sheet, rows, ["A2:A4", "A5:A6"])


@_sheet("ratings_text_among_numbers.xlsx")
def _ratings(sheet: Worksheet) -> None:
    rows = [
        ["Hotel", "Rating", "Rooms"],
        ["Sun", 4.5, 120],
        ["Moon", "not rated", 45],
        ["Star", 3.8, 80],
        ["Sky", 4.1, "about 60"],
        ["Sea", 2.9, 33],
    ]
    _rows(sheet, rows)


@_sheet("native_formats.xlsx")
def _formats(sheet: Worksheet) -> None:
    rows = [
        ["Fund", "Return", "Volume", "Active", "Since"],
        ["F1", 0.0525, 1250000.5, True, date(2010, 5, 1)],
        ["F2", -0.01, 88000, False, date(2015, 12, 31)],
        ["F3", 0.125, 5400.25, True, date(2021, 2, 28)],
    ]
    _rows(sheet, rows)
    for row in range(2, 5):
        sheet.cell(row, 2).number_format = "0.00%"
        sheet.cell(row, 3).number_format = '#,##0.00 "€"'


@_sheet("printed_pages.xlsx")
def _pages(sheet: Worksheet) -> None:
    head = ["Nr", "Name", "Punkte"]
    rows = [
        head,
        [1, "Ida", 12.5],
        [2, "Jan", 9.0],
        [3, "Kim", 11.0],
        head,
        [4, "Lea", 7.5],
        [5, "Max", 10.0],
    ]
    _rows(sheet, rows)


@_sheet("headers_with_line_breaks.xlsx")
def _breaks(sheet: Worksheet) -> None:
    rows = [
        ["Konto\nNr.", "Umsatz\n(EUR)", " Bemerkung "],
        [4711, 10.5, "ok"],
        [4712, 20.25, None],
        [4713, -3.0, "storniert"],
        [4714, 0, "neu"],
    ]
    _rows(sheet, rows)


@_sheet("form_above_table.xlsx")
def _form(sheet: Worksheet) -> None:
    rows = [
        ["Customer:", "Stadtwerke"],
        ["Meter:", "DE0001"],
        ["Period:", "2024-01"],
        [],
        ["Day", "Import", "Export", "Status"],
        [date(2024, 1, 1), 10.5, 0.0, "ok"],
        [date(2024, 1, 2), 11.25, 0.5, "ok"],
        [date(2024, 1, 3), 9.0, 2.75, "estimated"],
        [date(2024, 1, 4), 12.0, 1.5, "ok"],
    ]
    _rows(sheet, rows)


@_sheet("sensor_sentinels.xlsx")
def _sentinels(sheet: Worksheet) -> None:
    rows = [
        ["hour", "temp", "press"],
        [0, 12.5, 1013.2],
        [1, -9999, 1013.0],
        [2, 11.75, -9999],
        [3, -9999, 1012.4],
        [4, 10.5, 1012.1],
    ]
    _rows(sheet, rows)


def _ods(path: Path, rows: Sequence[Sequence[Any]], spans: dict[tuple[int, int], int]) -> None:
    """Writes a sheet for OpenDocument; `spans` says how many columns a cell is wide."""
    document = OpenDocumentSpreadsheet()
    table = Table(name="Tabelle1")
    document.spreadsheet.addElement(table)
    for number, row in enumerate(rows):
        line = TableRow()
        covered = 0
        for position, value in enumerate(row):
            span = spans.get((number, position), 1)
            if covered:
                line.addElement(CoveredTableCell())
                covered -= 1
                continue
            line.addElement(_ods_cell(value, span))
            covered = span - 1
        table.addElement(line)
    document.save(str(path))


def _ods_cell(value: Any, span: int) -> Any:
    if value is None:
        return TableCell(numbercolumnsspanned=span)
    if isinstance(value, (int, float)):
        return TableCell(valuetype="float", value=str(value), numbercolumnsspanned=span)
    cell = TableCell(valuetype="string", numbercolumnsspanned=span)
    cell.addElement(P(text=value))
    return cell


def _lager(path: Path) -> None:
    rows: list[list[Any]] = [
        ["Lagerliste Halle 3", None, None, None],
        [None, None, None, None],
        ["Artikel", "Fach", "Menge", "Preis"],
        ["Schraube", "007", 120, "1.250,00 €"],
        ["Mutter", "012", 80.5, "12,50 €"],
        ["Scheibe", "100", 0, "0,75 €"],
        ["Stift", "101", 33, "99,00 €"],
    ]
    _ods(path, rows, {(0, 0): 4})


def _noten(path: Path) -> None:
    rows: list[list[Any]] = [
        ["Klasse", "Mathematik", None, "Deutsch", None],
        [None, "mündlich", "schriftlich", "mündlich", "schriftlich"],
        ["7a", 2.5, 3.1, 2.2, 2.9],
        ["7b", 2.8, 3.0, 2.4, 2.5],
        ["8a", 3.2, 3.6, 2.9, 3.3],
    ]
    _ods(path, rows, {(0, 1): 2, (0, 3): 2})


BOOKS["lagerliste.ods"] = _lager
BOOKS["noten_zwei_kopfzeilen.ods"] = _noten

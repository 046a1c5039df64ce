"""An xlsx writer whose bytes depend on the cells alone.

The usual writers put the time, their version and the compression of their zlib into the file. This
writer stores parts uncompressed, with a fixed time, and writes text into the cells themselves.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date
from xml.sax.saxutils import escape, quoteattr

from dm_jupyter.data.profile.sheet_layout import column_letters
from training.suites.generated.tables.dirt import Cell

__all__ = ["workbook"]

_DAY_ZERO = date(1899, 12, 30)
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}">'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="14" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
    "</styleSheet>"
)


def workbook(sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> bytes:
    """Return an xlsx file.

    Args:
        sheets: the rows of each sheet by name, from its first row on.
    """
    names = list(sheets)
    parts = {
        "[Content_Types].xml": _content_types(len(names)),
        "_rels/.rels": _relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": _index(names),
        "xl/_rels/workbook.xml.rels": _relations(
            {
                **{
                    f"rId{number}": ("worksheet", f"worksheets/sheet{number}.xml")
                    for number in range(1, len(names) + 1)
                },
                f"rId{len(names) + 1}": ("styles", "styles.xml"),
            }
        ),
        "xl/styles.xml": _STYLES,
        **{
            f"xl/worksheets/sheet{number}.xml": _sheet(sheets[name])
            for number, name in enumerate(names, start=1)
        },
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # otherwise it depends on the operating system
            archive.writestr(entry, f"{_HEAD}{text}".encode())
    return packed.getvalue()


def _content_types(count: int) -> str:
    sheets = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" '
        f'ContentType="{_CONTENT}.worksheet+xml"/>'
        for number in range(1, count + 1)
    )
    return (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_CONTENT}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_CONTENT}.styles+xml"/>'
        f"{sheets}</Types>"
    )


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    entries = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_RELATIONS}">{entries}</Relationships>'


def _index(names: Sequence[str]) -> str:
    sheets = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>'
        for number, name in enumerate(names, start=1)
    )
    return f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>'


def _sheet(rows: Sequence[Sequence[Cell]]) -> str:
    written = "".join(
        f'<row r="{number}">{"".join(_cell(cell, number, place) for place, cell in enumerate(row))}'
        "</row>"
        for number, row in enumerate(rows, start=1)
    )
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{written}</sheetData></worksheet>'


def _cell(cell: Cell, row: int, place: int) -> str:
    name = f"{column_letters(place)}{row}"
    if cell is None:
        return ""
    if isinstance(cell, date):
        return f'<c r="{name}" s="1"><v>{(cell - _DAY_ZERO).days}</v></c>'
    if isinstance(cell, int | float):
        return f'<c r="{name}"><v>{cell!r}</v></c>'
    text = f'<t xml:space="preserve">{escape(cell)}</t>'
    return f'<c r="{name}" t="inlineStr"><is>{text}</is></c>'

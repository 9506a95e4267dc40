"""Makes the files that the tests read: good ones and malicious ones."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence

from docx import Document
from pypdf import PdfReader, PdfWriter

HEBREW_FIRST, HEBREW_LAST = "א", "ת"


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with a page for each text, line by line, in a Latin font."""
    return raw_pdf([_page_content(text) for text in pages], title=title)


def raw_pdf(
    contents: Sequence[bytes],
    *,
    title: str = "",
    font: str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    extra: Sequence[bytes] = (),
    stream_entries: str = "",
) -> bytes:
    """A PDF with these content streams as pages. Objects: 1 catalog, 2 pages, 3 font,
    4 info, then ``extra``, then a page and its stream in turn."""
    first = 5 + len(extra)
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        font.encode(),
        f"<< /Title ({title}) >>".encode(),
        *extra,
    ]
    for number, content in enumerate(contents):
        objects.append(
            (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
                "/Resources << /Font << /F1 3 0 R >> >> "
                f"/Contents {first + 2 * number + 1} 0 R >>"
            ).encode()
        )
        head = f"<< /Length {len(content)} {stream_entries} >>\nstream\n".encode()
        objects.append(head + content + b"\nendstream")
    return assemble(objects)


def assemble(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalog, the fourth the info."""
    body = b"%PDF-1.7\n"
    places = []
    for number, item in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n".encode() + item + b"\nendobj\n"
    table = b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    count = len(objects) + 1
    return (
        body
        + f"xref\n0 {count}\n0000000000 65535 f \n".encode()
        + table
        + f"trailer << /Size {count} /Root 1 0 R /Info 4 0 R >>\n".encode()
        + f"startxref\n{len(body)}\n%%EOF\n".encode()
    )


def _page_content(text: str) -> bytes:
    lines = [f"({line}) Tj T*".replace("\\", "\\\\").encode("cp1252") for line in text.split("\n")]
    return b"BT /F1 12 Tf 14 TL 50 750 Td\n" + b"\n".join(lines) + b"\nET"


def hebrew_pdf(line: str, *, visual: bool) -> bytes:
    """A PDF with one line in a font that maps its codes to Hebrew. ``visual``: the letters
    stand in the file as they do on paper, from left to right, as most programs write them."""
    shown = line[::-1] if visual else line
    codes = "".join(f"{ord(char):04X}" for char in shown)
    content = f"BT /F1 12 Tf 50 750 Td <{codes}> Tj ET".encode()
    font = (
        "<< /Type /Font /Subtype /Type0 /BaseFont /Sample /Encoding /Identity-H "
        "/DescendantFonts [5 0 R] /ToUnicode 6 0 R >>"
    )
    descendant = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Sample /DW 600 "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
    )
    to_unicode = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
        b"1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
        b"2 beginbfrange <0020> <007E> <0020> <05D0> <05EA> <05D0> endbfrange\n"
        b"endcmap end end"
    )
    stream = f"<< /Length {len(to_unicode)} >>\nstream\n".encode() + to_unicode + b"\nendstream"
    return raw_pdf([content], font=font, extra=[descendant, stream])


def encrypted_pdf(user_password: str, *, algorithm: str = "AES-256") -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("A secret of TestCorp."))))
    writer.encrypt(user_password, owner_password="owner", algorithm=algorithm)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def bomb_pdf(megabytes: int) -> bytes:
    """One page whose content unpacks to so much."""
    packer = zlib.compressobj(9)
    block = b"(x) Tj " * 149_797
    content = b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    return raw_pdf([content], stream_entries="/Filter /FlateDecode")


def looping_pdf() -> bytes:
    """Pages whose parent is their own child."""
    return assemble(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 2 >>",
            b"<< /Type /Pages /Kids [2 0 R] /Count 1 /Parent 2 0 R >>",
            b"<< >>",
        ]
    )


def self_referencing_pdf() -> bytes:
    """A page whose content is itself, by a form that draws itself."""
    form = b"/X1 Do"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 6 0 R "
        b"/Resources << /XObject << /X1 5 0 R >> >> >>",
        b"4 0 R",
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 6 "
        b"/Resources << /XObject << /X1 5 0 R >> >> >>\nstream\n" + form + b"\nendstream",
        b"<< /Length 6 >>\nstream\n" + form + b"\nendstream",
    ]
    return assemble(objects)


def many_pages_pdf(count: int) -> bytes:
    """One page, listed so many times."""
    kids = b"3 0 R " * count
    return assemble(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [" + kids + f"] /Count {count} >>".encode(),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
            b"<< >>",
        ]
    )


def docx(*paragraphs: str, table: Sequence[Sequence[str]] = (), title: str = "") -> bytes:
    document = Document()
    document.core_properties.title = title
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        rows = document.add_table(len(table), len(table[0])).rows
        for row, texts in zip(rows, table, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def docx_with(body: bytes, *, head: bytes = b"", more: dict[str, bytes] | None = None) -> bytes:
    """A Word file whose body is this XML; ``head`` stands before the root."""
    xml = (
        b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>' + head + b"<w:document"
        b' xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        b' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        b"<w:body>" + body + b"</w:body></w:document>"
    )
    parts = {"word/document.xml": xml, **(more or {})}
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx("x"))) as template,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in template.namelist():
            archive.writestr(name, parts.pop(name, b"") or template.read(name))
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def paragraph(text: str) -> bytes:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>".encode()


def understated(archive: bytes, *, claimed: int) -> bytes:
    """The archive, whose largest part says that it unpacks to so little."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        largest = max(opened.infolist(), key=lambda part: part.file_size)
    true_size = largest.file_size.to_bytes(4, "little")
    return archive.replace(true_size, claimed.to_bytes(4, "little"))

"""Read the forms with a file that clients post to the stand-ins."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP

from memoryproject.foundation.integrations.loopback.httpd import Request


@dataclass(frozen=True)
class Form:
    """The fields of a form, and the file in its field ``file``, if there is one."""

    fields: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    filename: str = ""
    content_type: str = ""


def posted_form(request: Request) -> Form | None:
    """Return the form of a multipart request; None for another body."""
    content_type = request.headers.get("content-type", "")
    if not content_type.startswith("multipart/form-data"):
        return None
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    parsed = BytesParser(policy=HTTP).parsebytes(head + request.raw)
    fields: dict[str, str] = {}
    file: dict[str, str | bytes] = {}
    for part in parsed.iter_parts():
        name = str(part.get_param("name", "", "Content-Disposition"))
        content = part.get_payload(decode=True)
        content = content if isinstance(content, bytes) else b""
        if name == "file":
            file = {
                "content": content,
                "filename": part.get_filename() or "",
                "content_type": part.get_content_type(),
            }
        else:
            fields[name] = content.decode()
    return Form(fields, **file)  # type: ignore[arg-type]

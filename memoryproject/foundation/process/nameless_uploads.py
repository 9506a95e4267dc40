"""Take large uploads into files without a name: a killed process leaves nothing behind."""

from __future__ import annotations

import tempfile
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler


class NamelessFileUploadHandler(FileUploadHandler):
    """Take what Django's handler in memory leaves: it is gone once nobody has it open.

    Django's own handler gives its files names below /tmp, where forgetting doesn't reach them.
    """

    file: UploadedFile[bytes] | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.file = UploadedFile(
            tempfile.TemporaryFile(),  # noqa: SIM115 the request closes it
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self.file is not None:
            self.file.write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile[bytes] | None:
        if self.file is not None:
            self.file.seek(0)
            self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if self.file is not None:
            self.file.close()

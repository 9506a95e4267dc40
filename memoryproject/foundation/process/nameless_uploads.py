"""Take large uploads into files without a name: a killed process leaves nothing behind."""

from __future__ import annotations

import tempfile
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler


class NamelessFileUploadHandler(TemporaryFileUploadHandler):
    """Take what Django's handler in memory leaves: it is gone once nobody has it open.

    The handler that this one derives from gives its files names below /tmp, where forgetting
    doesn't reach them.
    """

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        FileUploadHandler.new_file(self, *args, **kwargs)
        self.file: Any = UploadedFile(
            tempfile.TemporaryFile(),  # noqa: SIM115 the request closes it
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

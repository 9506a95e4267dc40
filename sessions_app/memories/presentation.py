"""Lines of memories in requests and responses, for REST resources of other packages."""

from sessions_app.memories.api.transfer_api import (
    EXPORT_NAMES,
    LINE,
    NDJSON,
    ExportQuery,
    JsonErrors,
    MemoryImportView,
    NdJson,
)

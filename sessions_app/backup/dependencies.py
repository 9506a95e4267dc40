"""Build from the settings what archives are signed and read with."""

from pathlib import Path
from typing import Any

from django.conf import settings

from memoryproject.foundation.commands import flag, option
from sessions_app.backup.archive import ArchiveAccess


def archive_access(*, trust: bool = False, identity: Path | None = None) -> ArchiveAccess:
    """Return the access of this installation to archives. For the arguments see ArchiveAccess."""
    return ArchiveAccess(
        key=settings.BACKUP_KEY, scratch=settings.DATA_DIR, trust=trust, identity=identity
    )


# The options of commands that read an archive.
ACCESS = (
    option(
        "--identity",
        type=Path,
        metavar="KEYFILE",
        help="The file with the private key of an encrypted archive.",
    ),
    flag("--trust", "Accept an archive that isn't signed by this installation's BACKUP_KEY."),
)


def access_of(options: dict[str, Any]) -> ArchiveAccess:
    """Return the access by the options of ACCESS."""
    return archive_access(trust=options["trust"], identity=options["identity"])

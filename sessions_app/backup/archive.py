"""Read and verify an archive, sign and encrypt it, independent of Django."""

import hashlib
import hmac
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from pyrage import DecryptError, IdentityError, RecipientError, decrypt_io, encrypt_io, x25519

from memoryproject import __version__
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.process.storage import file_make

# The manifest of an archive, independent of Django.

FORMAT = 2
MANIFEST = "manifest.json"
BLOCK = 1024 * 1024

# The errors that zipfile raises for damaged files, in addition to its own BadZipFile.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    KeyError,
)


class ArchiveError(Exception):
    """The archive can't be written or trusted; the text states the reason."""


@dataclass(frozen=True)
class ArchiveAccess:
    """The keys and the folder with which an archive is read.

    ``key`` is the key of the signature. ``trust``: accept archives without a valid signature.
    ``identity``: the file of private keys for encrypted archives, which are decrypted in
    ``scratch``.
    """

    key: str
    scratch: Path
    trust: bool = False
    identity: Path | None = None


@dataclass(frozen=True)
class Member:
    """A file of the archive with its uncompressed size and its checksum.

    ``rows`` and ``columns`` are those of a table.
    """

    name: str
    size: int
    sha256: str
    rows: int = 0
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Manifest:
    """The contents of the archive.

    ``sequences``: by name, the last value and whether it was used. ``migrations``: the applied
    ones as "app.name". ``media``: the files of messages, by their names.
    """

    product_version: str
    created_at: str
    postgres: str
    migrations: list[str]
    tables: dict[str, Member]
    sequences: dict[str, tuple[int, bool]]
    keys: dict[str, Member] = field(default_factory=dict)
    media: dict[str, Member] = field(default_factory=dict)

    @property
    def members(self) -> list[Member]:
        """Return all files of the archive besides the manifest and its signature."""
        return [*self.tables.values(), *self.keys.values(), *self.media.values()]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


def media_member(name: str) -> str:
    return f"media/{name}"


def manifest_document(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as a JSON object; of a file of a message only size and checksum."""
    document = {"format": FORMAT, **asdict(manifest)}
    document["media"] = {name: [each.size, each.sha256] for name, each in manifest.media.items()}
    if not document["media"]:
        del document["media"]
    return document


def manifest_parsed(raw: dict[str, Any]) -> Manifest:
    """Return the manifest of a JSON object. Raises KeyError, TypeError and ValueError."""
    tables = {name: Member(**member) for name, member in raw.pop("tables").items()}
    keys = {name: Member(**member) for name, member in raw.pop("keys").items()}
    media = {
        str(UUID(name)): Member(media_member(name), size, sha256)
        for name, (size, sha256) in raw.pop("media", {}).items()
    }
    sequences = {
        name: (int(last), bool(used)) for name, (last, used) in raw.pop("sequences").items()
    }
    return Manifest(**raw, tables=tables, keys=keys, media=media, sequences=sequences)


# Some hundred thousand files of messages.
MAX_MANIFEST_SIZE = 64 * BLOCK


class ArchiveReader:
    """An archive with a parsed manifest; its files are verified as they are read.

    ``is_signed``: the manifest has a valid signature, so that nobody without the key changed it.
    """

    def __init__(self, path: Path, *, access: ArchiveAccess, file: IO[bytes] | None = None) -> None:
        """Read the manifest. Raises ArchiveError if the file is no archive, or can't be trusted.

        ``file``: the open plain archive; otherwise it is opened by its ``path``.
        """
        self.path = path
        self._file = None if file else _opened(path, access)
        try:
            self._zip = zipfile.ZipFile(file or present(self._file))
        except DAMAGED as error:
            self._close_file()
            raise ArchiveError(f"{path} is no backup, or was cut off: {error}.") from error
        try:
            text = self._read_manifest_text()
            self.is_signed = self._check_signature(text, access)
            self.manifest = self._parse_manifest(text)
        except ArchiveError:
            self.__exit__()
            raise

    def __enter__(self) -> "ArchiveReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._close_file()

    def _close_file(self) -> None:
        if self._file:
            self._file.close()

    def blocks(self, member: Member) -> Iterator[bytes]:
        """Yield a file's content. Raises ArchiveError at its end if the checksum differs."""
        digest = hashlib.sha256()
        rows = 0
        try:
            with self._zip.open(member.name) as file:
                while block := file.read(BLOCK):
                    digest.update(block)
                    rows += block.count(b"\n")
                    yield block
        except DAMAGED as error:
            raise ArchiveError(f"{self.path}: {member.name} is damaged: {error}.") from error
        if digest.hexdigest() != member.sha256:
            raise ArchiveError(f"{self.path}: {member.name} has another checksum than it had.")
        if member.columns and rows != member.rows:
            raise ArchiveError(f"{self.path}: {member.name} holds {rows} rows, not {member.rows}.")

    def check_all(self) -> None:
        """Verify every file. Raises ArchiveError."""
        members = self.manifest.members
        named = {MANIFEST, SIGNATURE, *(member.name for member in members)}
        found = set(self._zip.namelist())
        if strangers := found - named:
            raise ArchiveError(f"{self.path} holds what no backup does: {min(strangers)}.")
        for member in members:
            for _ in self.blocks(member):
                pass

    @contextmanager
    def _reading_manifest(self) -> Iterator[None]:
        """Explain the errors of the block as ArchiveErrors."""
        try:
            yield
        except KeyError as error:
            raise ArchiveError(f"{self.path} is no backup: it lacks {error}.") from error
        except (*DAMAGED, TypeError, AttributeError) as error:
            raise ArchiveError(f"{self.path}: its manifest is damaged: {error}.") from error

    def _read_manifest_text(self) -> bytes:
        with self._reading_manifest():
            if self._zip.getinfo(MANIFEST).file_size > MAX_MANIFEST_SIZE:
                raise ArchiveError(f"{self.path} is no backup: its manifest is too large.")
            return self._zip.read(MANIFEST)

    def _check_signature(self, manifest: bytes, access: ArchiveAccess) -> bool:
        """Return whether the signature is valid. Raises ArchiveError if it must be."""
        try:
            size = self._zip.getinfo(SIGNATURE).file_size
            signature = self._zip.read(SIGNATURE) if size == SIGNATURE_SIZE else b""
            problem = "was changed, or signed with another key than BACKUP_KEY"
        except KeyError:
            signature = b""
            problem = "is not signed"
        except DAMAGED as error:
            raise ArchiveError(f"{self.path}: its signature is damaged: {error}.") from error
        if is_signed(manifest, signature, access.key):
            return True
        if access.trust:
            return False
        raise ArchiveError(
            f"{self.path} {problem}. If another installation made it, set BACKUP_KEY to the key "
            "of that one (the file backup.key of its DATA_DIR). With --trust it is accepted as "
            "it is, with all accounts and tokens that somebody may have put into it."
        )

    def _parse_manifest(self, text: bytes) -> Manifest:
        with self._reading_manifest():
            raw = json.loads(text)
            if raw.pop("format") != FORMAT:
                raise ArchiveError(
                    f"{self.path} was made by another version of this program, "
                    f"{raw.get('product_version')}, which writes other archives than this one, "
                    f"{__version__}. Restore it with that version."
                )
            return manifest_parsed(raw)


def _opened(path: Path, access: ArchiveAccess) -> IO[bytes]:
    """Return the plain archive as an open file; an encrypted one is decrypted."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise ArchiveError(f"There is no file {path}.") from None
    except OSError as error:
        raise ArchiveError(f"{path} can't be read: {error.strerror}.") from error
    with ExitStack() as stack:
        stack.enter_context(file)
        if not is_encrypted(file):
            stack.pop_all()
            return file
        if access.identity is None:
            raise ArchiveError(f"{path} is encrypted: name the private key by --identity FILE.")
        try:
            return decrypted(file, access.identity, access.scratch)
        except EncryptionError as error:
            raise ArchiveError(f"{path}: {error}") from error


# Encrypt archives for the holders of age keys (https://age-encryption.org), and decrypt them.


_FIRST_LINE = b"age-encryption.org/v1\n"
_MAX_IDENTITY_SIZE = 64 * 1024


class EncryptionError(ArchiveError):
    """The archive can't be encrypted or decrypted; the text states the reason."""


def recipients_parsed(words: Sequence[str]) -> list[x25519.Recipient]:
    """Return the public keys of these words (age1…). Raises EncryptionError."""
    found = []
    for word in words:
        try:
            found.append(x25519.Recipient.from_str(word))
        except RecipientError as error:
            raise EncryptionError(
                f"{word!r} is no recipient: give the public key of age, which begins with age1."
            ) from error
    return found


def identity_create(path: Path) -> str:
    """Write a new private key to a file of mode 600; return its public key.

    Raises EncryptionError if ``path`` exists or can't be written.
    """
    identity = x25519.Identity.generate()
    public = str(identity.to_public())
    try:
        file_make(path, f"# public key: {public}\n{identity}\n".encode("ascii"))
    except OSError as error:
        raise EncryptionError(f"{path} can't be written: {error.strerror}.") from error
    return public


def is_encrypted(file: IO[bytes]) -> bool:
    found = file.read(len(_FIRST_LINE)) == _FIRST_LINE
    file.seek(0)
    return found


def encrypt(plain: IO[bytes], into: IO[bytes], recipients: Sequence[str]) -> None:
    """Write ``plain`` encrypted, so that each of the recipients can read it. Raises OSError."""
    plain.seek(0)
    encrypt_io(plain, into, recipients_parsed(recipients))


def decrypted(file: IO[bytes], identity: Path, folder: Path) -> IO[bytes]:
    """Return the decrypted content as a file without a name in ``folder``.

    ``identity`` is a file of private keys as `age-keygen` writes it. Raises EncryptionError.
    """
    keys = _identities(identity)
    try:
        plain = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 the caller closes it
    except OSError as error:
        raise EncryptionError(f"It can't be decrypted in {folder}: {error.strerror}.") from error
    try:
        decrypt_io(file, plain, keys)
    except (DecryptError, OSError) as error:
        plain.close()
        raise EncryptionError(f"It can't be decrypted with {identity}: {error}.") from error
    plain.seek(0)
    return plain


def _identities(path: Path) -> list[x25519.Identity]:
    try:
        with path.open(encoding="utf-8") as file:
            lines = [line.strip() for line in file.read(_MAX_IDENTITY_SIZE).splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if found := [x25519.Identity.from_str(key) for key in keys]:
            return found
    except (OSError, UnicodeDecodeError) as error:
        raise EncryptionError(f"The identity file {path} can't be read: {error}.") from error
    except IdentityError:
        # The error's own text could quote the key.
        pass
    raise EncryptionError(f"{path} holds no private key of age.")


# Sign the manifest of an archive with a key that is not in the archive.

SIGNATURE = "manifest.hmac"
SIGNATURE_SIZE = 64

# The same key never signs anything else; the label keeps it so if that changes.
_LABEL = b"backup manifest\n"


def signature_of(manifest: bytes, key: str) -> bytes:
    """Return the HMAC-SHA256 of a manifest in hex. The manifest holds all other checksums."""
    return hmac.digest(key.encode(), _LABEL + manifest, "sha256").hex().encode()


def is_signed(manifest: bytes, signature: bytes, key: str) -> bool:
    return hmac.compare_digest(signature_of(manifest, key), signature)

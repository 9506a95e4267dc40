"""Encrypt archives for the holders of age keys (https://age-encryption.org), and decrypt them."""

from __future__ import annotations

import hmac
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pyrage import DecryptError, IdentityError, RecipientError, decrypt_io, encrypt_io, x25519

from memoryproject.foundation.process.storage import file_make

_FIRST_LINE = b"age-encryption.org/v1\n"
_MAX_IDENTITY_SIZE = 64 * 1024


class EncryptionError(Exception):
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

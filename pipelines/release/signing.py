"""Signing a release: OpenSSH's ``ssh-keygen`` signs its manifest, whose digests stand for all other files.

The signature lies beside the manifest, in no digest, so that a release may be signed after it is published, and by
whoever answers for it. A file of allowed signers says who may sign (see ``man ssh-keygen``), a line each::

    data@example.org namespaces="synth-release" ssh-ed25519 AAAAC3Nza...
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipelines.errors import ConfigError, GateNotMet
from pipelines.files import explain_os_error, write_bytes
from pipelines.release.manifest import MANIFEST, SIGNATURE, check_release_files

NAMESPACE = "synth-release"
"""What a signature is for: one made for mail or for git does not count."""
PROGRAM = "ssh-keygen"
_KEY = re.compile(rb"with (\S+ key \S+)")
"""A key in the words of the program: kind and fingerprint."""


def sign_release(folder: Path, key: Path) -> Path:
    """Sign a release whose files are as its manifest says, and return the signature's file.

    The key is a private key's file, or a public key's if an agent holds the private one.

    Raises:
        ConfigError: if the folder is no release, the key cannot be used, or ssh-keygen is missing.
        GateNotMet: if a file is not what the manifest says.
    """
    check_release_files(folder)
    if not key.is_file():
        raise ConfigError(f"sign {folder}: there is no key {key}; make one: ssh-keygen -t ed25519 -f {key}")
    made = _call(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key)], (folder / MANIFEST).read_bytes())
    if made.returncode or not made.stdout:
        remedy = f"; others may read it: chmod 600 {key}" if b"UNPROTECTED" in made.stderr else ""
        raise ConfigError(f"sign {folder}: {key} does not sign: {_read_words(made)}{remedy}")
    try:
        write_bytes(folder / SIGNATURE, made.stdout)
    except OSError as error:
        raise explain_os_error(error, f"sign {folder}") from error
    return folder / SIGNATURE


def check_signature(folder: Path, signers: Path) -> str:
    """Return the key that signed a release's manifest, and which line of those who may sign allows it.

    Raises:
        ConfigError: if there is no such file, or ssh-keygen is missing.
        GateNotMet: if there is no signature, or it is not one of theirs over this manifest.
    """
    signature, manifest = folder / SIGNATURE, folder / MANIFEST
    if not signers.is_file():
        raise ConfigError(f"verify {folder}: there is no file of allowed signers {signers}")
    if not signature.is_file() or signature.is_symlink():
        raise GateNotMet(f"signature: there is no {SIGNATURE}; its author makes it with `synth sign`")
    files = ["-f", str(signers), "-s", str(signature)]
    found = _call(["-Y", "find-principals", *files], b"")
    names = found.stdout.decode("utf-8", "replace").splitlines()
    if found.returncode or not names:
        raise GateNotMet(f"signature: nobody that {signers.name} allows made it: {_read_words(found)}")
    for name in names:
        checked = _call(["-Y", "verify", "-n", NAMESPACE, "-I", name, *files], manifest.read_bytes())
        if not checked.returncode:
            key = _KEY.search(checked.stdout)
            return f"{key[1].decode('utf-8', 'replace') if key else 'a key'} of {name}"
    raise GateNotMet(f"signature: it is not {names[0]}'s over this manifest: {_read_words(checked)}")


def _call(arguments: Sequence[str], given: bytes) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run([PROGRAM, *arguments], input=given, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(
            f"{PROGRAM} cannot be called ({error.strerror}); it comes with OpenSSH (8.2 or later) and signs releases"
        ) from error


def _read_words(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Return the last line that the program said."""
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

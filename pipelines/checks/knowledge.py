"""What the checks know, as a digest: a stage's key must change when a word list or a rule of a check does."""

import hashlib
from functools import lru_cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_DECIDING = ("checks", "graph", "scoring", "names.py")
"""Parts of the library that decide which questions are accepted."""


@lru_cache(maxsize=4)
def digest_checks(root: Path = _ROOT) -> str:
    """Return the sha256 of the sources and data files of everything that judges a question.

    A version that somebody must remember to raise is forgotten; and since replies are recorded, judging again after a
    change that changes nothing costs no request.

    Args:
        root: folder of the library, here ``pipelines/``.
    """
    digest = hashlib.sha256()
    found = [path for part in _DECIDING for path in [root / part, *(root / part).rglob("*")]]
    for path in sorted(path for path in found if path.is_file() and path.suffix in (".py", ".toml")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

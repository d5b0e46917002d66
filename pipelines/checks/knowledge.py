"""What the checks know, as a digest: a stage's key must change when a word list or a rule of a check does."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of the library by their paths in it: those that decide, and what lies among them and decides nothing."""

    deciding: tuple[str, ...]
    apart: tuple[str, ...] = ()


_QUESTIONS = Parts(("checks", "graph", "names.py"), ("checks/rollouts.py",))
_ROLLOUTS = Parts(("checks/rollouts.py", "graph/answers.py", "graph/values.py", "names.py", "agent/cascade.py"))
DECIDED: Mapping[str, Parts] = {
    **dict.fromkeys(("paths", "questions", "rewrites", "groundings"), _QUESTIONS),
    "trajectories": _ROLLOUTS,
}
"""Stages whose rows checks decide, and which parts of the library do."""


@lru_cache(maxsize=16)
def digest_checks(stage: str, root: Path = _ROOT) -> str:
    """Return the sha256 of the sources and data files of everything that judges a stage's rows; empty for nothing.

    A version that somebody must remember to raise is forgotten; and since replies are recorded, judging again after a
    change that changes nothing costs no request.

    Args:
        stage: its name.
        root: folder of the library, here ``pipelines/``.
    """
    if stage not in DECIDED:
        return ""
    digest = hashlib.sha256()
    for path in sorted(_list_sources(DECIDED[stage], root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _list_sources(parts: Parts, root: Path) -> Iterator[Path]:
    apart = [root / part for part in parts.apart]
    for part in parts.deciding:
        for path in (root / part, *(root / part).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".toml") and not any(map(path.is_relative_to, apart)):
                yield path

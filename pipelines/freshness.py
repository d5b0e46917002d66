"""Generations of recorded replies: ``--fresh-replies ROLE`` asks a role anew and forgets nothing.

A workspace keeps ``replies/fresh.json``, from role to generation. A generation above 0 is part of the identity of the
role's backend, so keys of replies and keys of stages change together; older replies stay where they are.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import explain_os_error, write_text

GENERATIONS = "fresh.json"


def read_generations(folder: Path) -> dict[str, int]:
    """Return the generation of each role that was ever renewed; a role that is absent is in generation 0.

    Args:
        folder: the workspace's folder of replies.

    Raises:
        CorruptInput: if the file is damaged.
    """
    path = folder / GENERATIONS
    if not path.is_file():
        return {}
    try:
        generations = json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptInput(f"{path}: damaged; remove it and run again") from error
    if not isinstance(generations, dict) or not all(_is_generation(value) for value in generations.values()):
        raise CorruptInput(f"{path}: damaged: it should name roles with numbers from 1; remove it and run again")
    return generations


def renew(folder: Path, roles: Iterable[str]) -> dict[str, int]:
    """Begin a new generation of each role and return all generations; the caller has checked the roles.

    Raises:
        ConfigError: if no role is given, or the folder cannot be written.
        CorruptInput: if the file is damaged.
        Unavailable: if the disk is full.
    """
    renewed = sorted(set(roles))
    if not renewed:
        raise ConfigError("fresh replies: no role is given; name those that shall be asked anew")
    generations = read_generations(folder)
    for role in renewed:
        generations[role] = generations.get(role, 0) + 1
    try:
        write_text(folder / GENERATIONS, json.dumps(generations, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise explain_os_error(error, f"generations in {folder}") from error
    return generations


def name_generation(identity: str, fresh: int) -> str:
    """Return a backend's identity in a generation; generation 0 is the identity itself."""
    return f"{identity}#{fresh}" if fresh else identity


def _is_generation(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1

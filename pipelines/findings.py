"""What ``synth doctor`` says of each thing it looks at."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what was found, and what to do about it."""

    what: str
    state: State
    detail: str

"""What every table of the configuration is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A table of the configuration: frozen, no undeclared keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


CONTACT = r"^$|^[ -~]*([!-?A-~]@[!-?A-~]|[a-z]://[!-~])[ -~]*$"
"""Nothing, or text in ASCII with a mail address or a page's address in it."""
ADDRESS = r"^https?://[^\s@?#]+$"
Qid = Annotated[str, Field(pattern=r"^Q[1-9][0-9]{0,17}$")]

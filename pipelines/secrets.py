"""Keys of services, recognised by their shape, so that none is shown where one was put by mistake."""

import re
from urllib.parse import parse_qsl

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, OpenRouter, vLLM by custom
    r"|(?<![A-Za-z0-9])(?:hf|gh[opsur]|gsk|xai|github_pat|glpat|r8|nvapi|jina|tvly|pplx)[_-][A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}"  # Amazon
    r"|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"  # a JSON web token
    r"|(?<=://)[^\s/@:'\"]*:[^\s/@'\"]+(?=@)"  # user and password in an address
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{16,}"
)
_ADDRESS = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|postgres(ql)?://([^\s:@/?#]+@)?[^\s@#]*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BARE = re.compile(r"(?=.*[0-9])(?=.*[a-z])[A-Za-z0-9]{24,}")
"""What a key without a prefix looks like; names of variables have underscores or are short."""
MASK = "[a key]"


def mask_keys(text: str) -> str:
    """Return a text with every key in it, as told by its shape, replaced by a word that says so."""
    return _SHAPES.sub(MASK, text)


def is_key(text: str) -> bool:
    """Say whether a text looks like a key, with a prefix that tells or without one."""
    return bool(_SHAPES.search(text) or _BARE.fullmatch(text))


def check_variable(name: str) -> str:
    """Return the name of an environment variable, or an empty one.

    Raises:
        ValueError: if it looks like the key itself, or is no name. It is not quoted.
    """
    if is_key(name):
        raise ValueError("this looks like a key itself; put the key into an environment variable and give its name")
    if name and not _VARIABLE.fullmatch(name):
        raise ValueError("no name of an environment variable; give the name of the one that holds the key")
    return name


def check_address(address: str) -> str:
    """Return the address of a PostgreSQL database that holds no password, ``env:VARIABLE``, or an empty one.

    Raises:
        ValueError: if it is another address, or holds a password. It is not quoted.
    """
    if not _ADDRESS.fullmatch(address):
        raise ValueError("expected postgresql://user@host/database without a password, or env:VARIABLE")
    if any("password" in name.lower() for name, _ in parse_qsl(address.partition("?")[2], keep_blank_values=True)):
        raise ValueError("the address holds a password; put it into PGPASSWORD, ~/.pgpass or env:VARIABLE")
    return address

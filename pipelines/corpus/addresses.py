"""The addresses of a wiki's pages and of licences."""

import re
from urllib.parse import quote, unquote, urlsplit

SAFE = ":/(),!*;@$-._~'"
"""Characters that MediaWiki leaves as they are in an address (``wfUrlencode``), and the apostrophe."""


def make_page_url(base: str, title: str) -> str:
    """Return a page's address: spaces as underscores, the rest percent-encoded as MediaWiki does."""
    return base + quote(title.replace(" ", "_"), safe=SAFE)


def parse_page_url(base: str, url: str) -> str | None:
    """Return the title that an address names, or None if it is no page of this wiki.

    The scheme may be http or https and the fragment is ignored; a query string makes it another resource.
    """
    try:
        wanted, given = urlsplit(base), urlsplit(url)
    except ValueError:  # an invalid address, such as one with an unclosed [
        return None
    if given.scheme not in ("http", "https") or given.query or given.netloc.lower() != wanted.netloc.lower():
        return None
    if not given.path.startswith(wanted.path):
        return None
    return unquote(given.path.removeprefix(wanted.path)).replace("_", " ").strip() or None


_CC_BY = re.compile(r"CC (BY(?:-SA)?) (\d\.\d)(?: ([a-z]+))?")


def find_licence_url(name: str) -> str:
    """Return the address of a licence's text by its short name on Wikimedia Commons; empty where it is not known."""
    match = _CC_BY.fullmatch(name)
    if match is None:
        return "https://creativecommons.org/publicdomain/zero/1.0/" if name == "CC0" else ""
    return f"https://creativecommons.org/licenses/{match[1].lower()}/{match[2]}/" + (f"{match[3]}/" if match[3] else "")

"""Finding a name in what a tool showed, and pointing at it."""

import re

ANSWER = "answer"
"""What a support of the answer is called; supports of bridges carry the bridge's title."""
QUALIFIER = re.compile(r"\s*\([^()]*\)$")


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Return the span of the first whole-word occurrence of a name, whatever its case and spacing, or None.

    ``Ur`` is not found in ``during``, ``5`` not in ``1,5`` or ``5.2``.
    """
    words = name.split()
    if not words:
        return None
    body = r"\s+".join(re.escape(word) for word in words)
    found = re.search(rf"(?<!\w)(?<!\d[.,]){body}(?!\w)(?![.,]\d)", text, re.IGNORECASE)
    return None if found is None else found.span()


def list_forms(title: str) -> tuple[str, ...]:
    """Return how a page's title may read in text: in full, and without a closing qualifier in parentheses."""
    bare = QUALIFIER.sub("", title)
    return (title, bare) if bare and bare != title else (title,)

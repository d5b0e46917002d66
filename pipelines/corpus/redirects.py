"""Follow redirects to the article they end at."""

from collections.abc import Mapping

DANGLING = "dangling-redirect"
CYCLE = "redirect-cycle"


def follow_redirects(
    articles: Mapping[str, int], redirects: Mapping[str, str]
) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """Find where each redirect ends, through chains of any length.

    Args:
        articles: number of each article by title.
        redirects: target title by redirect title; a target outside the article namespace is an empty string.

    Returns:
        The article number of each redirect that resolves, and (reason, detail) of each that does not.
    """
    ends: dict[str, int] = {}
    refused: dict[str, tuple[str, str]] = {}
    for title in redirects:
        chain: list[str] = []
        seen: set[str] = set()
        current = title
        while current in redirects and current not in seen and current not in ends and current not in refused:
            chain.append(current)
            seen.add(current)
            current = redirects[current]
        if current in ends or current in articles:
            node = ends[current] if current in ends else articles[current]
            ends.update(dict.fromkeys(chain, node))
        elif current in seen:
            refused.update(dict.fromkeys(chain, (CYCLE, " > ".join([*chain[chain.index(current) :], current]))))
        else:
            refused.update(dict.fromkeys(chain, refused.get(current, (DANGLING, f"no article {current!r}"))))
    return ends, refused

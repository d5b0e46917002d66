"""What a search found, as rows keep it."""

from schemas.base import Nested
from schemas.groundings import Picture


class SearchResult(Nested):
    """One page that a search found; a search by picture also keeps a thumbnail of what that page shows."""

    url: str
    title: str
    thumbnail: Picture | None = None
    """Small copy of the picture that was found, in the workspace's image store; None where there is none."""
    image: str = ""
    """Id (``img_3``) under which the thumbnail was shown; empty where it was only kept."""

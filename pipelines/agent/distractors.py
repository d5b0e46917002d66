"""Pictures of others of an anchor's type, fetched so that a search by picture has something to tell apart."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from pipelines.agent.choosing import describe_fetched
from pipelines.agent.depicting import CandidateLister, Dropped, RemoteCandidate, choose_distractors
from pipelines.ids import digest_value
from schemas.datasets import FetchedPicture

VERSION = 1


@dataclass(frozen=True, slots=True)
class DistractorFetcher:
    """Fetches lead pictures of other entities; the same ones for an anchor every time.

    Attributes:
        lister: describes pictures and fetches them.
        count: of pictures for an anchor; those that are at hand are searched anyway and count.
        seed: another one chooses others.
    """

    lister: CandidateLister
    count: int
    seed: int

    @property
    def identity(self) -> str:
        """Digest of everything that decides what is fetched."""
        return digest_value([VERSION, self.count, self.seed, self.lister.identity])

    async def fetch(self, node: int, avoid: Collection[int]) -> tuple[FetchedPicture, ...]:
        """Return the pictures that were fetched, with the articles that they lead.

        Args:
            node: the anchor.
            avoid: entities that are not taken, such as the path's.

        Raises:
            RateLimited, Unavailable: of the services.
        """
        # The first anchor of a type has hundreds of articles read, for which no other record should wait.
        leads = await asyncio.to_thread(self._list_leads, node, avoid)
        made: list[FetchedPicture] = []
        wanted = self.count
        while wanted and leads:
            # One more than is wanted, as some cannot be used; a whole type would fill requests with what nobody needs.
            batch, leads = leads[: wanted + 1], leads[wanted + 1 :]
            titles = {file: title for title, file in batch}
            for candidate in (await self.lister.list_files(list(titles))).found:
                if not wanted:
                    break
                if isinstance(candidate, RemoteCandidate):
                    found = await self.lister.fetch_candidate(candidate)
                    if isinstance(found, Dropped):
                        continue
                    made.append(FetchedPicture(title=titles[found.image.file], picture=describe_fetched(found)))
                wanted -= 1
        return tuple(made)

    def _list_leads(self, node: int, avoid: Collection[int]) -> list[tuple[str, str]]:
        """Return title and lead picture of others of the anchor's type, in the order in which they are taken."""
        corpus = self.lister.corpus
        others = choose_distractors(corpus, node, avoid, self.count, self.seed)
        pages = [corpus.page(other) for other in others]
        return [(page.title, page.image) for page in pages if page.image]

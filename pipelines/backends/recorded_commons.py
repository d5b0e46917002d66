"""Recording around a service that describes pictures: each file is asked about once."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pipelines.backends.image_metadata import MOST_FILES, ImageFacts, ImageMetadata
from pipelines.backends.metering import count_usage
from pipelines.backends.replies import ReplyStore
from pipelines.freshness import name_generation
from pipelines.ids import canonical_json, digest_value
from schemas.manifest import Usage


@dataclass(frozen=True, slots=True)
class RecordedImageMetadata:
    """A service whose answer about a file is kept, whatever other files were asked for with it.

    That the service has no such file is kept, too. A request is recorded before the next is sent; in the counts, a file
    is a call.
    """

    metadata: ImageMetadata
    store: ReplyStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped service's identity."""
        return name_generation(self.metadata.identity, self.fresh)

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return recorded answers, and ask for those files that have none."""
        keys = {file: digest_value([self.identity, "describe_image", file]) for file in files}
        replies = {file: self.store.read(key) for file, key in keys.items()}
        missing = [file for file, reply in replies.items() if reply is None]
        for start in range(0, len(missing), MOST_FILES):
            batch = missing[start : start + MOST_FILES]
            answered = await self._ask(batch, [keys[file] for file in batch])
            await self.store.record({keys[file]: reply for file, reply in answered.items()}, self.identity)
            replies |= answered
            count_usage(Usage(calls=len(batch)))
        count_usage(Usage(cached_calls=len(replies) - len(missing)))
        return {file: _read_reply(reply) for file, reply in replies.items()}

    async def _ask(self, batch: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
        await self.store.note_asks(keys, self.identity)
        try:
            found = await self.metadata.describe_images(batch)
        except Exception as error:
            self.store.note_failure(keys, self.identity, type(error).__name__)
            raise
        return {file: canonical_json(None if facts is None else asdict(facts)) for file, facts in found.items()}


def _read_reply(reply: str | None) -> ImageFacts | None:
    facts = json.loads(reply or "null")
    return None if facts is None else ImageFacts(**facts)

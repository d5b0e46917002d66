"""Recording around a service that describes pictures: each file is asked about once."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pipelines.backends.image_metadata import MOST_FILES, ImageFacts, ImageMetadata
from pipelines.backends.metering import count_usage
from pipelines.backends.replies import ReplyStore
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

    @property
    def identity(self) -> str:
        """The wrapped service's identity."""
        return self.metadata.identity

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return recorded answers, and ask for those files that have none."""
        keys = {file: digest_value([self.identity, "describe_image", file]) for file in files}
        replies = {file: self.store.read(key) for file, key in keys.items()}
        missing = [file for file, reply in replies.items() if reply is None]
        for start in range(0, len(missing), MOST_FILES):
            batch = missing[start : start + MOST_FILES]
            for file in batch:
                self.store.note_ask(keys[file], self.identity)
            for file, facts in (await self.metadata.describe_images(batch)).items():
                reply = canonical_json(None if facts is None else asdict(facts))
                self.store.write(keys[file], self.identity, reply)
                replies[file] = reply
            count_usage(Usage(calls=len(batch)))
        count_usage(Usage(cached_calls=len(replies) - len(missing)))
        return {file: _read_reply(reply) for file, reply in replies.items()}


def _read_reply(reply: str | None) -> ImageFacts | None:
    facts = json.loads(reply or "null")
    return None if facts is None else ImageFacts(**facts)

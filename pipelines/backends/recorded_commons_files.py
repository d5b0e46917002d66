"""Recording around a search for pictures and around fetching them: each is asked for once."""

import asyncio
import hashlib
import json
from dataclasses import asdict, dataclass

from pipelines.backends.image_metadata import FileFetch, FileSearch, ImageFacts, RemoteFile
from pipelines.backends.metering import count_usage
from pipelines.backends.replies import ReplyStore
from pipelines.errors import CorruptInput, RecordFailed
from pipelines.freshness import name_generation
from pipelines.ids import canonical_json, digest_value
from pipelines.pictures import PictureSource, PictureStore
from schemas.manifest import Usage


@dataclass(frozen=True, slots=True)
class RecordedFileSearch:
    """A search for pictures whose answers are kept, empty ones too."""

    search: FileSearch
    store: ReplyStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped search's identity."""
        return name_generation(self.search.identity, self.fresh)

    async def search_files(self, query: str, count: int) -> tuple[tuple[str, ImageFacts], ...]:
        """Return the recorded pictures or search."""

        async def ask() -> str:
            found = await self.search.search_files(query, count)
            return canonical_json([[file, asdict(facts)] for file, facts in found])

        key = digest_value([self.identity, "search_files", query, count])
        reply, cached = await self.store.recall(key, self.identity, ask)
        count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
        return tuple((file, ImageFacts(**facts)) for file, facts in json.loads(reply))


@dataclass(frozen=True, slots=True)
class RecordedFileFetch:
    """Pictures that are fetched once: the recording keeps the sha256, the image store the bytes.

    That a file is missing or of no use is recorded, too. A recorded picture that is gone from the image store is
    fetched again, and must be the same.
    """

    fetch: FileFetch
    store: ReplyStore
    pictures: PictureStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped service's identity."""
        return name_generation(self.fetch.identity, self.fresh)

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return the picture's bytes from the image store, or fetch them.

        Raises:
            RecordFailed: as the wrapped service, now or when it was recorded, and ``picture-changed`` if the picture
                is gone from the image store and the service has another one by now.
        """

        async def ask() -> str:
            try:
                return canonical_json({"sha256": await self._keep(file, await self.fetch.fetch_file(file))})
            except RecordFailed as error:
                return canonical_json({"error": error.error, "detail": error.detail})

        key = digest_value([self.identity, "fetch_file", file.file, file.url])
        reply, cached = await self.store.recall(key, self.identity, ask)
        said = json.loads(reply)
        if "error" in said:
            count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
            raise RecordFailed(said["error"], said["detail"])
        try:
            data, _ = await asyncio.to_thread(self.pictures.load, said["sha256"])
        except CorruptInput:
            data = await self._fetch_again(file, key, said["sha256"])
            cached = False
        count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
        return data

    async def _fetch_again(self, file: RemoteFile, key: str, sha256: str) -> bytes:
        await self.store.note_asks([key], self.identity)
        try:
            data = await self.fetch.fetch_file(file)
        except Exception as error:
            self.store.note_failure([key], self.identity, type(error).__name__)
            raise
        # The first reply stays, so this one is counted as none.
        self.store.note_failure([key], self.identity, "fetched-again")
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            detail = f"{file.file}: sha256 was {sha256}, is {found} by now; take it with --fresh-replies commons"
            raise RecordFailed("picture-changed", detail)
        await self._keep(file, data)
        return data

    async def _keep(self, file: RemoteFile, data: bytes) -> str:
        credit = PictureSource(file.file, "", "", "", file.url)
        return (await asyncio.to_thread(self.pictures.add_bytes, data, credit)).sha256

"""Files of many records in few requests, and counts of what is fetched."""

import asyncio
from dataclasses import dataclass, field

from pipelines.errors import RateLimited
from pipelines.services.clients.commons import JoinedMetadata


@dataclass
class Service:
    """Describes files after a while and notes what it was asked; raises what it is told to."""

    seconds: float = 0.0
    raises: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    identity: str = "service:1"

    async def describe_images(self, files):
        self.asked.append(list(files))
        await asyncio.sleep(self.seconds)
        if self.raises:
            raise self.raises.pop(0)
        return {file: f"facts of {file}" for file in files}


def describe_all(joined, *records, later=()):
    """Ask for the files of records at once, and for others while the first request is under way."""

    async def run():
        first = [asyncio.create_task(joined.describe_images(files)) for files in records]
        await asyncio.sleep(0.1 if later else 0.0)
        others = [asyncio.create_task(joined.describe_images(files)) for files in later]
        return await asyncio.gather(*first, *others, return_exceptions=True)

    return asyncio.run(run())


def test_files_of_many_records_go_into_one_request_each_file_once():
    service = Service()
    records = [[f"F{n}.jpg", "Shared.jpg"] for n in range(20)]
    told = describe_all(JoinedMetadata(service), *records)
    assert told == [{file: f"facts of {file}" for file in files} for files in records]
    assert len(service.asked) == 1
    assert sorted(service.asked[0]) == sorted({file for files in records for file in files})


def test_no_request_has_more_than_fifty_files():
    service = Service()
    describe_all(JoinedMetadata(service), *([f"F{n}.jpg" for n in range(k * 30, k * 30 + 30)] for k in range(4)))
    assert [len(files) for files in service.asked] == [50, 50, 20]


def test_what_is_asked_while_a_request_is_under_way_waits_for_the_next():
    service = Service(seconds=0.3)
    later = [[f"L{n}.jpg"] for n in range(5)]
    told = describe_all(JoinedMetadata(service), ["A.jpg"], later=later)
    assert service.asked == [["A.jpg"], [f"L{n}.jpg" for n in range(5)]]
    assert told[-1] == {"L4.jpg": "facts of L4.jpg"}


def test_an_error_meets_all_who_wait_for_that_request_and_no_others():
    service = Service(seconds=0.3, raises=[RateLimited("slow", 5.0)])
    first, second, other = describe_all(JoinedMetadata(service), ["A.jpg"], ["B.jpg"], later=[["C.jpg"]])
    assert isinstance(first, RateLimited)
    assert first is second
    assert other == {"C.jpg": "facts of C.jpg"}


def test_a_record_that_is_interrupted_leaves_the_files_of_others():
    service = Service()

    async def run():
        joined = JoinedMetadata(service)
        given_up = asyncio.create_task(joined.describe_images(["A.jpg", "B.jpg"]))
        kept = asyncio.create_task(joined.describe_images(["B.jpg"]))
        await asyncio.sleep(0)
        given_up.cancel()
        return await kept

    assert asyncio.run(run()) == {"B.jpg": "facts of B.jpg"}


def test_each_event_loop_has_a_queue_of_its_own():
    service = Service()
    joined = JoinedMetadata(service)
    assert [describe_all(joined, ["A.jpg"]) for _ in range(2)] == [[{"A.jpg": "facts of A.jpg"}]] * 2
    assert describe_all(joined, []) == [{}]
    assert describe_all(joined, ["A.jpg"]) == [{"A.jpg": "facts of A.jpg"}]
    assert joined.identity == "service:1"

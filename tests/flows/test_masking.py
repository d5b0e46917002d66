"""What a flow tells Prefect holds no key, and of a span that was stopped one line."""

import asyncio
import pickle

import pytest

from pipelines.errors import Unavailable
from pipelines.run.executors import SpanProgress
from pipelines.run.spans import Span, SpanReport
from pipelines.secrets import MASK

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
KEY = "sk-" + "a1B2" * 8


def test_lines_of_the_log_hold_no_key() -> None:
    from flows.synthesize import RunLog

    said: list[str] = []
    RunLog(said.append).write(f"waiting for http://model/?key={KEY}\n")
    assert said == [f"waiting for http://model/?key={MASK}"]


def test_the_failure_of_a_span_in_a_worker_holds_no_key() -> None:
    from flows.synthesize import SpanFailed

    failed = pickle.loads(pickle.dumps(SpanFailed(SpanReport(error=Unavailable(f"{KEY} was refused")))))
    assert str(failed) == f"{MASK} was refused"
    assert str(failed.report.error) == f"{KEY} was refused"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "Unavailable: interrupted"),
        (Unavailable(f"{KEY} was refused"), f"Unavailable: {MASK} was refused"),
    ],
)
def test_a_span_that_was_stopped_is_cancelled_and_raises_nothing(error: BaseException, said: str) -> None:
    from flows.synthesize import follow_span

    async def follow() -> None:
        progress = SpanProgress(Span((), (0,)), {0})
        progress.fail(error)
        state = await follow_span.fn("seeds 0", progress)
        assert (state.type.value, state.message) == ("CANCELLED", said)

    asyncio.run(follow())

"""What a flow tells Prefect holds no key, and of a span that was stopped one line."""

import pickle

import pytest

from pipelines.errors import Unavailable
from pipelines.run.workers import SpanReport
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
        (KeyboardInterrupt("now"), "KeyboardInterrupt: now"),
        (Unavailable(f"{KEY} was refused"), f"Unavailable: {MASK} was refused"),
    ],
)
def test_a_chain_that_was_stopped_is_cancelled_and_hands_its_error_on(error: BaseException, said: str) -> None:
    from flows.synthesize import make_chain

    def stop() -> None:
        raise error

    errors: list[BaseException] = []
    state = make_chain.fn("seeds 0", stop, errors)
    assert (state.type.value, state.message, errors) == ("CANCELLED", said, [error])

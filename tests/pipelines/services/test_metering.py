import asyncio

import pytest

from pipelines.errors import BudgetSpent, ServiceError
from pipelines.services.metering import Budget, Price, add_waited, count_usage, open_meter, open_stopwatch
from schemas.manifest import Usage

SPENT = Usage(calls=3, tokens_in=700, tokens_out=300, gpu_seconds=1800.0, cost=2.5)


def test_usage_and_waits_go_to_the_meter_and_stopwatch_that_are_open():
    with open_meter() as outer, open_stopwatch() as slow:
        count_usage(Usage(calls=1))
        add_waited(2.0, "2026-11-22")
        with open_meter() as inner, open_stopwatch() as quick:
            count_usage(Usage(calls=2))
            add_waited(0.25, "")
        count_usage(Usage(calls=4))
        add_waited(4.0, "2026-11-21")
    count_usage(Usage(calls=8))
    add_waited(8.0, "2026-11-23")
    assert (outer.usage.calls, inner.usage.calls) == (5, 2)
    assert (slow.seconds, slow.day, quick.seconds, quick.day) == (6.0, "2026-11-22", 0.25, "")


def test_tasks_count_into_the_meter_and_stopwatch_under_which_they_began():
    def note():
        count_usage(Usage(calls=1))
        add_waited(0.5, "2026-11-20")

    async def work(calls):
        with open_meter() as meter, open_stopwatch() as stopwatch:
            await asyncio.gather(*(asyncio.to_thread(note) for _ in range(calls)))
            return meter.usage.calls, stopwatch.seconds

    async def run():
        return await asyncio.gather(*map(work, range(9)))

    assert asyncio.run(run()) == [(calls, 0.5 * calls) for calls in range(9)]


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"money": 2.5}, "2.5 of 2.5 in money"),
        ({"money": 2.0}, "2.5 of 2 in money"),
        ({"tokens": 1000}, "1,000 of 1,000 tokens"),
        ({"gpu_hours": 0.25}, "0.5 of 0.25 GPU-hours"),
        ({"money": 1.0, "tokens": 1, "gpu_hours": 99.0}, "2.5 of 1 in money, 1,000 of 1 tokens"),
    ],
)
def test_a_budget_says_what_was_spent_of_which_limit(limits, says):
    budget = Budget(limits)
    budget.check()
    budget.add(SPENT)
    with pytest.raises(BudgetSpent) as caught:
        budget.check()
    assert (
        str(caught.value)
        == f"the budget of this run is spent: {says}; run the same command again to continue with the same budget"
    )
    assert isinstance(caught.value, ServiceError)
    assert caught.value.exit_code == 3


def test_prices_are_of_a_million_tokens_and_of_a_gpu_hour():
    prices = (Price(), Price(tokens_in=3.0), Price(tokens_out=15.0), Price(gpu_hour=2.0), Price(3.0, 15.0, 2.0))
    assert [price.charge(2_000_000, 1_000_000, 1800.0)[0] for price in prices] == [0.0, 6.0, 15.0, 1.0, 22.0]


def test_a_share_is_paid_of_the_prices_of_tokens_and_the_rest_is_the_discount():
    assert Price(3.0, 15.0, 2.0, share=0.5).charge(2_000_000, 1_000_000, 1800.0) == (11.5, 10.5)

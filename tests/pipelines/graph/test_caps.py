import pytest

from pipelines.graph.caps import Ending, admit, fit_rates


def make_endings(shares):
    return [
        Ending((f"fact {number}", f"answer {number}", "relation year"), share) for number, share in enumerate(shares)
    ]


def take(endings, rates, seeds=4000):
    """Return the share of each fact among the paths of seeds that walk to each fact as often as it is expected."""
    weights = [
        ending.share * sum(admit(rates, f"seed {seed}", ending.keys) for seed in range(seeds)) / seeds
        for ending in endings
    ]
    return [weight / sum(weights) for weight in weights]


def test_a_fact_that_half_of_the_walks_end_at_gets_no_more_than_its_cap():
    endings = make_endings([0.5] + [0.01] * 50)
    rates = fit_rates(endings, 0.05, 1.0)
    shares = take(endings, rates)
    assert shares[0] == pytest.approx(0.05, abs=0.01)
    assert all(key in ("fact 0", "answer 0") for key in rates)


def test_facts_below_their_cap_are_never_refused():
    assert fit_rates(make_endings([0.02] * 50), 0.05, 1.0) == {}


def test_with_too_few_facts_for_the_cap_each_may_have_twice_its_even_share():
    endings = make_endings([0.7, 0.1, 0.1, 0.1])
    assert take(endings, fit_rates(endings, 0.01, 1.0))[0] == pytest.approx(0.5, abs=0.03)


def test_what_one_answer_of_many_facts_has_is_capped_together():
    endings = [Ending((f"fact {n}", "answer same", "relation year"), 0.02) for n in range(25)]
    endings += [Ending((f"fact {n}", f"answer {n}", "relation year"), 0.02) for n in range(25, 50)]
    shares = take(endings, fit_rates(endings, 0.1, 1.0))
    assert sum(shares[:25]) == pytest.approx(0.1, abs=0.02)


def test_a_relation_is_capped_and_those_beside_it_are_not():
    endings = [Ending((f"fact {n}", f"answer {n}", f"relation {'year' if n < 40 else n}"), 0.02) for n in range(50)]
    rates = fit_rates(endings, 1.0, 0.3)
    assert set(rates) == {"relation year"}
    assert sum(take(endings, rates)[:40]) == pytest.approx(0.3, abs=0.03)


def test_a_seed_is_admitted_or_not_whatever_the_other_seeds():
    rates = {"fact 1": 0.5}
    said = [admit(rates, f"seed {number}", ("fact 1", "answer 1")) for number in range(200)]
    assert said == [admit(rates, f"seed {number}", ("fact 1", "answer 1")) for number in range(200)]
    assert 60 < sum(said) < 140
    assert admit(rates, "seed 1", ("fact 2",))


def test_a_fact_over_all_three_caps_is_held_to_the_lowest():
    endings = [Ending(("fact 0", "answer 0", "relation 0"), 0.4)]
    endings += [Ending((f"fact {n}", f"answer {n}", f"relation {n}"), 0.01) for n in range(1, 61)]
    assert take(endings, fit_rates(endings, 0.05, 0.1))[0] == pytest.approx(0.05, abs=0.015)

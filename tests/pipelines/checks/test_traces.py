import pytest

from pipelines.checks.traces import check_decision, list_trace_checks, write_steps
from pipelines.checks.verdicts import run_checks
from tests.pipelines.stages.news_wiki import QUESTION, build_news, make_answer, make_trace


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build_news(tmp_path_factory.mktemp("news"))


def find_codes(corpus, trace, text=QUESTION, answer=None):
    return [
        each.code for each in run_checks(list_trace_checks(corpus, text, answer or make_answer(), trace), audit=True)
    ]


def reword(trace):
    """Return a trace with the steps of its links."""
    steps = write_steps(trace.anchor_kind, trace.anchor_evidence, trace.links)
    return trace.model_copy(update={"steps": steps})


def change_link(trace, number, **changes):
    links = list(trace.links)
    links[number] = links[number].model_copy(update=changes)
    return reword(trace.model_copy(update={"links": tuple(links)}))


def test_a_sound_trace_passes_every_check_and_has_three_hops(corpus):
    trace = make_trace(corpus)
    assert find_codes(corpus, trace) == []
    assert (trace.hops, trace.bridge) == (3, "Ana Roth")
    assert [step.split("]")[0] for step in trace.steps] == [
        "1. [Visual step", "2. [Search step 1", "3. [Search step 2", "4. [Conclusion",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("field", ["text", "start", "end", "title", "page_id", "revision"])
def test_a_span_that_is_not_the_articles_is_found(corpus, number, field):
    trace = make_trace(corpus)
    evidence = trace.links[number].evidence
    value = getattr(evidence, field)
    changed = evidence.model_copy(update={field: f"{value}!" if isinstance(value, str) else value + 1})
    assert "quote-not-found" in find_codes(corpus, change_link(trace, number, evidence=changed))


@pytest.mark.parametrize(
    ("relation", "code"),
    [
        ("had as its designer", []), ("is the design of", []), ("was praised by", ["link-unsupported"]),
        ("was by", []), ("is at", ["link-unsupported"]), ("designed for Ana Roth", ["link-unsupported"]),
        ("", ["link-unsupported"]),
    ],
)  # fmt: skip
def test_a_quote_has_the_words_of_the_relation_in_some_form(corpus, relation, code):
    assert find_codes(corpus, change_link(make_trace(corpus), 0, relation=relation)) == code


@pytest.mark.parametrize(
    "change",
    [{"aliases": ("anything",)}, {"value": "1871-05-05"}, {"key": "text:else"}, {"type": "string"}],
    ids=lambda change: next(iter(change)),
)
def test_all_of_the_answer_follows_from_its_words(corpus, change):
    answer = make_answer().model_copy(update=change)
    assert "answer-untyped" in find_codes(corpus, make_trace(corpus), answer=answer)


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        ({}, True), ({"decided_by": " "}, False), ({"judged": ""}, False), ({"judged": "0" * 64}, False),
        ({"verdict": "unsure"}, False), ({"verdict": "no", "decided_on": "2026-11-20"}, False),
        ({"verdict": "unsure", "decided_on": "2026-11-20"}, True), ({"decided_on": "2026-13-45"}, False),
        ({"decided_on": "yesterday"}, False), ({"decided_on": "20261120"}, False),
    ],
)  # fmt: skip
def test_the_very_text_was_judged_by_a_model_that_said_yes_or_by_a_person_on_a_day(corpus, change, sound):
    trace = make_trace(corpus).model_copy(update=change)
    assert check_decision(QUESTION, trace).passed is sound
    assert not check_decision(QUESTION.replace("born", "seen"), trace).passed


@pytest.mark.parametrize("change", [{"anchor": "Kelm"}, {"links": ()}], ids=["another anchor", "no links"])
def test_a_trace_without_its_parts_is_none(corpus, change):
    trace = make_trace(corpus).model_copy(update=change)
    assert "link-unsupported" in [
        each.code for each in run_checks(list_trace_checks(corpus, QUESTION, make_answer(), trace))
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("On what date was Ana Roth born, who designed the bridge in the image?", "alias-leak"),
        ("On what date was the engineer Roth born who designed the bridge in the image?", "alias-leak"),
        ("On what date was the engineer of Kelm Bridge in the image born?", "alias-leak"),
        ("Was the engineer who designed the bridge in the image born on 4 May 1871?", "answer-leak"),
        ("On what date was the engineer born who designed it?", "reference-missing"),
        ("On what date was the engineer born who designed the bridge in the image", "reference-missing"),
        ("In what year was the engineer born who designed the bridge in the image?", "precision-unasked"),
    ],
)
def test_a_question_that_tells_or_does_not_ask_is_refused(corpus, text, code):
    assert code in find_codes(corpus, make_trace(corpus), text)

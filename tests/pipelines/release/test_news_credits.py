"""Who is credited for articles of the news, and that nothing is published without a licence."""

import pytest

from pipelines.agent.observations import Shown
from pipelines.errors import GateNotMet
from pipelines.release.card import NOBODY, credit_article
from pipelines.release.manifest import ArticleRights

PAGE = Shown("https://herald.test/1", "Crowds at Kelm Bridge", "")
RIGHTS = ArticleRights(licence="CC BY 4.0", licence_url="https://creativecommons.org/licenses/by/4.0/")


def test_an_article_is_credited_to_its_host_under_the_operators_licence():
    credit = credit_article("page", PAGE, "c", RIGHTS)
    assert (credit.author, credit.licence, credit.url) == ("herald.test", "CC BY 4.0", PAGE.url)
    assert credit_article("page", Shown("https://a.example/1", "t", ""), "c", RIGHTS).author == NOBODY


@pytest.mark.parametrize("rights", [None, ArticleRights(licence=" ", licence_url="")])
def test_without_a_licence_an_article_is_released_only_where_that_is_allowed(rights):
    with pytest.raises(GateNotMet, match=r"news\.licence"):
        credit_article("page-read", PAGE, "c", rights)
    assert credit_article("page-read", PAGE, "c", rights, lenient=True).licence == "unknown"

import pytest

from pipelines.checks.pictures import is_free_licence
from pipelines.corpus.commons import PUBLIC_DOMAIN, choose_licence, find_licence_url, name_licence

NAMES = {
    "Q6938433": "CC0",
    "Q20007257": "CC BY 4.0",
    "Q18199165": "CC BY-SA 4.0",
    "Q42716613": "CC BY-SA 3.0 de",
    "Q75765287": "CC BY 2.5 scotland",
    "Q56292840": "CC BY-SA 3.0 igo",
    "Q7257361": "Public domain",
    "Q50829104": "GFDL",
    "Q152332": "FAL",
    "Q99891702": "OGL 3",
}
URLS = {
    "CC0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA 3.0 de": "https://creativecommons.org/licenses/by-sa/3.0/de/",
    "Public domain": "https://creativecommons.org/publicdomain/mark/1.0/",
    "GFDL 1.2": "https://www.gnu.org/licenses/old-licenses/fdl-1.2.html",
    "CC BY": "",
    "Q98923445": "",
    "": "",
}


@pytest.mark.parametrize(("qid", "name"), NAMES.items())
def test_a_licence_gets_the_short_name_that_commons_shows(qid, name):
    assert name_licence(qid) == name
    assert is_free_licence(name)


def test_an_unknown_licence_stays_a_qid_and_is_not_free():
    assert name_licence("Q24082749") == "Q24082749"
    assert not is_free_licence("Q24082749")


@pytest.mark.parametrize(("name", "url"), URLS.items())
def test_a_short_name_leads_to_the_text_of_the_licence(name, url):
    assert find_licence_url(name) == url


@pytest.mark.parametrize(
    ("qids", "name"),
    [
        (["Q50829104", "Q14946043"], "CC BY-SA 3.0"),
        (["Q14946043", "Q19113751", "Q18199165"], "CC BY-SA 4.0"),
        (["Q18199165", "Q20007257"], "CC BY 4.0"),
        (["Q42716613", "Q14946043"], "CC BY-SA 3.0"),
        (["Q98923445", "Q18199165"], "CC BY-SA 4.0"),
        (["Q98923445"], "Q98923445"),
    ],
)
def test_of_several_licences_the_one_with_the_fewest_conditions_counts(qids, name):
    assert choose_licence(qids, [], in_parts=False) == choose_licence(qids[::-1], [], in_parts=False) == name


def test_licences_of_parts_all_bind_and_are_not_taken_for_free():
    name = choose_licence(["Q18199165", "Q20007257"], [], in_parts=True)
    assert name == "CC BY 4.0; CC BY-SA 4.0; in parts"
    assert not is_free_licence(name)


@pytest.mark.parametrize(
    ("statuses", "name"),
    [(["Q19652"], PUBLIC_DOMAIN), (["Q19652", "Q50423863"], ""), (["Q50423863"], ""), ([], "")],
)
def test_without_a_licence_only_the_public_domain_everywhere_counts(statuses, name):
    assert choose_licence([], statuses, in_parts=False) == name

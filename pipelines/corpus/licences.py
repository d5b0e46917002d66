"""Licences as Wikidata names them (P275, P6216), turned into the short names that Wikimedia Commons shows.

Whether a short name is free is decided in one place, :mod:`pipelines.checks.images`; here a Qid only gets its name. One
that is not in the table stays a Qid, which no check takes for free.
"""

import re
from collections.abc import Iterable

PUBLIC_DOMAIN = "Public domain"
_IN_PUBLIC_DOMAIN = "Q19652"

# Sources: the search mapping of Wikimedia's own configuration (wmf-config/SearchSettingsForWikibase.php,
# $wgWBCSLicenseMapping) and the licence templates that BotMultichill maps (toollabs, own_work_to_sdoc.py). Q7257361 is
# the Public Domain Mark, Q98592850 "released into the public domain by the copyright holder".
_NAMED = {
    "Q6938433": "CC0",
    "Q7257361": PUBLIC_DOMAIN,
    "Q98592850": PUBLIC_DOMAIN,
    _IN_PUBLIC_DOMAIN: PUBLIC_DOMAIN,
    "Q6905323": "CC BY",
    "Q6905942": "CC BY-SA",
    "Q50829104": "GFDL",
    "Q26921685": "GFDL 1.1",
    "Q26921686": "GFDL 1.2",
    "Q26921691": "GFDL 1.3",
    "Q27019786": "GFDL 1.3+",
    "Q152332": "FAL",
    "Q99891660": "OGL",
    "Q99891692": "OGL 2",
    "Q99891702": "OGL 3",
}

# Creative Commons by version: first the international (or unported, or generic) licence, then its national ports.
_CREATIVE_COMMONS = {
    "CC BY 1.0": "Q30942811 fi:Q75446635 il:Q75446609 nl:Q75445499",
    "CC BY 2.0": """Q19125117 at:Q75450165 au:Q75452310 be:Q75457467 br:Q75457506 ca:Q75460106 cl:Q75460149
        de:Q75466259 es:Q75470365 fr:Q75470422 hr:Q75474094 it:Q75475677 jp:Q75477775 kr:Q44282633 nl:Q75476747
        pl:Q75486069 tw:Q75487055 uk:Q63241773 za:Q75488238""",
    "CC BY 2.1": "au:Q75894680 es:Q75894644 jp:Q26116436",
    "CC BY 2.5": """Q18810333 ar:Q75491630 au:Q75494411 bg:Q75500112 br:Q75501683 ca:Q75504835 ch:Q75506669
        cn:Q75434631 co:Q75663969 dk:Q75665696 es:Q75705948 hr:Q75706881 hu:Q75759387 il:Q75759731 in:Q75443434
        it:Q75760479 mk:Q75761383 mt:Q75761779 mx:Q75762418 my:Q75762784 nl:Q75763101 pe:Q75764151 pl:Q75764470
        pt:Q75764895 scotland:Q75765287 se:Q27940776 si:Q75766316 tw:Q75767185 za:Q75767606""",
    "CC BY 3.0": """Q14947546 at:Q75768706 au:Q52555753 br:Q75770766 ch:Q75771320 cl:Q75771874 cn:Q75779562
        cr:Q75789929 cz:Q67918154 de:Q62619894 ec:Q75850366 ee:Q75850813 eg:Q75850832 es:Q75775133 fr:Q75775714
        gr:Q75851799 gt:Q75852313 hk:Q75779905 hr:Q75776014 ie:Q75852938 igo:Q26259495 it:Q75776487 lu:Q75853187
        nl:Q53859967 no:Q75853549 nz:Q75853514 ph:Q75856699 pl:Q75777688 pr:Q75857518 pt:Q75854323 ro:Q75858169
        rs:Q75859019 sg:Q75859751 th:Q75866892 tw:Q75778801 ug:Q75882470 us:Q18810143 vn:Q75889409 za:Q76631753""",
    "CC BY 4.0": "Q20007257",
    "CC BY-SA 1.0": "Q47001652 fi:Q76767348 il:Q76769447 nl:Q77014037",
    "CC BY-SA 2.0": """Q19068220 at:Q77021108 au:Q77131257 be:Q77132386 br:Q77133402 ca:Q77135172 cl:Q77136299
        de:Q77143083 es:Q77352646 fr:Q77355872 hr:Q77361415 it:Q77362254 jp:Q77363039 kr:Q44282641 nl:Q77363856
        pl:Q77364488 tw:Q77364872 uk:Q77365183 za:Q77365530""",
    "CC BY-SA 2.1": "au:Q77366066 es:Q77366576 jp:Q77367349",
    "CC BY-SA 2.5": """Q19113751 ar:Q99239269 au:Q99239530 bg:Q99239903 br:Q99239977 ca:Q24331618 ch:Q99240068
        cn:Q99240158 co:Q99240246 dk:Q99240336 es:Q99240437 hr:Q99240535 hu:Q98755330 il:Q99240616 in:Q99240684
        it:Q98929925 mk:Q99437988 mt:Q99438077 mx:Q99438138 my:Q99438269 nl:Q18199175 pe:Q99438515 pl:Q98755337
        pt:Q99438743 scotland:Q99438747 se:Q15914252 si:Q99438751 tw:Q99438755 za:Q99438757""",
    "CC BY-SA 3.0": """Q14946043 at:Q80837139 au:Q86239208 br:Q98755369 ch:Q99457378 cl:Q99457535 cn:Q99458406
        cr:Q99458659 cz:Q98755321 de:Q42716613 ec:Q99458819 ee:Q86239559 es:Q86239991 fr:Q86240326 gr:Q99457707
        gt:Q99459010 hk:Q99459076 hr:Q99459365 ie:Q99459488 igo:Q56292840 it:Q98755364 lu:Q86240624 nl:Q18195572
        no:Q63340742 nz:Q99438798 ph:Q99460006 pl:Q80837607 pr:Q99460154 pt:Q99460272 ro:Q86241082 rs:Q98755344
        sg:Q99460356 th:Q99460411 tw:Q98960995 ug:Q99460475 us:Q18810341 vn:Q99460484 za:Q99460515""",
    "CC BY-SA 4.0": "Q18199165",
}
_FAMILIES = ("CC0", PUBLIC_DOMAIN, "CC BY", "CC BY-SA", "FAL", "OGL", "GFDL")
"""From the fewest conditions to the most: what a file under several licences is best used under."""
_URLS = {
    "CC0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "FAL": "https://artlibre.org/licence/lal/en/",
    "OGL": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/1/",
    "OGL 2": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/2/",
    "OGL 3": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
    "GFDL": "https://www.gnu.org/licenses/fdl-1.3.html",
    "GFDL 1.1": "https://www.gnu.org/licenses/old-licenses/fdl-1.1.html",
    "GFDL 1.2": "https://www.gnu.org/licenses/old-licenses/fdl-1.2.html",
    "GFDL 1.3": "https://www.gnu.org/licenses/fdl-1.3.html",
    "GFDL 1.3+": "https://www.gnu.org/licenses/fdl-1.3.html",
}
_PUBLIC_DOMAIN_MARK = "https://creativecommons.org/publicdomain/mark/1.0/"
_PARTS = re.compile(r"(?P<family>CC BY-SA|CC BY|GFDL|OGL) (?P<version>\d(?:\.\d)?)\+?(?: (?P<port>[a-z]+))?")


def _read_table() -> dict[str, str]:
    names = dict(_NAMED)
    for version, row in _CREATIVE_COMMONS.items():
        for entry in row.split():
            port, _, qid = entry.rpartition(":")
            names[qid] = f"{version} {port}" if port else version
    return names


_NAMES = _read_table()


def name_licence(qid: str) -> str:
    """Return a licence's short name such as ``CC BY-SA 3.0 de``, or the Qid itself when the table has none."""
    return _NAMES.get(qid, qid)


def find_licence_url(name: str) -> str:
    """Return the address of a licence's text by its short name, empty when there is no one address."""
    if name == PUBLIC_DOMAIN:
        return _PUBLIC_DOMAIN_MARK
    family, version, port = _split_name(name)
    if not version or not family.startswith("CC BY"):
        return _URLS.get(name, "")
    return f"https://creativecommons.org/licenses/{family[3:].lower()}/{version}/" + (f"{port}/" if port else "")


def choose_licence(licences: Iterable[str], statuses: Iterable[str], in_parts: bool) -> str:
    """Return the one short name a file goes under.

    Of several licences the taker may choose any: the one with the fewest conditions is taken, its newest version, the
    international text before a port. Where they hold for parts of the file (a photograph of a sculpture), all of them
    bind: they are joined, and the joined name is on no list of free licences. Without a licence, a file whose only
    copyright status is the public domain goes under that; one that is protected somewhere goes under nothing.

    Args:
        licences: Qids of P275.
        statuses: Qids of P6216.
        in_parts: whether a licence or a status is said to hold for a part of the file only (P518).

    Returns:
        A short name, Qids where the table has none, or an empty string when nothing is stated.
    """
    names = sorted({name_licence(qid) for qid in licences}, key=_rank_name)
    if in_parts:
        return "; ".join([*names, "in parts"])
    if names:
        return names[0]
    return PUBLIC_DOMAIN if set(statuses) == {_IN_PUBLIC_DOMAIN} else ""


def _rank_name(name: str) -> tuple[int, float, str, str]:
    family, version, port = _split_name(name)
    rank = _FAMILIES.index(family) if family in _FAMILIES else len(_FAMILIES)
    return rank, -float(version or 0), port, name


def _split_name(name: str) -> tuple[str, str, str]:
    match = _PARTS.fullmatch(name)
    return (match["family"], match["version"], match["port"] or "") if match else (name, "", "")

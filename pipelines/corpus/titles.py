"""What a link target means: namespace, title and fragment, by MediaWiki's rules for titles.

Source: MediaWiki's ``MediaWikiTitleCodec`` and ``Language::ucfirst``, and ``UcfirstOverrides.php`` of Wikimedia's
configuration: titles keep the capitals of an older Unicode.
"""

import html
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

import xxhash

from pipelines.corpus.dump import Site
from pipelines.corpus.languages import DOTTED_LANGUAGES, NAMESPACE_ALIASES

_BIDI = re.compile("[\u200e\u200f\u202a-\u202e]")
_SPACES = re.compile("[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\t\r\n]+")
_PERCENT = re.compile("%[0-9A-Fa-f]{2}")
_ENTITY = re.compile("&(?:[A-Za-z0-9]+|#[0-9]+|#[xX][0-9A-Fa-f]+);")
_ILLEGAL = re.compile(
    "[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]|~~~|%[0-9A-Fa-f]{2}|&(?:[A-Za-z0-9\x80-\U0010ffff]+|#[0-9]+|#[xX][0-9A-Fa-f]+);"
)
_RELATIVE = re.compile(r"(?:^|/)\.\.?(?:/|$)")
_KEPT_LETTERS = re.compile(
    "[\u0345\u01c5\u01c8\u01cb\u01f2\u10d0-\u10ff\u2170-\u217f\u24d0-\u24e9\ua7b9\U00016e60-\U00016e7f]"
)
"""Letters with a capital in Unicode that a title does not take."""
MAX_TITLE_BYTES = 255
_MAX_OWN_PREFIXES = 2  # MediaWiki drops any number, one at a time; each takes another pass over the rest

_ALIASES: dict[str, int] = {
    "media": -2,
    "special": -1,
    "talk": 1,
    "user": 2,
    "user talk": 3,
    "project": 4,
    "project talk": 5,
    "wp": 4,
    "wt": 5,
    "file": 6,
    "image": 6,
    "file talk": 7,
    "image talk": 7,
    "mediawiki": 8,
    "mediawiki talk": 9,
    "template": 10,
    "tm": 10,
    "template talk": 11,
    "help": 12,
    "help talk": 13,
    "category": 14,
    "category talk": 15,
}
"""Canonical names and aliases that hold in every wiki, beside its local names."""

_PROJECTS = """
b betawikiversity bugzilla c commons creativecommons d doi foundation gerrit google imdb incubator irc iso mail m
mediawikiwiki meta metawikimedia metawikipedia mw n oeis outreach phab phabricator q s sources species toollabs
toolforge translatewiki v voy w wikia wikibooks wikicities wikidata wikifunctions wikimedia wikinews wikipedia
wikiquote wikisource wikispecies wikiversity wikivoyage wikt wiktionary wmf
"""
_LANGUAGES = """
aa ab ace ady af ak als alt am ami an ang anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar bat-smg bbc
bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug bxr ca cbk-zam cdo ce ceb ch cho chr chy
ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz ee el eml en eo es et eu ext fa fat ff fi
fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur guw gv ha hak haw he hi
hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kaj kbd kbp kcg
kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt
ltg lv lzh mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mos mr mrj ms mt mus mwl my myv mzn na nah nan nap nb
nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup nv ny oc olo om or os pa pag pam pap pcd pcm pdc pdt pfl pi
pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh
shi shn si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig
tk tl tly tn to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo
yue za zea zgh zh zh-classical zh-cn zh-min-nan zh-tw zh-yue zu
"""
_INTERWIKI = frozenset(_PROJECTS.split()) | frozenset(_LANGUAGES.split())

_LIST_PREFIXES = ("List of ", "Lists of ", "Outline of ", "Index of ", "Timeline of ")
_DISAMBIGUATION_SUFFIX = "(disambiguation)"


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A page of this wiki that a link names."""

    namespace: int
    title: str
    """Normalised, without namespace prefix."""
    fragment: str
    """Section name after ``#``, or empty."""


class TitleRules:
    """Resolves link targets by the rules of one wiki."""

    def __init__(self, site: Site) -> None:
        self.language = site.language
        self._is_capital = site.case == "first-letter"
        self._kept_cases = site.case_sensitive
        self._namespaces = _ALIASES | NAMESPACE_ALIASES.get(site.language, {})
        self._namespaces.update({name.lower().replace("_", " "): number for number, name in site.namespaces if name})
        self._own_prefixes = _list_own_prefixes(site).difference(self._namespaces)

    def resolve(self, raw_target: str) -> LinkTarget | None:
        """Say what a raw target (the text between ``[[`` and ``|`` or ``]]``) names.

        Returns:
            None for another wiki, another language, a bare ``#fragment``, or text that can be no title: more than two
            prefixes of the own wiki are none.
        """
        title, _, fragment = normalise_spaces(_decode(raw_target)).partition("#")
        namespace, title = 0, title.strip().removeprefix(":").strip()
        for _ in range(_MAX_OWN_PREFIXES):
            prefix, colon, rest = title.partition(":")
            if not colon or prefix.strip().lower() not in self._own_prefixes:
                break
            title = rest.strip().removeprefix(":").strip()
        if ":" in title:
            prefix, _, rest = title.partition(":")
            prefix = prefix.strip().lower()
            if prefix in self._namespaces:
                namespace, title = self._namespaces[prefix], rest.strip()
            elif prefix in _INTERWIKI or prefix in self._own_prefixes:
                return None
        if not _is_legal(title):
            return None
        return LinkTarget(namespace, self.capitalise(title, namespace), fragment.strip())

    def capitalise(self, title: str, namespace: int = 0) -> str:
        """Upper-case the first letter where the wiki does so; letters whose capital is longer stay (``ß``)."""
        keeps = namespace in self._kept_cases if self._kept_cases else not self._is_capital
        if keeps or not title:
            return title
        if title[0] == "i" and self.language in DOTTED_LANGUAGES:
            return "\u0130" + title[1:]
        return _raise_letter(title[0]) + title[1:]


def _list_own_prefixes(site: Site) -> frozenset[str]:
    """Return the interwiki prefixes that lead back to this wiki: ``en`` and ``w`` in English Wikipedia."""
    code = site.dbname.removesuffix("wiki").replace("_", "-")
    if code in _PROJECTS.split() or not site.dbname.endswith("wiki"):
        return frozenset({code} if site.dbname else {site.language, "w", "wikipedia"})
    return frozenset({code, "w", "wikipedia"})


def _raise_letter(letter: str) -> str:
    if letter.isascii():
        return letter.upper()
    if _KEPT_LETTERS.match(letter):
        return letter
    return next((capital for capital in (letter.upper(), letter.title()) if len(capital) == 1), letter)


def _is_legal(title: str) -> bool:
    if not title or title[0] == ":" or len(title.encode("utf-8", "replace")) > MAX_TITLE_BYTES:
        return False
    return not _ILLEGAL.search(title) and not _RELATIVE.search(title)


NO_ARTICLE = 0
"""Stands where the hash of a title would stand when what is named is no article of this wiki."""


def hash_article(target: LinkTarget | None) -> int:
    """Return the hash of the title of the article that a link names, ``NO_ARTICLE`` when it names none."""
    return hash_title(target.title) if target is not None and target.namespace == 0 else NO_ARTICLE


def hash_title(title: str) -> int:
    """Return the 64-bit XXH3 digest of a normalised title, the name it goes by until it has an id; never 0."""
    return xxhash.xxh3_64_intdigest(title.encode("utf-8", "surrogatepass")) or 1


def normalise_spaces(title: str) -> str:
    """Drop bidirectional marks, make every run of spaces and underscores one space, strip, and compose (NFC)."""
    if title.isascii():
        return _SPACES.sub(" ", title).strip()
    return unicodedata.normalize("NFC", _SPACES.sub(" ", _BIDI.sub("", title)).strip())


def is_list_title(title: str) -> bool:
    """Say whether a title announces a list, an outline, an index or a timeline."""
    return title.startswith(_LIST_PREFIXES)


def is_disambiguation_title(title: str) -> bool:
    """Say whether a title carries the disambiguation qualifier."""
    return title.endswith(_DISAMBIGUATION_SUFFIX)


def strip_qualifier(title: str) -> str:
    """Drop a closing parenthesis or the part after the first comma: ``Paris (mythology)``, ``Springfield, Ohio``."""
    base = re.sub(r"\s*\([^()]*\)$", "", title)
    return base.partition(", ")[0].strip() or title


def _decode(raw: str) -> str:
    if "%" in raw and _PERCENT.search(raw):
        raw = unquote(raw, errors="replace")
    return _ENTITY.sub(lambda match: html.unescape(match[0]), raw) if "&" in raw else raw

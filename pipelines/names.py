"""Names folded to one form, so that a name is found however it is written.

Two spellings fold alike when they differ only in case, diacritics, Unicode form, invisible characters, look-alike
letters of other scripts, punctuation, dots of initials, ``&`` for ``and`` or ``St.`` for ``Saint``. Folded text is for
comparing, never for showing.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_SPELLED: dict[str, str] = {
    "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t",
    "ŋ": "ng", "ɑ": "a", "ɡ": "g", "ƙ": "k", "ɓ": "b", "ɗ": "d", "ꞌ": " ", "ʻ": " ", "ʼ": " ", "ʹ": " ", "ˈ": " ",
}  # fmt: skip
"""Letters that NFKD does not decompose, and letters that serve as apostrophes."""

_LOOKALIKES = str.maketrans(
    "авеікмнорстухјѕԁһӏґыпгѵԛԝ" + "αβεζηικμνορτυχγ",
    "abeikmhopctyxjsdhlrbnrvqw" + "abezhikmvoptyxy",
)
"""Cyrillic, then Greek, letters to the Latin ones they (or their capitals) look like; applied after casefold."""

_KEPT_MARKS = frozenset("#%@*")
_MARKS = str.maketrans({
    chr(code): " "
    for code in range(128)
    if (unicodedata.category(chr(code))[0] in "PC" and chr(code) not in _KEPT_MARKS) or chr(code).isspace()
} | {"&": " and "})  # fmt: skip
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.\s*){2,}(?:[^\W\d_](?![^\W_]))?")
_SAINT = {"st": "saint", "ste": "sainte"}

_COMMON_TEXT = """
a about above academy actor actress age agency air airport alliance alpine also ambassador american an ancient and
antique arch architect arctic are arena armoury army art artist arts as association astronomer at atlantic author
avenue award back ballad band bank banker bar baron base basin battle bay be beach been beetle before behind bell below
beside between big billed bird bishop bishops black blue board boat body book border botanist both boulevard box
breasted bridge bright british broken bronze brother brown builder building built but by camp canal canyon cape capital
captain car cardinal case castle cathedral cave celestial center central centre century chair chancellor channel chapel
chemist chief child choir church cinema circle citadel city civil class classic clear cliff clock close club coal coast
coastal coat cold collection college colonel colony colour column comedy comet comic commander commission committee
common community company compass composer concept concert condor conductor conference congress conservatory
constitution copper corner corporation cottage council country county course court courthouse crater creek crescent
critic cross crown crowned cruiser cup daily danger dark date daughter day deep delta department description desert
design designer destroyer diamond director district division doctor dolphin dome door double down dragon drama dream
drive dry duchess duck duke dynasty each eagle earl early earth earthquake east eastern economy edge edition editor
election electric elephant embassy emperor empire empty end engine engineer english entrance entrepreneur epic
equestrian estate european evangelical evening event ever every exchange exhibition expedition explorer express eye
face factory fair falcon fall falls family farm fashion father feast federal festival few field fifth film finch fire
first fish five fjord flag flat flight flower foot football for forest formation fort fortress forum foundation founder
fountain four fourth free french fresh friend from front gallery game garden gate general geography geology german
glacial glacier glass goddess gold golden good gospel gothic government grand granite grave great green grey ground
group grove guard guide gulf had hall hand harbor harbour hard has have he head headed headland heart heavy heights
helmet her heritage heron high highway hill hilltop his historian historic historical history holy home honour hope
horizon horn horse hospital hotel hour house how human hunter hydro ice imperial in industrial industry infantry inland
inn institute international into invasion inventor iron is island isle it its jazz jewel journal judge junction justice
king kingdom knight laboratory lady lagoon lake land landscape lane language lantern large last late law lawyer league
left legend leopard letter liberal library life light lighthouse like limestone line lion list literary literature
little local locomotive long lord lost love low lower machine made magazine main major man manor mansion manufacturing
many maple marble march marine maritime mark market marsh masque master may mayor me meadow medal memorial men merchant
metal meteorite metro metropolitan middle migration mile military mill mine mining minister ministry minor mirror
mission modern monastery month monument moon more morning mosque most mother motor mount mountain mouth movement much
mural museum music musician my mystery myth name narrow nation national native natural naturalist nature naval
navigator navy near network new newspaper next nice night nine ninth no north northern not novel novelist number oak
observation observatory ocean of off office oil old on one only open opera opus or orange orchestra orchid order organ
original orthodox our out outer outpost over pacific painter painting palace paper park part party pass passage pasture
path patrol pavilion peace peak peninsula people period philosopher philosophy physician physicist physics piece pier
pilgrim pilot pine pioneer place plain planet planetarium plant plateau play playhouse plaza poem poet poetry point
pole police political politician pond port portrait post power prairie present president press prince princess priory
prison prize professor prophecy prosperity protestant province public publisher publishing purple quarry quarter
quartet quay queen race radio railway rain range rapid reading rebellion records red reef regiment region regional
remote renaissance republic reserve reservoir resort revival revolution rhapsody ridge right ring rise river road rock
roman room rose round route royal ruler rural russian sacred sail sailing sailor saint salon salt sanctuary sand
sandstone satellite scarlet scene scholar school science scientist sculptor sculpture sea seaside second secret senate
senior sentinel series serpent settlement seven seventh shadow shark she shell sheriff shield ship shipbuilding shore
short shrine side siege signal silent silk silver singer single sister six sixth sketch slope small snake snow so
soccer social society solar soldier solo some son sonata song south southern sovereign spa space spanish species spire
spirit sport sports spotted spring squadron square stadium stage standing star state states station statue steam
steamship steel stock stone stony storm story strait stream street striped strong studio submarine suburb such summer
summit sun surface surgeon suspension swan symphony synagogue table tailed tall teacher team technical technology
telescope television temple ten tenor tenth terrace territory than that the theater theatre theatrical their them then
theory they third this those three through thrush tide tiger timber time title to today tomb torch tower town trade
trading trail train treasure tree tribe trinity trophy tropical trust truth tunnel twilight twin two type under
underground union united university until up upon upper urban valley vanguard variety very vessel viaduct victory view
village vineyard violet viscount volcanic volcano voyage wall war warrior was watch water waterfall way we week weekly
well were west western whale wharf what wheat when where which white whole whose why wide wild will willow wind window
wing winged winter wisdom with wolf woman wood wooden woodland word work worker workers works workshop world would
writer yacht yard year yellow you young your zone zoo
"""
_COMMON = frozenset(_COMMON_TEXT.split())


def fold_name(text: str) -> str:
    """Return a text's folded form; folding twice changes nothing, and only blank text folds to nothing.

    A text made of punctuation alone (``!!!``) keeps it, because an empty form would equal every other empty form.
    """
    given = text
    text = text.lower() if text.isascii() else "".join(map(_fold_char, text))
    if "." in text:
        text = _INITIALS.sub(_join_initials, text)
    words = text.translate(_MARKS).split() if text.isascii() else "".join(map(_blank_mark, text)).split()
    if not words:
        return " ".join(text.split()) or " ".join(strip_invisible(given).split())
    return " ".join(words if _SAINT.keys().isdisjoint(words) else [_SAINT.get(word, word) for word in words])


def strip_invisible(text: str) -> str:
    """Drop format characters: zero-width marks, joiners, soft hyphens and bidirectional controls."""
    if text.isascii():
        return text
    return "".join(char for char in text if unicodedata.category(char) != "Cf" and char not in "\u034f\u115f\u3164")


def strip_diacritics(text: str) -> str:
    """Drop diacritics, keeping case, and spell out undecomposable letters: ``Łódź`` to ``Lodz``."""
    if text.isascii():
        return text
    bare = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", "".join(_spell_letter(char) for char in bare))


def is_common_word(word: str) -> bool:
    """Say whether a folded word is too ordinary to give a name away: a small built-in list, digits not included."""
    return word in _COMMON


def digest_aliases(names: Iterable[str]) -> str:
    """Return the sha256 (64 hex digits) over the sorted distinct folded names, each ended by a newline."""
    folded = sorted({fold_name(name) for name in names})
    return hashlib.sha256("".join(f"{name}\n" for name in folded).encode()).hexdigest()


@lru_cache(maxsize=8192)
def _fold_char(char: str) -> str:
    """Fold one character; nothing in the folding of letters looks at their neighbours."""
    folded = unicodedata.normalize("NFKD", strip_invisible(char)).casefold()
    # Casefolding composes again in places (the Turkish capital I), hence a second decomposition.
    bare = "".join(part for part in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(part))
    return strip_invisible("".join(_SPELLED.get(part, part) for part in bare).translate(_LOOKALIKES))


def _spell_letter(char: str) -> str:
    if char in _SPELLED:
        return _SPELLED[char]
    lower = char.lower()
    return _SPELLED[lower].capitalize() if lower in _SPELLED else char


def _join_initials(match: re.Match[str]) -> str:
    return "".join(char for char in match.group() if char.isalpha()) + " "


@lru_cache(maxsize=8192)
def _blank_mark(char: str) -> str:
    if char == "&":
        return " and "
    return " " if unicodedata.category(char)[0] in "PZC" and char not in _KEPT_MARKS else char

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
} | dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))  # fmt: skip
"""Letters that NFKD does not decompose, letters that serve as apostrophes, and small capitals."""

_LOOKALIKES = str.maketrans(
    "авеікмнорстухјѕԁһӏґыпгѵԛԝ" + "αβεζηικμνορτυχγ" + "օոսհցք" + "ᎠᎡᎢᎥᎪᎫᎬᎳᎷᎻᏀᏃᏒᏚᏙᏞᏟᏢᏦᏴ",
    "abeikmhopctyxjsdhlrbnrvqw" + "abezhikmnoptyxy" + "onuhgp" + "drtiajewmhgzrsvlcpkb",
) | {first + place: chr(ord("a") + place) for first in (0x1F150, 0x1F170) for place in range(26)}
"""Cyrillic, Greek, Armenian, Cherokee and white-on-black letters to the Latin ones they (or their capitals) look like;
applied after casefold."""

_CASED_LOOKALIKES = str.maketrans(
    "АВЕІКМНОРСТУХЈЅЀӀ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "аеіорсухјѕ" + "ο",
    "ABEIKMHOPCTYXJSEI" + "ABEZHIKMNOPTYX" + "aeiopcyxjs" + "o",
)
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0100-\U000e01ef]"
)
"""Fillers and variation selectors: no format characters, and as invisible."""

_KEPT_MARKS = frozenset("#%@*")
_MARKS = str.maketrans({
    chr(code): " "
    for code in range(128)
    if (unicodedata.category(chr(code))[0] in "PC" and chr(code) not in _KEPT_MARKS) or chr(code).isspace()
} | {"&": " and "})  # fmt: skip
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.\s*){2,}(?:[^\W\d_](?![^\W_]))?")
_SAINT = {"st": "saint", "ste": "saint", "sainte": "saint"}

_COMMON_TEXT = """
a about above academy ace act actor actress add after again against age agency aid aim air airport all alliance almost
along alpine alps already also ambassador american among an ancient and animal antique any ape april arc arch architect
arctic are area areas arena ark arm armoury army around art artist arts as ash ask association astronomer at ate
atlantic august author avenue award away back bad bag ballad band bank banker bar baron base basin bat bath battle bay
be beach became because become bed bee been beetle before began behind bell below beside best bet better between big
billed bird bishop bishops bit black blue board boat bob body book border born botanist both boulevard bow box boy
breasted bridge bright british broken bronze brook brooks brother brown bug builder building built burn burns bush busy
but buy by call camp can canal canyon cape capital captain car cardinal carry case castle cat cathedral cave celestial
center central centre century chair chancellor change channel chapel chemist chief child children china choir chosen
church cinema circle citadel city civil class classic clear cliff clock close club coal coast coastal coat cold
collection college colonel colony colour column come comedy comet comic commander commission committee common community
company compass composer concept concert condor conductor conference congress conservatory constitution copper cork
corner corporation cottage could council country county course court courthouse crater creek crescent critic cross
crown crowned cruiser cry cub cup cut dad daily danger dark date daughter day december deep deer delta den department
depth derby description desert design designed designer destroyer diamond did die died different dig director district
division doctor does doing dolphin dome done door dot double down dragon drama dream drive dry duchess duck due duke
during dynasty each eagle ear earl early earth earthquake east eastern eat economy edge edition editor egg election
electric elephant elm else embassy emperor empire empty end engine engineer english enough entrance entrepreneur epic
equestrian essen estate european evangelical even evening event ever every example exchange exhibition expedition
explorer express eye face factory fair falcon fall falls family far farm fashion fat father feast february federal feet
festival few field fifth fig film finch find fire first fish fit five fix fjord flag flat flight flower fly fog foot
football for forest form formation fort fortress forum found foundation founded founder fountain four fourth fox free
french fresh friday friend from front full fun further gallery game gap garden gas gate gel general geography geology
german get give given gives glacial glacier glass go goddess going gold golden good gospel got gothic government grand
granite grave great green grey ground group grove grow guard guide gulf gun gut guy gym had hall ham hand harbor
harbour hard has hat have hawk hay he head headed headland heart heavy height heights held helmet help hen her heritage
heron hid high highway hill hilltop him hip his historian historic historical history hit hold holy home honour hope
horizon horn horse hospital hot hotel hour house how hub hull human hunter hut hydro ice idea ill image imperial in
inch include including industrial industry infantry ink inland inn institute international into invasion inventor iron
is island isle it its ivy jack jam january jar jaw jazz jersey jet jewel job jog journal joy judge jug july junction
june just justice keep kept key kid kin king kingdom kit knew knight know known lab laboratory lad lady lagoon lake
land landscape lane language lantern lap large largest last late law laws lawyer lay league led left leg legend length
lens leopard less let letter liberal library lid lie life light lighthouse like limestone line lion lip list listed lit
literary literature little living local located locomotive log long longest look lord lost lot love low lower machine
mad made magazine main major male man manor mansion manufacturing many map maple marble march marine maritime mark
market marsh masque master mat may mayor me meadow mean means measured medal memorial men merchant metal meteorite
metro metropolitan mid middle might migration mile military mill mine mining minister ministry minor mirror mission mix
mob mobile modern monastery monday month monument moon more morning mosque most mother motor mount mountain mouth
movement much mud mug mural museum music musician must my mystery myth name named narrow nation national native natural
naturalist nature naval navigator navy near need net network new newspaper next nice night nine ninth no nobody none
nor north northeast northern northwest not nothing novel novelist november now number nun nut oak observation
observatory ocean october odd of off office often oil ok old oldest on one only open opened opera opus or orange orb
orchestra orchid order ore organ original orthodox other others ought our out outer outpost over owe owl own pacific
pad page painter painting palace pan paper park part party pass passage pasture pat path patrol pavilion paw pay pea
peace peak pen peninsula people per period person pet philosopher philosophy photo photograph physician physicist
physics picture pie piece pier pig pilgrim pilot pin pine pioneer pit place plain plan planet planetarium planned plant
plateau play playhouse plaza please pod poem poet poetry point pole police political politician pond pop population
port portrait post pot power prairie present president press prince princess priory prison prize professor prophecy
prosperity protestant province pub public publisher publishing purple put quarry quarter quartet quay queen quite race
radio rag railway rain ram ran range rapid rat raw read reading ready really rebellion records red reef regiment region
regional remote renaissance republic reserve reservoir resort revival revolution rhapsody rib rid ridge right rim ring
rise river road rob rock rod roman room rose round route row royal rub rug ruler run rural russian rye sacred sad said
sail sailing sailor saint sale salon salt same sanctuary sand sandstone sat satellite saturday saw say scarlet scene
scholar school science scientist sculptor sculpture sea seaside second secret seen senate senior sentinel september
series serpent set settlement seven seventh sew shadow shall shark she shell sheriff shield ship shipbuilding shore
short should shown shows shrine shy side siege signal silent silk silver since singer single sister sit six sixth
sketch ski sky slope sly small smallest snake snow so soccer social society solar soldier solo some someone something
son sonata song south southeast southern southwest sovereign spa space spanish species spire spirit split sport sports
spotted spring spy squadron square stadium stage standing stands star state states station statue steam steamship steel
still stock stone stony stood storm story strait stream street striped strong studio sub submarine suburb such sum
summer summit sun sunday sure surface surgeon suspension swan symphony synagogue table tailed take taken tall tallest
tan tap tar tax tea teacher team technical technology telescope television tell temple ten tenor tenth terrace
territory than that the theater theatre theatrical their them then theory they thing things think third this those
though thought three through thrush thursday tide tie tiger till timber time tin tip title to today toe together tomb
ton too took top torch tours tower town toy trade trading trail train treasure tree tribe trinity trip trophy tropical
trust truth try tub tuesday tunnel turkey turn twilight twin two type under underground union united university unknown
until up upon upper urban urn us use used using valley van vanguard variety vat very vessel vet via viaduct victory
view village vineyard violet viscount visit volcanic volcano voyage wall war warrior was watch water waterfall wax way
we web wed wednesday week weekly weight well were west western wet whale wharf what wheat when where which while white
who whole whose why wide width wild will willow win wind window wing winged winter wisdom wish wit with within without
woe wolf woman won wood wooden woodland word words work worker workers works workshop world worn worth would writer
wrote yacht yard year yellow yes yet you young your zip zone zoo
"""
_COMMON = frozenset(_COMMON_TEXT.split())


@lru_cache(maxsize=1 << 14)
def compile_phrase(phrase: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of a phrase as whole words. It is cached here: :mod:`re` keeps 512 patterns only."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)", flags)


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
    return _UNSEEN.sub("", "".join(char for char in text if unicodedata.category(char) != "Cf"))


def fold_cased(text: str) -> str:
    """Fold a text as :func:`fold_name` does, but keep case and marks: for names that only count letter by letter."""
    text = strip_invisible(text)
    return text if text.isascii() else strip_diacritics(text).translate(_CASED_LOOKALIKES)


def strip_diacritics(text: str) -> str:
    """Drop diacritics, keeping case, and spell out undecomposable letters: ``Łódź`` to ``Lodz``."""
    if text.isascii():
        return text
    bare = "".join(char for char in unicodedata.normalize("NFKD", text) if not _is_overlay(char))
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
    bare = "".join(part for part in unicodedata.normalize("NFKD", folded) if not _is_overlay(part))
    return strip_invisible("".join(_SPELLED.get(part, part) for part in bare).translate(_LOOKALIKES))


def _is_overlay(char: str) -> bool:
    """Say whether a character is drawn over the one before it: diacritics, enclosing circles."""
    return unicodedata.combining(char) != 0 or unicodedata.category(char) == "Me"


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


def normalise_file(name: str) -> str:
    """Return a file name as titles have it: no ``File:``, spaces, first letter upper case."""
    plain = " ".join(name.replace("_", " ").split())
    for prefix in ("file:", "image:"):
        if plain.lower().startswith(prefix):
            plain = plain[len(prefix) :].strip()
    return plain[:1].upper() + plain[1:]

"""Names of the templates whose output is known, as English Wikipedia uses them in infoboxes.

All names are lower case, with spaces.
"""


def _read_names(names: str) -> frozenset[str]:
    return frozenset(" ".join(name.split()) for name in names.split(","))


LIST_TEMPLATES = _read_names("""
blist, br separated entries, bulleted list, bulletlist, collapsible list, comma separated entries, cslist, flat list,
flatlist, hidden list, hlist, ordered list, plain list, plainlist, tree list, ubl, ublist, unbullet, unbulleted list,
vlist, vunblist
""")
"""Each argument, or each line with a bullet, is one value."""
WRAPPERS = _read_names("""
big, center, larger, longitem, nobold, nobr, nowrap, nowrap begin, small, smaller
""")
"""Their first argument is shown, in some style."""
FIRST_ARGUMENT = _read_names("""
abbr, as written, big, bold, center, em, flag, flagcountry, flaglist, flagu, flatlist, formatnum, ill, ill2, illm,
interlanguage link, interlanguage link multi, italic, italics, larger, longitem, midsize, native name link, nbr,
nobold, nobr, nobreak, noitalic, not a typo, nowrap, nowrap begin, nts, plainlist, resize, sic, small, smalldiv,
smaller, strong, tooltip, url
""")
"""Shown as their first argument."""
SECOND_ARGUMENT = _read_names("""
lang, native name, native phrase, nihongo2, script, transl, transliteration
""")
"""Shown as their second argument; the first is a language."""
NOTHING = _read_names("""
0, better source needed, by whom, cbignore, citation, citation needed, citation needed span, cite book, cite journal,
cite magazine, cite news, cite web, clarify, clear, cn, coord, coords, cref, cref2, dead link, decrease,
decreaseneutral, decreasepositive, disputed inline, dubious, edit on wikidata, efn, efn-lr, efn-ua, fact, failed
verification, flag icon, flagdeco, flagicon, flagicon image, full citation needed, gain, harv, harvnb, increase,
increasenegative, increaseneutral, loss, not verified in body, note, notetag, official website, page needed, profit,
r, ref, ref label, refn, rp, self-published inline, sfn, sfnp, small begin, specify, steady, unreliable source?,
update inline, verification needed, verify source, when, which, who, wikidata
""")
"""Notes, coordinates, flags and arrows: nothing that belongs to the value."""
DATES = _read_names("""
bda, birth based on age as of date, birth date, birth date and age, birth date and given age, birth year, birth year
and age, birth-date, birth-date and age, completion date, date, dda, death date, death date and age, death date and
given age, death year and age, death-date, death-date and age, dob, dts, end date, end date and age, end-date, film
date, launch date, opening date, release date, start and end date, start date, start date and age, start-date,
television film date, video game release date
""")
"""Year, month and day as the first three arguments, or a written date."""
CHARACTERS: dict[str, str] = {
    "nbsp": " ",
    "spaces": " ",
    "ndash": "–",
    "mdash": "—",
    "en dash": "–",
    "snd": " – ",
    "spnd": " – ",
    "spaced ndash": " – ",
    "dash": " – ",
    "dot": " · ",
    "·": " · ",
    "•": " • ",
    "bullet": " • ",
    "!": "|",
    "=": "=",
    "'": "'",
    "-": " ",
    "shy": "",
    "zwj": "",
    "slash": " / ",
    "deg": "°",
    "pi": "π",
}
"""Shown as these characters."""
UNITS: dict[str, str] = {
    "km2": "km²",
    "m2": "m²",
    "ft2": "sq ft",
    "sqft": "sq ft",
    "sqmi": "sq mi",
    "sqkm": "km²",
    "mi2": "sq mi",
    "km3": "km³",
    "m3": "m³",
    "cuft": "cu ft",
    "cumi": "cu mi",
    "C": "°C",
    "F": "°F",
    "acre": "acres",
    "mile": "miles",
    "miles": "miles",
    "ha": "ha",
    "m3/s": "m³/s",
    "cuft/s": "cu ft/s",
    "/km2": "/km²",
    "PD/km2": "/km²",
    "/sqmi": "/sq mi",
    "PD/sqmi": "/sq mi",
    "long ton": "long tons",
    "short ton": "short tons",
    "t": "t",
    "MT": "t",
}
"""Unit codes of {{convert}} that are not shown as written."""
RANGE_WORDS: dict[str, str] = {
    "-": "–",
    "–": "–",
    "to": " to ",
    "and": " and ",
    "by": " by ",
    "x": " × ",
    "or": " or ",
    "to(-)": "–",
}
"""What stands between two numbers of {{convert}}."""

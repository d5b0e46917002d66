"""What differs from one language edition to another and is not in the header of its dump.

Source: MediaWiki's ``languages/messages/Messages*.php`` (link trails, namespace aliases and gendered names, the words
for redirects). An edition that is not named here gets English link trails and the names of its own dump.
"""

LINK_TRAILS: dict[str, str] = {
    "cs": "áčďéěíňóřšťúůýž",
    "da": "æøå",
    "de": "äöüß",
    "es": "áéíóúñ",
    "fr": "àâçéèêîôûäëïöüùÇÉÂÊÎÔÛÄËÏÖÜÀÈÙ",
    "hu": "áéíóúöüőűÁÉÍÓÚÖÜŐŰ",
    "it": "àéèíîìóòúù",
    "nl": "äöüïëéèà",
    "pl": "ęóąśłżźćńĘÓĄŚŁŻŹĆŃ",
    "pt": "áâãàéêẽçíòóôõ\u0303úüűũ",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "sv": "åäöéÅÄÖÉ",
    "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьєюяёъы“»",
}
"""Letters beside a-z that a link takes into its anchor text when they follow it, by language code."""

NAMESPACE_ALIASES: dict[str, dict[str, int]] = {
    "de": {"bild": 6, "bild diskussion": 7, "benutzerin": 2, "benutzerin diskussion": 3},
    "es": {"imagen": 6, "imagen discusión": 7, "usuaria": 2, "usuaria discusión": 3},
    "fr": {"utilisatrice": 2, "discussion utilisatrice": 3},
    "it": {"immagine": 6, "discussioni immagine": 7},
    "nl": {"afbeelding": 6, "overleg afbeelding": 7},
    "pl": {"grafika": 6, "dyskusja grafiki": 7, "użytkowniczka": 2, "dyskusja użytkowniczki": 3},
    "pt": {"imagem": 6, "imagem discussão": 7, "usuário": 2, "usuária": 2},
    "ru": {"изображение": 6, "обсуждение изображения": 7, "участница": 2, "обсуждение участницы": 3},
    "sv": {"bild": 6, "bilddiskussion": 7},
    "uk": {"зображення": 6, "обговорення зображення": 7, "користувачка": 2},
}
"""Names of namespaces in lower case that hold beside those of the dump, by language code."""

REDIRECT_WORDS: tuple[str, ...] = (
    "redirect",
    "weiterleitung",
    "redirección",
    "redireccion",
    "redirection",
    "rinvia",
    "rinvio",
    "rimando",
    "doorverwijzing",
    "patrz",
    "przekieruj",
    "tam",
    "redirecionamento",
    "omdirigering",
    "перенаправление",
    "перенапр",
    "перенаправлення",
    "přesměruj",
    "átirányítás",
    "yönlendirme",
    "転送",
    "リダイレクト",
    "重定向",
    "넘겨주기",
    "تحويل",
    "הפניה",
)
"""What follows the ``#`` of a redirect; a page is known as one in the words of every edition."""

DOTTED_LANGUAGES = frozenset({"az", "kaa", "kk-latn", "tr"})
"""Languages whose capital of ``i`` is ``İ``."""

DEFAULT_NAMESPACES: tuple[tuple[int, str], ...] = (
    (-2, "Media"),
    (-1, "Special"),
    (0, ""),
    (1, "Talk"),
    (2, "User"),
    (3, "User talk"),
    (4, "Wikipedia"),
    (5, "Wikipedia talk"),
    (6, "File"),
    (7, "File talk"),
    (8, "MediaWiki"),
    (9, "MediaWiki talk"),
    (10, "Template"),
    (11, "Template talk"),
    (12, "Help"),
    (13, "Help talk"),
    (14, "Category"),
    (15, "Category talk"),
    (100, "Portal"),
    (101, "Portal talk"),
    (118, "Draft"),
    (119, "Draft talk"),
    (710, "TimedText"),
    (711, "TimedText talk"),
    (828, "Module"),
    (829, "Module talk"),
)
"""The namespaces of English Wikipedia, for an export that carries no ``<siteinfo>``."""

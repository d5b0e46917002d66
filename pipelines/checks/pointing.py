"""Whether a question of somebody else's points to its picture, in its own words and without a proof.

Our own questions are held to more (:func:`pipelines.checks.descriptors.check_reference`). Here a demonstrative is
enough (``this bird``), and of a question that names nothing a pronoun or a definite noun (``the man``), since they
could mean nothing else.
"""

import re
from typing import Literal

from pipelines.checks.descriptors import find_references

Pointing = Literal["plain", "meant", "implied", "none", "unknown"]
"""``plain``: it says so. ``meant``: a pronoun can mean nothing else. ``implied``: a definite noun may mean what is
seen. ``unknown``: in a language that is not known."""

_PICTURE = re.compile(
    r"\b(?:the|this|that|these|those|both|an?|in|on|from|each|given|your|two|which)"
    r"\s+(?:(?!best|motion)\w+ ){0,2}"
    r"(?:images?|pictures?|pics?|photos?|photographs?|illustrations?|screenshots?|snapshots?|scene)\b"
    r"|\b(?:shown|pictured|depicted|visible|displayed|image \d|img_\d"
    r"|bild(?:es|er)?|fotos?|foto|abbildung|abgebildete[nrsm]?|gezeigte[nrsm]?|photographie|imagen|imagem|immagine"
    r"|afbeelding|obraz\w*|zdj\w+|fotografia|fotografía|kuva\w*|resim\w*|gambar)\b"
    r"|изображ|фото|картин|снимк|рисунк|зображ|εικόν|φωτογραφ|صورة|الصورة|תמונה|चित्र|तस्वीर"
    r"|图|圖|照片|画面|畫面|影像|相片|画像|写真|이미지|사진|그림|ภาพ",
    re.IGNORECASE,
)
_THIS = re.compile(
    r"\b(?:this|these|here|above|below|diese[rsmn]?|hier|cette?|ces|celui-ci|este|esta|estos|estas|esto|est[ea]s"
    r"|quest[oaie]|deze|dit|ten|ta|to)\b|\bthat(?=\s*\?)|^(?:\w+ ){0,4}(?:is|are|was|were|of|does) that [a-z]"
    r"|\bthose (?!who|that|of|in\b)"
    r"|\bэт(?:от|а|о|и|ой|ого|ом|их|у)\b|\bцей|\bця|هذا|هذه|这|這|此|该|該|この|これ|이 |यह|इस|นี้",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"\b(?:the|what|which|who|whose|when|where|how|why|is|are|was|were|of|does|did)\b", re.IGNORECASE)
_HAN = re.compile("[\u4e00-\u9fff]")
_PRONOUN = re.compile(
    r"\b(?:it|he|she|they|him|them|her|one)\b|\b(?:is|was|are|were) (?:his|its|their)\b", re.IGNORECASE
)
_DEFINITE = re.compile(r"\bthe [a-z]", re.IGNORECASE)
_NAME = re.compile(r"(?<=[^\s.?!:;\"“”‘'(«]) +[\"“‘'(«]*(?!I\b)[A-Z\u00c0-\u00de]\w*|[“\"«][^”\"»]+[”\"»]|\b\d{3,4}\b")
_SUPERLATIVE = re.compile(
    r"\b(?:most|[a-z]{3,}est|first|world|earth|universe|solar)\b(?<!forest)(?<!west)", re.IGNORECASE
)


def judge_pointing(text: str) -> Pointing:
    """Say how a question points to its picture."""
    if any(True for _ in find_references(text)) or _PICTURE.search(text) or _points_by_this(text):
        return "plain"
    if _HAN.search(text):
        return "none"
    if not _ENGLISH.search(text):
        return "unknown"
    if _NAME.search(text):
        return "none"
    if _PRONOUN.search(text):
        return "meant"
    return "implied" if _DEFINITE.search(text) and not _SUPERLATIVE.search(text) else "none"


def _points_by_this(text: str) -> bool:
    """Say whether a demonstrative points; of an English text those of other languages do not count."""
    english = _ENGLISH.search(text) is not None
    return any(not english or found[0].lower() not in _FOREIGN for found in _THIS.finditer(text))


_FOREIGN = frozenset("ten ta to dit este esta hier".split())

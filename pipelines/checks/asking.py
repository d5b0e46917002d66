"""Whether a question asks for what its proof answers: a cue of the attribute must stand in what the question asks.

A proof derives the answer of a relation; the text is a model's. Descriptors are held to their facts elsewhere, so what
counts here is what is left without them, without quoted sentences and without what stands for the anchor.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.cues import name_cues
from pipelines.graph.ground import Ground
from pipelines.graph.holders import split_key
from pipelines.graph.kin import GENERIC
from pipelines.graph.stems import WORD, fold_word, stem_word
from schemas.proofs import Proof
from schemas.tasks import SUBJECT

_LEFT_OUT = " \x00 "
"""Put where a part was taken out, so that what stood around it does not become one sentence or word."""
_SENTENCES = re.compile(r"(?<=[.!?])[\"'”’)]*\s+")
_ANCHOR = r"(?:in|from|of|by) (?:the|this) (?:image|picture|photo|photograph)"
_BEFORE = r"(?:the|this|that|a|an)(?: (?:last|latter|former|second|third|fourth|same))?"

_TIME_WORDS = frozenset("when date dates day month year years time".split())
_WORDINGS_TEXT = """
death: die, dies, grave
birth: birthplace
established: opening, set up, come into being, came into being, come about
founded: set up, started, come into being, first held, first edition, first appear
founders: set up, started
foundation: set up, come into being, first appear
formation: set up, formed, come into being
released: come out, came out
aired: released, release, come out, broadcast
created: making
fall: come down, came down
capacity: fit, spectators
area: large
mass: heavy
weight: heavy
medium: materials
students: study, studies
alma: trained
college: educated, trained, alma mater
education: trained, alma mater
training: alma mater
composition: mineral
subdivision: country
architect: drew the plans
practice: employer, employed, work
workplaces: employer, employed
institutions: employer, employed, work
combatant: belligerent
studio: company
namesake: source of the name, gave a name, lent a name, after whom, in the name, by the name
namedafter: source of the name, gave a name, source of the name, lent a name, after whom
rector: highest office
chancellor: head, heads, highest office
discovered: finding
mouth: receives, empties
range: home
native: home
location: home, stands, situated
locale: home
city: home, stands, situated
headquarters: home
hq: home
place: scene, site
crosses: beneath, spanned, lies under
subject: theme
museum: collection, holds, houses, kept
composer: wrote the music, scored
music: scored
demonym: people called
hdi: development
gdp: gross
ppp: gross
cctld: domain
admittance: admission, admitted
occupation: living
manufacturer: maker
creator: originator, devised
classis: class
pop: population, people, inhabitants
siblings: brother, sister
cinematography: cinematographer, shot, camera
previous: predecessor, preceded
next: successor, followed, after
known: name, fame
nationalteam: team
elevation: point, highest, lowest
state: region
resting: grave
relatives: related
screenplay: writer, wrote, writing
editing: cut
illustrator: drew
authority: author, scientific name, described
advisors: supervisor, supervised
period: era
partner: shared a life
currentclub: team
residence: home
address: home, location
chairman: head, heads, runs, in charge
manager: head, heads, runs, in charge
artist: recorded, released
network: broadcaster, broadcast
premiere: first performance, first performed
attendance: come to, attend
gallery: kept, holds, houses
held: kept, holds, houses
largest: principal settlement, chief settlement
basis: adapted
"""


def _index_wordings() -> dict[str, tuple[str, ...]]:
    index: dict[str, tuple[str, ...]] = {}
    for line in _WORDINGS_TEXT.strip().splitlines():
        head, _, rest = line.partition(":")
        stem = stem_word(head)
        index[stem] = (*index.get(stem, ()), *(part.strip() for part in rest.split(",")))
    return index


_WORDINGS = _index_wordings()
"""How questions ask for what a word of a key names, where the sentences of articles state it by other words."""


def check_asked(ground: Ground, text: str, proof: Proof) -> CheckResult:
    """UNKNOWN (``attribute-unasked``) when no word of a question asks for the attribute that its proof answers.

    Args:
        ground: whose corpus has taught cues of the attribute.
        text: the question.
        proof: with its descriptors and sentences, which say nothing of what is asked.
    """
    words, relation = list(_list_asking_words(text, proof)), proof.answer_relation
    stems, spoken = set(map(stem_word, words)), f" {' '.join(words)} "
    cues, phrases = _list_asking_phrases(relation)
    if not stems.isdisjoint(cues) or any(f" {phrase} " in spoken for phrase in phrases):
        return PASSED
    if not stems.isdisjoint(ground.cues.words(relation)):
        return PASSED
    return CheckResult("UNKNOWN", "attribute-unasked", f"no word of {text!r} asks for {relation}")


@lru_cache(maxsize=4096)
def _list_asking_phrases(relation: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return stems and phrases that ask for a relation in any corpus: words of its key, their kin, and wordings."""
    words = split_key(relation)
    telling = [word for word in words if word not in GENERIC] or list(words)
    phrases = [phrase for word in telling for phrase in _WORDINGS.get(stem_word(word), ())]
    # "date" and "year" tell nothing beside "birth", and everything where they are all there is.
    bare = _TIME_WORDS if _TIME_WORDS & set(words) and set(telling) <= GENERIC else frozenset[str]()
    return name_cues(relation) | frozenset(map(stem_word, {*telling, *bare})), tuple(phrases)


def _list_asking_words(text: str, proof: Proof) -> Iterable[str]:
    """Return the folded words of the sentences that ask, without what describes or stands for an entity."""
    pieces = [piece.strip() for descriptor in proof.descriptors for piece in descriptor.split(SUBJECT)]
    left = _cut_out(text, [*pieces, *(hop.clause for hop in proof.hops), *(node.title for node in proof.nodes)])
    for node in proof.nodes:
        if node.type:
            kind = rf"(?<!\w){_BEFORE} {re.escape(node.type)}(?!\w)"
            left = re.sub(kind, _LEFT_OUT, left, flags=re.IGNORECASE)
    left = re.sub(_ANCHOR, _LEFT_OUT, left, flags=re.IGNORECASE)
    sentences = _SENTENCES.split(left)
    asking = [sentence for sentence in sentences if sentence.rstrip(" \"'”’)\x00").endswith("?")]
    return [fold_word(word) for sentence in asking or sentences for word in WORD.findall(sentence)]


def _cut_out(text: str, parts: Sequence[str]) -> str:
    """Return a text without some parts, the longest first; case and white space aside."""
    left = " ".join(text.split())
    for part in sorted({" ".join(part.split()) for part in parts} - {""}, key=lambda part: (-len(part), part)):
        left = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", _LEFT_OUT, left, flags=re.IGNORECASE)
    return left

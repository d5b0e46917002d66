"""English kin of the words in infobox keys: a page about a person's birth says ``born``."""

from functools import lru_cache

from pipelines.graph.stems import stem_word

_GENERIC_TEXT = """
date dates year years place places name names number num no type total main country region title note notes first last
current time location loc est estimate estimated m km cm mm ft mi kg lb ha sq metric imperial max min info text blank
data id code list other by of in on at to the and a ship
"""
GENERIC = frozenset(_GENERIC_TEXT.split())
"""Words of keys that say what kind of value it is, not which."""

_KIN_TEXT = """
birth born birthplace
death died deathplace
resting burial buried interred rest cemetery
spouse married wife husband marriage partner
parent parents father mother son daughter child children
children child son daughter
architect architects designed design designer architecture
designer designed design plans
engineer engineered designed design
builder built build building constructed erected
built build building constructed construction erected completed finished yearbuilt
construction constructed built material
material materials made built construction
completion completed finished built opened
yearbuilt built completed opened finished
year finished completed made painted created
ordo order belongs
familia family belongs
complete completed finished built
opened open opening inaugurated completed
closed close closing closure shut
established establish establishment founded founding dates created foundation
founded found founder founders founding established foundation beginnings
foundation founded established
formed formation founded created established
incorporated incorporation chartered
author writer wrote written
writer wrote written
director directed
composer composed
creator created wrote made painted
artist painted painter
published pub publication appeared issued released
pub published publication appeared
released release appeared premiered premiere
premiere premiered performed appeared
launched launch
discovered discovery found discoverer
described description named
height high tall rises elevation
elevation elev elevations lies altitude sea metres
length long
width wide breadth
depth deep
area covers
diameter across measures
mass weighs weight
weight weighs mass
wingspan wings span
capacity seats seating holds
population inhabitants people residents live
employees employs staff workers
num employees
students enrolled enrolment
visitors receives attendance
attendance draws crowd
circulation prints copies
pages edition
runtime runs minutes
speakers spoken speak
casualties losses killed lost
displacement displaces
language spoken speak
currency money
motto slogan
genre genres
movement school
instrument instruments played
instruments played instrument
occupation worked profession
nationality citizen
party member
rank reached
field worked
discipline studied
education educated studied attended graduated
alma educated studied graduated
teacher taught pupil student studied
student taught pupil studied
employer worked employed
owner owned owns belongs
operator operated operates run
headquarters based seat
capital seat
leader led leads head
mayor leads headed
president leads heads head
monarch king queen
crosses cross spans carries
source rises springs
mouth flows
inflow inflows flows
outflow outflows drains
river flows
religion church
order belongs
family belongs
genus belongs
style architecture architectural
architectural style architecture
colour color coloured
color colour coloured
composition consists
product products known makes
products known makes product
format printed
made created
created made
start began begun started
end ended finished
commissioned commission
decommissioned retired
location located situated stands found lies placed
locale located situated stands found lies
place took fought held
city based seat situated located
hq based seat headquartered
country lies belongs part
subdivision lies belongs part
rector head headed heads led
editor head headed heads edited edits
director head headed heads led
key head headed heads leads led
people head headed heads leads led
training trained educated studied graduated
workplaces worked career taught
practice worked career practised
employer career
museum display displayed held kept exhibited
collection display displayed held kept exhibited
maker built maker made manufactured
manufacturer built made manufactured
namesake honours remembers honour named
named honours remembers honour namesake
etymology named honours
organization operated operates run
operator runs
based plot adapted adaptation
subject about depicts shows portrays
works created wrote painted composed directed
languages uses spoken language
cities nearest reached reach
largest nearest reached
twin twinned twin
range endemic occurs native found
venue takes held
homeport sails port
designer architect drew plans
commander commanded led
combatant defeated fought
predecessor succeeded preceded before
successor succeeded followed after
publisher published
distributor distributed
studio produced
producer produced
editing edited
starring stars starred played
doctoral advisor supervised student advised
thesis dissertation
"""


def find_kin(stem: str) -> tuple[str, ...]:
    """Return words that state what the word with this stem names."""
    return _index_kin().get(stem, ())


@lru_cache(maxsize=1)
def _index_kin() -> dict[str, tuple[str, ...]]:
    index: dict[str, tuple[str, ...]] = {}
    for line in _KIN_TEXT.strip().splitlines():
        head, *rest = line.split()
        index[stem_word(head)] = (*index.get(stem_word(head), ()), *rest)
    return index

"""Relations that usually lead to an organisation, a work, an event or an idea."""

from pipelines.backends.phrases_shapes import RelationWording as Row

# fmt: off
ORGANISATIONS: tuple[Row, ...] = (
    Row("alma_mater education training university college school", "institution",
        ("the alma mater of {s}", "the place of study of {s}"),
        ("where {s} studied", "that educated {s}", "that trained {s}"), "person"),
    Row("employer work_institutions work_institution workplaces practice institution institutions firm",
        "organisation",
        ("the employer of {s}", "the place of work of {s}"),
        ("that employed {s}", "where {s} worked", "that gave work to {s}"), "person"),
    Row("owner owners ship_owner proprietor", "owner",
        ("the owner of {s}",), ("{who} owns {s}", "{who} is the owner of {s}")),
    Row("operator organization organisation operated_by", "operator",
        ("the operator of {s}",), ("{who} operates {s}", "{who} runs {s}")),
    Row("parent parent_company parent_organization parent_organisation", "parent organisation",
        ("the parent organisation of {s}",), ("{who} controls {s}", "{who} is the parent organisation of {s}")),
    Row("subsidiaries subsid subsidiary divisions", "organisation",
        ("the subsidiary of {s}",), ("{who} is a subsidiary of {s}", "{who} belongs to {s}")),
    Row("publisher publishers", "publisher",
        ("the publisher of {s}",), ("{who} published {s}", "{who} brought out {s}")),
    Row("studio production_companies production_company company", "company",
        ("the studio behind {s}",), ("{who} produced {s}", "{who} made {s}"), "work"),
    Row("distributor distributors", "distributor",
        ("the distributor of {s}",), ("{who} distributed {s}", "{who} brought {s} to the public")),
    Row("network channel broadcaster", "broadcaster",
        ("the broadcaster of {s}",), ("{who} broadcast {s}", "{who} first aired {s}")),
    Row("label record_label", "record label",
        ("the record label of {s}",), ("{who} released the records of {s}", "{who} is given as the label of {s}")),
    Row("league", "league", ("the league of {s}",), ("in which {s} plays", "{who} includes {s}")),
    Row("team club clubs teams current_team currentclub nationalteam", "team",
        ("the team of {s}",), ("for which {s} played", "{who} fielded {s}"), "person"),
    Row("party political_party", "party",
        ("the political party of {s}",), ("to which {s} belongs", "{who} is the political party of {s}"), "person"),
    Row("branch", "service", ("the service branch of {s}",), ("in which {s} served",
        "{who} is listed as the branch of {s}"), "person"),
    Row("unit", "unit", ("the unit of {s}",), ("in which {s} served", "{who} is listed as the unit of {s}"),
        "person"),
    Row("lower_house house2", "chamber",
        ("the lower house of {s}",), ("{who} is the lower house of {s}", "{who} sits as the lower house of {s}")),
    Row("upper_house house1", "chamber",
        ("the upper house of {s}",), ("{who} is the upper house of {s}", "{who} sits as the upper house of {s}")),
    Row("legislature parliament", "legislature",
        ("the legislature of {s}",), ("{who} makes the laws of {s}", "{who} is the legislature of {s}")),
)

WORKS: tuple[Row, ...] = (
    Row("notable_works notable_work works notableworks significant_buildings significant_projects", "work",
        ("the notable work of {s}",),
        ("that is listed as the notable work of {s}", "that is named among the works of {s}")),
    Row("known_for", "work", ("the chief claim to fame of {s}",), ("that {s} is known for",
        "that made the name of {s}")),
    Row("subject subject_matter main_subject", "subject",
        ("the subject of {s}",), ("{who} is depicted in {s}", "{who} is the subject of {s}"),
        "painting artwork portrait sculpture statue fresco mural"),
    Row("subject subject_matter main_subject", "theme",
        ("the subject of {s}", "the theme of {s}"),
        ("{who} is the subject of {s}", "{who} stands at the centre of {s}")),
    Row("based_on basis adapted_from", "work",
        ("the source of the plot of {s}",),
        ("on which {s} is based", "that provided the plot of {s}", "that was adapted into {s}")),
    Row("series", "series", ("the series of {s}",), ("that includes {s}", "that {s} belongs to")),
    Row("followed_by next next_mission", "successor",
        ("the successor of {s}",), ("that came immediately after {s}", "that followed {s}")),
    Row("previous prev previous_mission last", "predecessor",
        ("the predecessor of {s}",), ("that came immediately before {s}", "that preceded {s}")),
    Row("national_anthem anthem", "song",
        ("the anthem of {s}", "the national anthem of {s}"), ("that is the anthem of {s}",)),
)

EVENTS: tuple[Row, ...] = (
    Row("combatant1", "belligerent",
        ("the first belligerent listed for {s}",),
        ("that is listed as the first belligerent in {s}", "that fought on the first side listed for {s}")),
    Row("combatant2", "belligerent",
        ("the second belligerent listed for {s}",),
        ("that is listed as the second belligerent in {s}", "that fought on the second side listed for {s}")),
    Row("opponent", "opponent", ("the opponent in {s}",), ("{who} was the opponent in {s}",
        "{who} stood on the other side in {s}")),
    Row("battles wars battle war", "battle",
        ("the battle fought by {s}",), ("in which {s} fought", "that involved {s}"), "person"),
    Row("partof part_of", "whole", ("the larger whole of {s}",), ("that {s} is part of", "that includes {s}")),
    Row("awards award prizes", "award", ("the award won by {s}",), ("that {s} received", "that was given to {s}")),
)

LANGUAGES: tuple[Row, ...] = (
    Row("language official_languages official_lang languages official_language spoken_languages", "language",
        ("the official language of {s}",), ("that is the official language of {s}", "in which {s} is governed"),
        "region settlement"),
    Row("language languages", "language",
        ("the language of {s}",), ("in which {s} is written", "that is used in {s}"),
        "work newspaper journal magazine"),
    Row("language languages native_language", "language",
        ("the language of {s}",), ("that is given as the language of {s}", "that is used by {s}")),
)

MENTIONS: tuple[str, ...] = (
    "{who} fills the blank in “{clause}” in the article about {s}",
    "{who} belongs in the gap in “{clause}” in the article on {s}",
    "{who} completes the line “{clause}” in the article about {s}",
    "whose name is left out of “{clause}” in the article on {s}",
    "{who} is left blank in the line “{clause}” from the article about {s}",
)
"""Tails for a hop that only a sentence supports."""
# fmt: on

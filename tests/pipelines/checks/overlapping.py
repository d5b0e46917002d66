"""Questions of ours and clean rows of a benchmark, of which some share a template, a run, an answer or a name."""

OURS = (
    ("The picture shows a customs house. Which composer was born in the harbour town where the shipwright who drew "
     "its copper roof kept his yard?", "Brandholm Customs House", "Skarvik", "Ingrid Solvang"),
    ("On what date did the narrow-gauge line open that ends in the valley from which the sculptor of this fountain "
     "came?", "Lind Fountain", "Tresk Valley Railway", "14 March 1871"),
    ("How many bells hang in the church that the founder of the glassworks, whose chimney is seen here, gave to his "
     "birthplace?", "Morvan Glassworks", "Saint Odile Church", "23"),
    ("What is the name of the river that crosses the province whose last duchess commissioned the astronomical clock "
     "in the photograph?", "Velm Town Clock", "Duchy of Orlsund", "Ternava"),
    ("Which order of monks brewed the dark ale served at the inn where the engineer of this viaduct wrote his "
     "memoirs?", "Kestrel Viaduct", "Grey Heron Inn", "Celestines"),
    ("In which year did the botanist, after whom the fern in this glasshouse is called, cross the Sarn plateau with "
     "two mules?", "Palmengarten Glasshouse", "Alois Wendt", "1834"),
    ("Who lent the money for the lighthouse that replaced the beacon burnt by the privateer depicted on the "
     "tapestry?", "Tapestry of Roke", "Pell Lighthouse", "Barnaby Quill"),
    ("What metal is mined below the plateau that gave its name to the observatory which the man on this banknote "
     "paid for?", "Fifty Tolar Note", "Hohenried Observatory", "antimony"),
)  # fmt: skip
"""Text, what the picture shows, the answer's node and the answer."""

CLEAN = (
    ("What is the name of the person who is shown in the centre of the picture?", "Ada Vask", "Ada Vask"),
    ("What is the name of the river that flows through the city where the building shown in the picture stands?",
     "Ternava", "Prester Hall"),
    ("In which year was the building that is shown in the picture opened to the public?", "1834", "Nordby Baths"),
    ("Which composer was born in the town where the architect of this museum died?", "Otto Brems", "Halden Museum"),
    ("How many bells hang in the church that is shown in the picture?", "23", "Saint Ulric Church"),
    ("On what date did the line open that ends at the station in the picture?", "2 May 1902", "Karsk Station"),
    ("Which animal is in the coat of arms of the town in which this bridge was built?", "heron", "Long Bridge"),
    ("Who is the person speaking at the lectern during the press briefing in the image?", "Mara Lindqvist", ""),
    ("What event led to the flooding shown in this news photograph?", "Storm Berta", "Storm Berta"),
    ("What metal is the statue on the roof of this theatre cast from?", "antimony", "Royal Theatre of Lom"),
    ("Which city hosted the first edition of the tournament whose trophy is displayed here?", "Gotland", "Baltic Cup"),
    ("Who painted the ceiling of the hall where the treaty shown was signed?", "Ingrid Solvang", "Treaty Hall"),
    ("What is the closest upper taxonomy of this bird?", "Ardea", "Purple Heron"),
    ("What is the closest upper taxonomy of this plant?", "Dryopteris", "Male fern"),
    ("Which company makes the aircraft that is parked in front of the hangar?", "Fokker", "Fokker 50"),
    ("Which order of monks founded the abbey whose ruins are shown?", "Cistercians", "Alvastra Abbey"),
    ("How long is the viaduct in the photograph, in metres?", "320 m", "Lambach Viaduct"),
    ("Which river does the Kestrel cross on the map of the estuary?", "Ouse", ""),
    ("What did the founder of the glassworks in the photo study before he moved abroad?", "law", "Riedel Glass"),
    ("Who lent the painting on the left to the exhibition in 2019?", "the Sarn family", "Portrait of a Duchess"),
)  # fmt: skip
"""Question, answer and entity."""

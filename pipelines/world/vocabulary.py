"""Word lists for invented names. No name is taken from the real world; a chance likeness is one."""

# Four tongues: (first syllables, second syllables, town endings, surname endings).
# fmt: off
TONGUES: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("Mar", "Hol", "Wen", "Thorn", "Ash", "Brack", "Cald", "Elm", "Fen", "Hart", "Kel", "Lang", "Pem", "Rud", "Stav",
      "Tarn", "Whit", "Yar", "Dun", "Gar"),
     ("", "el", "er", "in", "low", "mere", "wick", "den", "ing", "bur"),
     ("ton", "ford", "wold", "haven", "stead", "bury", "combe", "leigh", "mouth", "thorpe"),
     ("ley", "man", "son", "well", "field", "worth", "by", "ridge", "cott", "ham")),
    (("Dvor", "Brez", "Chál", "Hruš", "Jar", "Krum", "Lud", "Mil", "Nov", "Štěp", "Rad", "Slav", "Týn", "Vlád", "Zbý",
      "Žel", "Bor", "Kost", "Prách", "Holý"),
     ("", "ov", "en", "ič", "áv", "or", "in", "ěl", "ot", "an"),
     ("ice", "ov", "ín", "grad", "sko", "nica", "any", "čany", "bor", "ec"),
     ("ák", "ek", "ovák", "ský", "ička", "íček", "ar", "ovic", "ář", "ata")),
    (("Sal", "Mont", "Ver", "Cas", "Bel", "Tor", "Lun", "Ner", "Pal", "Ros", "Val", "Cir", "Dar", "Fió", "Guá",
      "Mend", "Or", "Quí", "Ram", "Zú"),
     ("", "a", "el", "an", "os", "ar", "in", "ur", "al", "em"),
     ("era", "ona", "ella", "osa", "mar", "inho", "aldo", "ares", "uela", "ezão"),
     ("eira", "ado", "ón", "ez", "ari", "etti", "oni", "ães", "anti", "era")),
    (("Ås", "Bjør", "Drang", "Ey", "Fjäl", "Grøn", "Hav", "Järv", "Kvæl", "Löv", "Møl", "Nord", "Ods", "Ra", "Skar",
      "Ty", "Ul", "Vän", "Ydr", "Ør"),
     ("", "ne", "a", "els", "in", "ar", "de", "um", "or", "is"),
     ("vik", "sund", "holm", "by", "dal", "heim", "fors", "havn", "ö", "strand"),
     ("qvist", "gaard", "sen", "lund", "ström", "rud", "vold", "berg", "ås", "mark")),
)
GIVEN = ("Adela", "Alban", "Anouk", "Ansel", "Arvid", "Beata", "Belén", "Blanka", "Bruno", "Calla", "Casimir",
         "Celeste", "Cyril", "Dagny", "Dario", "Delphine", "Edda", "Elio", "Eloïse", "Emeric", "Enid", "Esben",
         "Fausta", "Ferran", "Fiora", "Gerta", "Gideon", "Greta", "Hanna", "Hedwig", "Ilja", "Imre", "Ines", "Isolde",
         "Ivo", "Jakub", "Jana", "Jorun", "Josefa", "Kaja", "Kasper", "Klara", "Leander", "Lenka", "Linnea", "Lorenz",
         "Ludmila", "Magnus", "Mara", "Marek", "Maud", "Milena", "Mirko", "Nadia", "Nils", "Oda", "Oskar", "Ottilie",
         "Paloma", "Petra", "Quentin", "Radim", "Ragna", "Renata", "Rolf", "Rosalind", "Rufus", "Sabina", "Sander",
         "Selma", "Sigrid", "Silvan", "Søren", "Tancred", "Tekla", "Teodor", "Thea", "Tobias", "Ulla", "Ulrik",
         "Valda", "Vera", "Viggo", "Vit", "Walda", "Wenzel", "Xaver", "Ysolde", "Yvo", "Zdeněk", "Zita", "Zoë")
COMMON_TOWNS = ("Mending", "Gentle", "Sailing", "Early", "Warming", "Merry", "Quiet Bay", "Orange Hill", "Plain",
                "Bright", "Landing", "Clement", "Hope", "Bury Well", "Pleasant", "Fair", "Corner", "Marble", "Spring")
COUNTRIES = (("Ostrania", "Ostranian"), ("Velmark", "Velmarkian"), ("Cindoria", "Cindorian"), ("Tarnovia",
             "Tarnovian"), ("Lumeria", "Lumerian"), ("Bracken Isles", "Brackenese"), ("Quillonia", "Quillonian"),
             ("Hesperland", "Hesperlander"), ("Zantara", "Zantaran"), ("Marrowmere", "Marrowmerish"))
LANGUAGES = ("Ostric", "Velmari", "Cindoric", "Old Tarnovian")
ADJECTIVES = ("Silent", "Broken", "Distant", "Golden", "Hidden", "Last", "Long", "Lost", "Narrow", "Northern", "Pale",
              "Patient", "Quiet", "Red", "Second", "Seventh", "Slow", "Small", "Sunken", "Unfinished", "White",
              "Wooden", "Borrowed", "Burning", "Crooked", "Empty", "Frozen", "Hollow", "Iron", "Late")
NOUNS = ("Harbour", "Orchard", "Letter", "Winter", "Garden", "Mirror", "River", "Window", "Bell", "Ladder", "Lantern",
         "Meadow", "Mountain", "Night", "Ocean", "Path", "Promise", "Shadow", "Ship", "Silence", "Song", "Stair",
         "Stone", "Storm", "Summer", "Thread", "Tide", "Voyage", "Wall", "Weaver", "Well", "Wolf", "Woods", "Year",
         "Cartographer", "Clockmaker", "Ferryman", "Glassblower", "Heiress", "Beekeeper")
COMMON_TITLES = ("Away", "Between", "Enough", "Here", "Sooner", "Together", "Tomorrow", "Nothing", "Elsewhere", "Again")
BODY_PARTS = ("crowned", "breasted", "winged", "tailed", "throated", "backed", "billed", "footed")
TINTS = ("Rusty", "Azure", "Sooty", "Amber", "Pied", "Chestnut", "Emerald", "Scaly", "Spotted", "Dusky", "Rosy",
         "Ashen", "Ivory", "Cinnamon", "Barred", "Striped")
SPECIES_HEADS = {
    "bird": ("finch", "heron", "thrush", "warbler", "petrel", "owl"),
    "orchid": ("slipper orchid", "bog orchid", "moth orchid", "tree orchid"),
    "beetle": ("stag beetle", "jewel beetle", "ground beetle", "leaf beetle"),
}
GENERA = ("Velaria", "Ostrigena", "Tarnula", "Lumenia", "Cindora", "Marropis", "Quillea", "Hesperula", "Zantera",
          "Brackenia", "Sylvaris", "Nocturnella", "Albiceps", "Rupellia", "Fluvialia", "Montania")
EPITHETS = ("minor", "elegans", "borealis", "insularis", "viridis", "gracilis", "nocturna", "montana", "palustris",
            "rubra", "punctata", "solitaria", "vulgata", "marginata", "longipes", "tenebrosa")
TRADES = ("Optical Works", "Shipyard", "Press", "Trading Company", "Foundry", "Instruments", "Mills",
          "Publishing House", "Pictures", "Motor Works")
PAPERS = ("Gazette", "Courier", "Observer", "Chronicle", "Morning Post", "Herald", "Evening Star", "Ledger")
FESTIVALS = ("Music Festival", "Lantern Festival", "Harvest Fair", "Film Days", "Festival of Song", "Boat Parade")
EPONYMS = ("University", "Institute of Technology", "College of Arts", "Academy of Sciences")
PHOTOGRAPHERS = ("Harbourlight", "J. Tamsen", "Okapi1987", "Mélusine", "R. Quill", "Tern and Tide",
                 "Vostok Lens", "Ardent Plover", "Kestrel07", "Lumière du nord", "B. Halvard", "Old Ferry",
                 "Saxifrage", "Zuzana P.")
EDITORS = ("Tamsen", "Quillfeather", "AnsgarBot", "Marlowe77", "Lanternfish", "Hollyhock", "Zephyrine", "Plover")

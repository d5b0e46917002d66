import hashlib

import pytest
from PIL import Image

from pipelines.corpus.build import build_corpus
from pipelines.corpus.images import MOST_FILES, find_page_images, read_images
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput

HEADER = "file\tsha256\tauthor\tlicence\tlicence_url\tsource_url\n"


@pytest.fixture
def write_images(tmp_path):
    """Write pictures by file name (bytes, or a size to draw) and their table."""

    def write(**pictures):
        folder = tmp_path / "images"
        folder.mkdir()
        rows = ""
        for name, content in pictures.items():
            path = folder / f"{name}.jpg"
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif content is not None:
                Image.linear_gradient("L").resize(content).save(path)
            rows += f"{path.name}\t\tA. Uthor\tCC BY 4.0\thttps://l\thttps://s\n"
        (folder / "images.tsv").write_text(HEADER + rows)
        return folder / "images.tsv"

    return write


def test_a_good_picture_is_measured(write_images):
    table = write_images(kelm_bridge=(640, 480))
    (image,) = read_images(table)
    assert (image.file, image.path) == ("Kelm bridge.jpg", "kelm_bridge.jpg")
    assert (image.width, image.height, image.format, image.error) == (640, 480, "jpg", "")
    assert image.sha256 == hashlib.sha256((table.parent / image.path).read_bytes()).hexdigest()
    assert len(image.phash) == 16
    assert (image.author, image.licence) == ("A. Uthor", "CC BY 4.0")


def test_unusable_pictures_say_why(write_images):
    table = write_images(text=b"<svg/>", gone=None, cut=(300, 300), bomb=b"", changed=(60, 60))
    folder = table.parent
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:-400])
    # A header alone is enough to know the size; nothing is decoded.
    Image.new("1", (20_000, 6_000)).save(folder / "bomb.jpg", format="PNG")
    (folder / "one.jpg").symlink_to("two.jpg")
    (folder / "two.jpg").symlink_to("one.jpg")
    rows = table.read_text().replace("changed.jpg\t\t", f"changed.jpg\t{'0' * 64}\t")
    others = ["one.jpg", "../secret.jpg", f"{'a' * 300}.jpg"]
    table.write_text(rows + "".join(f"{name}\t\tA\tL\tU\tS\n" for name in others))
    errors = {image.path: image.error for image in read_images(table)}
    assert errors == {
        "bomb.jpg": "too-large",
        "changed.jpg": "sha256-mismatch",
        "cut.jpg": "undecodable",
        "gone.jpg": "missing",
        "text.jpg": "format",
        "one.jpg": "path-outside",
        "../secret.jpg": "path-outside",
        f"{'a' * 300}.jpg": "missing",
    }


@pytest.mark.parametrize("path", ["../secret.jpg", "/etc/passwd"])
def test_a_corpus_gives_no_path_outside_the_folder_of_pictures(write_images, write_dump, tmp_path, path):
    table = write_images(a=(60, 60))
    table.write_text(HEADER.replace("sha256", "path") + f"B.jpg\t{path}\tA\tL\tU\tS\n")
    build_corpus(write_dump(("Kelm", "A bridge.")), tmp_path / "out")
    with pytest.raises(ConfigError, match="lies outside"):
        Corpus.open(tmp_path / "out").image_path("B.jpg")


def test_what_a_picture_depicts_is_kept_in_the_corpus(write_images, write_dump, tmp_path):
    table = write_images(a=(60, 60), b=(60, 60))
    lines = ["a.jpg\tQ42 Q7  Q42\tA\tL\tU\tS", "b.jpg\t\tA\tL\tU\tS"]
    table.write_text(HEADER.replace("sha256", "depicts") + "\n".join(lines))
    build_corpus(write_dump(("Kelm", "{{Infobox bridge|image=a.jpg}}")), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    assert corpus.image(corpus.page(0).image).title == ("Kelm",)
    assert corpus.image_path("A.jpg") == table.parent / "a.jpg"
    assert [corpus.image(file).depicts for file in ("A.jpg", "B.jpg")] == [("Q42", "Q7"), ()]


def test_a_picture_at_hand_belongs_to_every_article_that_shows_it(write_images, write_dump, tmp_path):
    write_images(a=(60, 60), b=(70, 60), c=(80, 60))
    dump = write_dump(
        ("Kelm", "{{Infobox bridge|image=a.jpg}}\nA bridge.\n[[File:b.jpg|thumb|Its pier]]\n[[File:a.jpg|thumb]]"),
        ("Pier", "A pier.\n<gallery>\nFile:B.jpg|Of Kelm\nFile:A.jpg\n</gallery>\n[[:File:c.jpg]]"),
        ("Velm", "A town. <!-- [[File:b.jpg]] -->"),
    )
    build_corpus(dump, tmp_path / "out")
    images = [Corpus.open(tmp_path / "out").image(file) for file in ("A.jpg", "B.jpg", "C.jpg")]
    assert [(image.title, image.shown) for image in images] == [
        (("Kelm",), ("Pier",)),
        ((), ("Kelm", "Pier")),
        ((), ()),
    ]


def test_invalid_tables_are_refused(write_images):
    table = write_images(a=(60, 60))
    for said in ("Kelm", "Q0", "Q1,Q2", "q1", "P180", "Q" + "9" * 30):
        table.write_text(HEADER.replace("sha256", "depicts") + f"a.jpg\tQ1 {said}\tA\tL\tU\tS\n")
        with pytest.raises(CorruptInput, match=r"a\.jpg depicts"):
            read_images(table)
    table.write_text("file\tauthor\n")
    with pytest.raises(ConfigError, match="licence, licence_url, source_url"):
        read_images(table)


PAGE = """{{Short description|Bridge}}
[[File:First.jpg|thumb|The [[Kelm]] in [[1900]]]]
{{Infobox bridge
| name = Kelm
| image = File:kelm_bridge.jpg
| image_flag = Flag of Kelm.svg
| image_map = Kelm map.png
| owner = {{flagicon image|Flag of Fo.svg}} Fo
| photo2 = [[File:Inner.png|200px|alt=a|x]]
| flag = [[Image:Tiny.svg|20px]]
| caption = As seen in tower.jpg in 1900
}}
Text. [[image: second_one.PNG |left|220x300px|by [[A|b]]]] and again [[File:First.jpg]].
<gallery mode="packed" caption="More">
File:G1.jpg|cap [[a|b]]
g2.webp
Not a picture
</gallery>
{{multiple image
 | image1 = M1.jpg | caption1 = one
 | image2 = M2.jpg
}}
{{Wide image|Wide.jpg|900px|From afar}}
"""


def test_the_infobox_comes_first_and_the_rest_in_the_order_of_the_page():
    assert find_page_images(PAGE) == (
        "Kelm bridge.jpg", "Inner.png", "First.jpg", "Second one.PNG", "G1.jpg", "G2.webp", "M1.jpg", "M2.jpg",
        "Wide.jpg",
    )  # fmt: skip


NO_PICTURES = [
    "[[:File:A.jpg]] and [[Media:A.jpg]]",
    "<!-- [[File:A.jpg]] --> <nowiki>[[File:A.jpg]]</nowiki> <!-- <gallery>A.jpg</gallery> -->",
    "<gallery>\n<!-- A.jpg -->\nCategory:A.jpg\n</gallery>",
    "{{Infobox x|logo=A.jpg|Wappen=A.jpg|map_image=A.jpg|signature=A.svg}}",
    "{{Infobox x|name={{flagdeco|A.jpg}}}}",
    "{{Quote|image=A.jpg}} {{flagicon|A.jpg}}",
    "{{Infobox x|image=A.jpg",
    "[[File:A.svg|20px]] [[File:B.svg|x25px|a [[b]]]] [[File:C.svg|border|50x40px|d]]",
    "[[File:A.ogg]] [[File:B.webm|thumb]] [[File:C.pdf|page=2]]",
    "[[File:A|thumb]] [[File:.]] [[File:A:B.jpg]] [[File:A\ufffd.jpg]] [[File:A%7CB.jpg]]",
    "[[File:A.jpg\n|thumb]] [[File:<b>A.jpg</b>]] [[File:]] [[File:A.jpg",
    f"[[File:{'é' * 130}.jpg]]",
    "",
]


def test_what_is_no_picture_of_the_subject_is_left_out():
    assert [text for text in NO_PICTURES if find_page_images(text)] == []


PICTURES = {
    "[[File:A.jpg]] [[File:B.svg|20px]] [[File:C.jpg|250px]] [[File:D.jpg|a [[e]] |20px]]": "ACD",
    "{|\n|{{multiple image|image1=A.jpg}}\n|{{quote|B.jpg}}\n|{{gallery|File:C.jpg|cap|D.jpg}}\n|}": "ACD",
    "[[File:A.jpg]] {{Infobox x|image=B.jpg}} [[File:C.jpg]] {{Infobox y|image=D.jpg}}": "BACD",
    "[[File:%41.jpg]] [[ file : a.jpg |thumb]] [[File:B_&amp;.jpg|x]]": "AB",
}


def test_sizes_templates_and_names_are_read_each_for_its_picture():
    found = {text: "".join(name[0] for name in find_page_images(text)) for text in PICTURES}
    assert found == PICTURES


NAMESPACES = [
    ("de", "Datei"),
    ("de", "Bild"),
    ("fr", "Fichier"),
    ("ru", "Файл"),
    ("ru", "Изображение"),
    ("pl", "Grafika"),
]


def test_each_language_has_its_own_names_of_the_file_namespace():
    for language, name in NAMESPACES:
        text = f"[[{name}:A.jpg|mini]]\n<gallery>\n{name}:B.jpg|b\nFile:C.jpg\n</gallery>"
        assert find_page_images(text, language) == ("A.jpg", "B.jpg", "C.jpg")
        assert find_page_images(text) == ("C.jpg",)


# Each of these takes hours if any scan goes back over the text.
@pytest.mark.parametrize(
    "unit",
    ["[[File:", "{{infobox|image=", "{{infobox|image=a.jpg}}", "<gallery>", "<gallery>A.jpg|", "[[File:a.jpg|", " _",
     "| a = ", "{{multiple image|", "<gallery><!--", "{| {{infobox \n|}\n", "\n:#* ", "[[File:a.jpg|1px"],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "{{{{infobox|{}}}}}", "{{|{}|}}", "<gallery>{}</gallery>", "[[File:{}.jpg]]"])
def test_hostile_pages_are_read_to_the_end(unit, frame):
    assert len(find_page_images(frame.format(unit * 30_000))) <= MOST_FILES


def test_an_address_that_a_browser_would_run_is_refused(write_images):
    table = write_images(kelm_bridge=(640, 480))
    table.write_text(table.read_text().replace("https://s", "JavaScript:alert(1)"))
    with pytest.raises(CorruptInput, match=r"source_url of kelm_bridge\.jpg"):
        read_images(table)

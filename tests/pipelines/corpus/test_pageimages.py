import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.images import MOST_FILES, find_page_images

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


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_what_is_no_picture_of_the_subject_is_left_out(text):
    assert find_page_images(text) == ()


def test_a_size_that_belongs_to_the_next_picture_is_not_taken():
    text = "[[File:A.jpg]] [[File:B.svg|20px]] [[File:C.jpg|thumb|250px]] [[File:D.jpg|thumb|a [[e]] |20px]]"
    assert find_page_images(text) == ("A.jpg", "C.jpg", "D.jpg")


def test_names_are_decoded_and_normalised():
    text = "[[File:caf%C3%A9_&amp;_bar.jpg]] [[ file : Café &amp; bar.jpg |thumb]]"
    assert find_page_images(text) == ("Café & bar.jpg",)


@pytest.mark.parametrize(
    ("language", "name"),
    [("de", "Datei"), ("de", "Bild"), ("fr", "Fichier"), ("ru", "Файл"), ("ru", "Изображение"), ("pl", "Grafika")],
)
def test_each_language_has_its_own_names_of_the_file_namespace(language, name):
    text = f"[[{name}:A.jpg|mini]]\n<gallery>\n{name}:B.jpg|b\nFile:C.jpg\n</gallery>"
    assert find_page_images(text, language) == ("A.jpg", "B.jpg", "C.jpg")
    assert find_page_images(text) == ("C.jpg",)


def test_templates_in_a_table_are_read_each_by_itself():
    text = "{|\n|{{multiple image|image1=A.jpg}}\n|{{quote|B.jpg}}\n|{{gallery|File:C.jpg|cap|D.png}}\n|}"
    assert find_page_images(text) == ("A.jpg", "C.jpg", "D.png")


def test_only_the_first_infobox_comes_first():
    text = "[[File:A.jpg]] {{Infobox x|image=B.jpg}} [[File:C.jpg]] {{Infobox y|image=D.jpg}}"
    assert find_page_images(text) == ("B.jpg", "A.jpg", "C.jpg", "D.jpg")


def test_an_endless_page_of_pictures_is_cut():
    text = "".join(f"[[File:A{number}.jpg]]" for number in range(MOST_FILES + 50))
    found = find_page_images(text)
    assert (len(found), found[0], found[-1]) == (MOST_FILES, "A0.jpg", f"A{MOST_FILES - 1}.jpg")


# Each of these takes hours if any scan goes back over the text.
@pytest.mark.parametrize(
    "unit",
    ["[[File:", "{{infobox|image=", "{{infobox|image=a.jpg}}", "<gallery>", "<gallery>A.jpg|", "[[File:a.jpg|", " _",
     "| a = ", "{{multiple image|", "<gallery><!--", "{| {{infobox \n|}\n", "\n:#* ", "[[File:a.jpg|1px"],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "{{{{infobox|{}}}}}", "{{|{}|}}", "<gallery>{}</gallery>", "[[File:{}.jpg]]"])
def test_hostile_pages_are_read_to_the_end(unit, frame):
    assert len(find_page_images(frame.format(unit * 30_000))) <= MOST_FILES


@given(
    st.lists(st.sampled_from(["[[File:", "A.jpg", "]]", "|", "{{infobox x", "}}", "image=", "<gallery>", "</gallery>",
                              "\n", "20px", "<!--", "-->", "{|", "|}", "é", "[", "_", ":", "%"]), max_size=30)
    | st.lists(st.text(max_size=10), max_size=8)
)  # fmt: skip
def test_any_text_gives_distinct_names_of_pictures(parts):
    found = find_page_images("".join(parts))
    assert len(set(found)) == len(found)
    assert all(name and name == name.strip() and name.isprintable() and "." in name for name in found)

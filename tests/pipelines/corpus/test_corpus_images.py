import hashlib

import pytest
from PIL import Image

from pipelines.corpus.build import build_corpus
from pipelines.corpus.images import normalise_file, read_images
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError

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
    (image,) = read_images(table, {"Kelm bridge.jpg": ["B", "A"]})
    assert (image.file, image.path, image.title) == ("Kelm bridge.jpg", "kelm_bridge.jpg", ("A", "B"))
    assert (image.width, image.height, image.format, image.error) == (640, 480, "jpg", "")
    assert image.sha256 == hashlib.sha256((table.parent / image.path).read_bytes()).hexdigest()
    assert len(image.phash) == 16
    assert (image.author, image.licence) == ("A. Uthor", "CC BY 4.0")


def test_unusable_pictures_say_why(write_images):
    table = write_images(text=b"<svg/>", gone=None, cut=(300, 300), bomb=b"")
    cut = table.parent / "cut.jpg"
    cut.write_bytes(cut.read_bytes()[:-400])
    # A header alone is enough to know the size; nothing is decoded.
    Image.new("1", (20_000, 6_000)).save(table.parent / "bomb.jpg", format="PNG")
    errors = {image.file: (image.error, image.format) for image in read_images(table, {})}
    assert errors == {
        "Bomb.jpg": ("too-large", ""),
        "Cut.jpg": ("undecodable", ""),
        "Gone.jpg": ("missing", ""),
        "Text.jpg": ("format", ""),
    }


def test_a_changed_picture_is_noticed(write_images):
    table = write_images(a=(60, 60))
    table.write_text(table.read_text().replace("\t\t", f"\t{'0' * 64}\t"))
    assert read_images(table, {})[0].error == "sha256-mismatch"


def test_a_path_outside_the_folder_is_refused(write_images):
    table = write_images(a=(60, 60))
    table.write_text(HEADER.replace("sha256", "path") + "b.jpg\t../secret.jpg\tA\tL\tU\tS\n")
    assert read_images(table, {})[0].error == "path-outside"


@pytest.mark.parametrize("path", ["../secret.jpg", "/etc/passwd"])
def test_a_corpus_gives_no_path_outside_the_folder_of_pictures(write_images, write_dump, tmp_path, path):
    table = write_images(a=(60, 60))
    table.write_text(HEADER.replace("sha256", "path") + f"B.jpg\t{path}\tA\tL\tU\tS\n")
    build_corpus(write_dump(("Kelm", "A bridge.")), tmp_path / "out")
    with pytest.raises(ConfigError, match="lies outside"):
        Corpus.open(tmp_path / "out").image_path("B.jpg")


def test_missing_columns_are_named(tmp_path):
    (tmp_path / "images.tsv").write_text("file\tauthor\n")
    with pytest.raises(ConfigError, match="licence, licence_url, source_url"):
        read_images(tmp_path / "images.tsv", {})


def test_file_names_are_normalised():
    names = ["File:kelm_bridge.jpg", "image: a b.png", "Éa.svg"]
    assert [normalise_file(name) for name in names] == ["Kelm bridge.jpg", "A b.png", "Éa.svg"]


def test_a_corpus_knows_its_pictures(write_images, write_dump, tmp_path):
    table = write_images(kelm_bridge=(640, 480))
    build_corpus(write_dump(("Kelm", "{{Infobox bridge|image=kelm_bridge.jpg}}")), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    page = corpus.page(0)
    assert corpus.image(page.image).title == ("Kelm",)
    assert corpus.image_path(page.image) == table.parent / "kelm_bridge.jpg"
    assert not page.image_free

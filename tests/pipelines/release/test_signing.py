"""A signature over a release's manifest: by ssh-keygen, of somebody who may, over these very bytes."""

import shutil
import subprocess

import pytest

from pipelines.cli.commands import check_author, read_root
from pipelines.errors import ConfigError, GateNotMet
from pipelines.ids import digest_file
from pipelines.release.manifest import MANIFEST, SIGNATURE, check_release_files
from pipelines.release.publish import publish_releases
from pipelines.release.signing import NAMESPACE, check_signature, sign_release
from pipelines.release.verify import VerifyReport
from tests.pipelines.release.tampering import edit_manifest

NEEDS_KEYGEN = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


@pytest.fixture
def folder(tmp_path, material, context):
    (release, *_) = publish_releases(tmp_path, *material, context)
    return release.path


@pytest.fixture
def keys(tmp_path):
    """Two keys, and a file that allows the first one alone."""
    for name in ("ours", "theirs"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name)], check=True
        )
    public = (tmp_path / "ours.pub").read_text("utf-8")
    (tmp_path / "signers").write_text(f'data@example.org namespaces="{NAMESPACE}" {public}', "utf-8")
    return tmp_path


@NEEDS_KEYGEN
def test_who_signed_is_named_and_the_signature_is_in_no_digest(folder, keys):
    root = digest_file(folder / MANIFEST)
    assert sign_release(folder, keys / "ours") == folder / SIGNATURE
    told = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(keys / "ours.pub")], check=True, capture_output=True, text=True
    )
    assert check_signature(folder, keys / "signers") == f"ED25519 key {told.stdout.split()[1]} of data@example.org"
    assert digest_file(folder / MANIFEST) == root
    check_release_files(folder)


@NEEDS_KEYGEN
def test_a_manifest_that_was_sealed_anew_is_not_signed(folder, keys):
    sign_release(folder, keys / "ours")
    edit_manifest(git_commit="f" * 12)(folder)
    with pytest.raises(GateNotMet, match=r"not data@example\.org's over this manifest"):
        check_signature(folder, keys / "signers")


@NEEDS_KEYGEN
def test_a_key_that_may_not_sign_does_not_count(folder, keys):
    sign_release(folder, keys / "theirs")
    with pytest.raises(GateNotMet, match="nobody that signers allows made it"):
        check_signature(folder, keys / "signers")


@NEEDS_KEYGEN
def test_a_signature_for_something_else_does_not_count(folder, keys):
    path = folder / MANIFEST
    subprocess.run(["ssh-keygen", "-Y", "sign", "-q", "-n", "file", "-f", str(keys / "ours"), str(path)], check=True)
    with pytest.raises(GateNotMet, match="signature: "):
        check_signature(folder, keys / "signers")


@NEEDS_KEYGEN
def test_a_release_that_is_not_whole_is_not_signed(folder, keys):
    (folder / "README.md").chmod(0o644)
    (folder / "README.md").write_text("another card", "utf-8")
    with pytest.raises(GateNotMet, match=r"README\.md has changed"):
        sign_release(folder, keys / "ours")


@NEEDS_KEYGEN
def test_a_key_that_others_may_read_has_a_remedy(folder, keys):
    (keys / "ours").chmod(0o644)
    (keys / "ours.pub").unlink()
    with pytest.raises(ConfigError, match=r"others may read it: chmod 600 .*ours"):
        sign_release(folder, keys / "ours")


def test_a_program_that_may_not_be_run_is_said(folder, tmp_path, monkeypatch):
    (tmp_path / "ssh-keygen").touch(0o644)
    (tmp_path / "key").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="ssh-keygen cannot be called"):
        sign_release(folder, tmp_path / "key")


def test_what_is_missing_is_said(folder, tmp_path, monkeypatch):
    (tmp_path / "signers").touch()
    with pytest.raises(GateNotMet, match=r"there is no manifest\.json\.sig"):
        check_signature(folder, tmp_path / "signers")
    with pytest.raises(ConfigError, match="no file of allowed signers"):
        check_signature(folder, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="there is no key"):
        sign_release(folder, tmp_path / "nokey")
    (tmp_path / "key").touch()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match=r"ssh-keygen cannot be called .*; it comes with OpenSSH"):
        sign_release(folder, tmp_path / "key")


def test_a_root_is_compared_and_a_signature_asked_for(folder, tmp_path):
    (tmp_path / "signers").touch()
    root = digest_file(folder / MANIFEST)
    report = VerifyReport("vqa", "1.0.0-0a1b2c3d", 1, 1, (), root=root)
    (held,) = check_author([report], folder, tmp_path, root, None)
    assert held.passed
    (held,) = check_author([report], folder, tmp_path, "0" * 64, tmp_path / "signers")
    assert [problem.where for problem in held.problems] == [SIGNATURE, MANIFEST]
    assert not held.passed


def test_a_root_is_64_digits_of_one_release(folder):
    assert read_root("", None) == ""
    assert read_root(f" sha256:{'A' * 64}", folder) == "a" * 64
    with pytest.raises(ConfigError, match="is no sha256"):
        read_root("1.0.0-0a1b2c3d", folder)
    with pytest.raises(ConfigError, match="name its folder"):
        read_root("a" * 64, None)

from pathlib import Path

import pytest

from pipelines.errors import ConfigError
from pipelines.files import check_shared_memory, find_file_system

MOUNTED = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:26 / /home/scratch rw master:1 propagate_from:2 - xfs /dev/vdb rw
32 22 0:27 / /media/a\040share rw - cifs //server/share rw
33 22 0:28 / /mnt rw - ext4 /dev/vdc rw
34 33 0:29 / /mnt rw - fuse.sshfs host:/ rw
damaged line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/work", "ext4"),
        ("/home", "nfs4"),
        ("/home/ana/workspace", "nfs4"),
        ("/homes/ana", "ext4"),
        ("/home/scratch/ana", "xfs"),
        ("/media/a share/workspace", "cifs"),
        ("/mnt/workspace", "fuse.sshfs"),
    ],
)
def test_the_innermost_and_latest_mount_decides(folder, kind):
    assert find_file_system(Path(folder), MOUNTED) == kind


def mount(tmp_path, kind):
    """Write a list of mounts in which a folder below ``tmp_path`` is of a kind."""
    path = tmp_path / "mountinfo"
    path.write_text(f"22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:25 / {tmp_path.resolve()} rw - {kind} source rw\n")
    return path


SHARED = ("lustre", "fuse.sshfs")


@pytest.mark.parametrize("kind", SHARED)
def test_a_file_system_that_is_not_known_to_be_local_is_refused_by_name(tmp_path, kind):
    with pytest.raises(ConfigError, match=rf": {kind} is not known to be local.*PostgreSQL.*--workspace"):
        check_shared_memory(tmp_path / "replies", mount(tmp_path, kind))


def test_a_link_to_a_network_file_system_is_seen_through(tmp_path):
    (tmp_path / "far").mkdir()
    mounts = mount(tmp_path / "far", "nfs4")
    (tmp_path / "near").symlink_to(tmp_path / "far")
    with pytest.raises(ConfigError, match="nfs4"):
        check_shared_memory(tmp_path / "near", mounts)

"""Hosts on one machine: each is a mount, a network and a PID namespace with its own /tmp, home and name.

The harness itself runs in such namespaces (``make test-ray`` starts it there), so what it starts is seen by nobody else
and ends with it. In its network it is the switch: hosts hang on a bridge, and it has an address there, too.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BRIDGE = "synth0"
SWITCH = "10.77.0.1"
"""Address of the harness."""
SHARED = Path("/mnt/shared")
"""The one folder that all hosts share; small, so that a test can fill it."""
OWN = ("/tmp", "/root", "/dev/shm", "/mnt/own")
"""Folders that every host has of its own."""
ROOT = Path(__file__).resolve().parents[2]
KEPT = (ROOT, Path(sys.prefix), Path(sys.base_prefix))
"""What hosts see of the folders that those hide: the code and its Python, as if each had installed them."""
OWN_FOLDER = """
hide() {
    mkdir -p "$1" /mnt/hidden
    mount --rbind "$1" /mnt/hidden
    mount -t tmpfs none "$1"
    for kept in $KEPT; do
        case "$kept" in "$1"/*)
            mkdir -p "$kept"
            mount --bind "/mnt/hidden${kept#"$1"}" "$kept"
        esac
    done
    umount --lazy /mnt/hidden
}
"""


def is_alone() -> bool:
    """Whether this process is in a network of its own, where it may make bridges."""
    return os.geteuid() == 0 and {name for _, name in socket.if_nameindex()} == {"lo"}


def call(*command: object) -> str:
    """Run a command to its end and return its output; it must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr.strip()}"
    return done.stdout


def open_switch(megabytes: int = 300) -> None:
    """Make the bridge of all hosts, and the folder that they share with its size."""
    call("mount", "-t", "tmpfs", "none", "/mnt")
    SHARED.mkdir()
    call("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", SHARED)
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", BRIDGE, "type", "bridge")
    call("ip", "address", "add", f"{SWITCH}/24", "dev", BRIDGE)
    call("ip", "link", "set", BRIDGE, "up")


@dataclass
class Host:
    """A host with processes; all of them end when it is switched off."""

    name: str
    number: int
    """Its address is 10.77.0.number."""
    logs: Path
    root: "subprocess.Popen[bytes]" = field(init=False)
    """The command that made the namespaces; its only child is their first process."""

    def __post_init__(self) -> None:
        self.switch_on()

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def first(self) -> int:
        """Process 1 of the host, as the harness counts processes."""
        (child,) = list_children(self.root.pid)
        return child

    def switch_on(self) -> None:
        """Make the namespaces, plug the cable in, and mount what the host has of its own."""
        kinds = ("--mount", "--net", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc")
        hidden = "\n".join(f"hide {folder}" for folder in OWN)
        script = (
            f"set -e\n{OWN_FOLDER}{hidden}\nhostname {self.name}\nip link set lo up\necho ready\nexec sleep infinity"
        )
        kept = {"KEPT": " ".join(map(str, KEPT))}
        command = ["unshare", *kinds, "sh", "-c", script]
        self.root = subprocess.Popen(command, env=os.environ | kept, stdout=subprocess.PIPE)
        assert self.root.stdout is not None
        with self.root.stdout as said:
            assert said.readline() == b"ready\n", f"{self.name}: no namespaces"
        cable = f"veth{self.number}"
        call("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", self.first)
        call("ip", "link", "set", cable, "master", BRIDGE)
        call("ip", "link", "set", cable, "up")
        self.call("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.call("ip", "link", "set", "eth0", "up")

    def switch_off(self) -> None:
        """End every process of the host at once, as a power cut does."""
        os.kill(self.first, signal.SIGKILL)
        self.root.wait()

    def enter(self, command: Sequence[object]) -> list[str]:
        """Return the command line that runs a command on this host."""
        where = ("nsenter", "--target", self.first, "--mount", "--net", "--pid", "--uts", "--")
        return [str(part) for part in (*where, *command)]

    def call(self, *command: object) -> str:
        """Run a command here to its end; it must succeed."""
        return call(*self.enter(command))

    def start(self, command: Sequence[object], environment: Mapping[str, str], log: str) -> "subprocess.Popen[bytes]":
        """Start a command here; what it says is added to a log of that name."""
        with (self.logs / f"{self.name}-{log}.log").open("ab") as out:
            return subprocess.Popen(
                self.enter(command), env=dict(environment), stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )

    def find_processes(self, *words: str) -> list[int]:
        """Return the processes of this host whose command line holds one of the words, as the harness counts them."""
        return [pid for pid in list_descendants(self.first) if any(word in read_command(pid) for word in words)]


def read_command(pid: int) -> str:
    """Return a process's command line; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def list_children(pid: int) -> list[int]:
    """Return a process's children."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def list_descendants(first: int) -> Iterator[int]:
    """Yield all processes of the PID namespace of a process, itself left out: entered ones are no descendants."""
    wanted = Path(f"/proc/{first}/ns/pid").readlink()
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == first:
            continue
        try:
            inside = (path / "ns" / "pid").readlink() == wanted
        except (FileNotFoundError, ProcessLookupError):
            continue
        if inside:
            yield int(path.name)

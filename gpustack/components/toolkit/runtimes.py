"""Where each container runtime keeps its files on a node, and by which variables the toolkit is told (operator.md 7.2).

The toolkit's container mounts the folders of these files below /runtime, so each path exists twice: on the node, as
here and in the policy's `toolkit.env`, and in the container. A runtime without a socket or a drop-in folder has "".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...catalog import _data
from ..parts.common_inputs import Runtime

CONFIG_DIR = "/runtime/config-dir/"
DROP_IN_DIR = "/runtime/config-dir.d/"
SOCKET_DIR = "/runtime/sock-dir/"
NRI_SOCKET_DIR = "/runtime/nri-sock-dir/"
NRI_SOCKET = "/var/run/nri/nri.sock"


@dataclass(frozen=True, slots=True)
class RuntimeFiles:
    """The default paths on the node, and the runtime's own names for RUNTIME_CONFIG and RUNTIME_SOCKET."""

    config_env: str
    config: str
    drop_in: str = ""
    socket_env: str = ""
    socket: str = ""


FILES: dict[Runtime, RuntimeFiles] = {
    runtime: _data.made(RuntimeFiles, facts)
    for runtime, facts in _data.read(Path(__file__).with_suffix(".yaml")).items()
}

"""What each id means that is not a rule's: it is raised where something can't be read, rendered or done."""

from pathlib import Path

from ..catalog import _data

RAISED: dict[str, str] = _data.read(Path(__file__).with_suffix(".yaml"))

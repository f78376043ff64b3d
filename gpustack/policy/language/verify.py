"""`validator`: the pods that prove a node's GPUs usable, and the waiting containers of all other pods. `verify`: the
cluster held against its policy on a schedule, from inside.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from .base import Section, items, section
from .forms import refuse_as
from .node_pools import Taint
from .operand import EnvVar, ResourceRequirements, Workload
from .types import ImageReference, Text, TimeZone


class Validation(Section):
    """One of the checks."""

    env: list[EnvVar] = items()
    """Environment variables of the check; they replace built-in ones of the same name. Absent: the built-in ones."""


class Validator(Workload):
    """The pods that prove a node's GPUs usable. Image, pull secrets and resources also serve other pods that wait."""

    driver: Validation = section()
    """The check that a driver is loaded."""
    toolkit: Validation = section()
    """The check that containers get GPUs from the runtime."""
    cuda: Validation = section()
    """The check that a CUDA program runs."""
    plugin: Validation = section()
    """The check that the node offers GPUs to pods."""
    vfioPCI: Validation = section()
    """The check that GPUs are bound to vfio-pci, on nodes for passthrough."""
    vgpuManager: Validation = section()
    """The check that the vGPU manager runs, on nodes for vGPU."""
    vgpuDevices: Validation = section()
    """The check that vGPU devices exist, on nodes for vGPU."""


FIELDS = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 6)}
"""The fields of a schedule, and what each may be: as CronJobs have it, for which Sunday is 0 and not 7."""
NAMES = {
    "month": "jan feb mar apr may jun jul aug sep oct nov dec".split(),
    "weekday": "sun mon tue wed thu fri sat".split(),
}
SHORT = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
PART = re.compile(r"(?:[*?]|(\w+)(?:-(\w+))?)(?:/(\d+))?")


def _schedule(value: str) -> str:
    """VALUE, or a refusal of a schedule that the API server would refuse."""
    words = value.split()
    if value in SHORT:
        return value
    if len(words) != len(FIELDS):
        raise refuse_as("schedule", "words", value=repr(value))
    for word, (name, (least, most)) in zip(words, FIELDS.items(), strict=True):
        for part in word.split(","):
            match = PART.fullmatch(part)
            bounds = [_number(each, name) for each in (match.groups()[:2] if match else ("x",)) if each]
            step = match[3] if match else None
            wrong = step is not None and int(step) == 0
            if wrong or any(not least <= each <= most for each in bounds) or bounds != sorted(bounds):
                raise refuse_as("schedule", "field", value=repr(part), name=name, least=least, most=most)
    return value


def _number(word: str, name: str) -> int:
    """WORD of the field NAME as a number, -1 where it is none."""
    if word.lower() in NAMES.get(name, ()):
        return NAMES[name].index(word.lower()) + FIELDS[name][0]
    return int(word) if word.isascii() and word.isdigit() else -1


class Acceptance(Section):
    """A longer test of new nodes, before anybody uses them: `gpustack verify --acceptance` runs it."""

    taint: Taint
    """The taint with which the platform brings up nodes, taken away once the test has passed. Pods of the stack must
    tolerate it."""
    image: ImageReference
    """The image with the test, such as one with DCGM's diagnostics."""
    command: Annotated[list[Text], Field(min_length=1)]
    """What runs in it, with all GPUs of the node: `[dcgmi, diag, -r, "3"]`. Exit code 0: it has passed."""
    seconds: Annotated[int, Field(ge=60, le=86400)] = 3600
    """After how many seconds the node is given up, from a minute to a day. Absent: 3600."""


class Verify(Section):
    """`gpustack verify` as a CronJob, in the reconciler's image, with a right to list and no other; and what new nodes
    are tried with."""

    schedule: Annotated[str, AfterValidator(_schedule)] | None = None
    """When it looks, as CronJobs have it, such as "17 * * * *". Absent: never."""
    timeZone: TimeZone = "UTC"
    """Time zone of `schedule`, such as Europe/Berlin. Absent: UTC."""
    resources: ResourceRequirements | None = None
    """CPU and memory of its pod. Absent: requests of 50m and 128Mi, a limit of 1Gi of memory."""
    acceptance: Acceptance | None = None
    """The test of new nodes. Absent: none."""

"""`python -m gpustack.live FOLDER`: verify in the cluster, against what was rendered into FOLDER (components/verify/).

Solves: whoever verifies from outside needs a login to every cluster. Here it is a Job with a right to list, in the
reconciler's image; what it finds is its log, the end of which the kubelet keeps as its message, and its exit code: 0
without errors, 2 with some, 1 where it could not look. A Job is gone before anything scrapes it, so the alerts read
what kube-state-metrics tells of the CronJob.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from ..api.expectations import Expectation
from ..model import Finding
from ..reconciler.shell.client import Client, configuration
from ..reconciler.shell.cluster import ApiError
from .state import look
from .verify import verify

EXPECTED, RENDERED = "expected.yaml", "rendered.yaml"
NAME = "gpustack-verify"


def read(folder: Path) -> Expectation:
    """What is expected, of the files in FOLDER."""
    (expected,), rendered = (
        [*yaml.load_all((folder / each).read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))]
        for each in (EXPECTED, RENDERED)
    )
    return msgspec.convert({**expected, "rendered": rendered}, Expectation)


def told(findings: Iterable[Finding]) -> str:
    """FINDINGS in lines, with their numbers at the end."""
    lines, numbers = list[str](), Counter[str]()
    for each in findings:
        numbers[each.severity] += 1
        lines += [f"{each.severity} {each.rule}: {each.what}", *([f"  at: {each.path}"] if each.path else [])]
        lines += [f"  why: {each.why}", f"  do: {each.remedy}"]
    total = ", ".join(f"{number} {severity}{'s' * (number > 1)}" for severity, number in numbers.items())
    return "\n".join([*lines, total or "nothing to say"])


def main(folder: Path) -> int:
    """Verify against FOLDER, and print what comes of it; the exit code."""
    try:
        expected = read(folder)
        client = Client(configuration(os.environ.get("KUBECONFIG", "")), NAME)
        findings = verify(expected, asyncio.run(look(client, expected.kinds)))
        text, code = told(findings), 2 if any(each.severity == "error" for each in findings) else 0
    except (ApiError, OSError, yaml.YAMLError, msgspec.MsgspecError, TypeError, ValueError) as error:
        text, code = f"the cluster could not be looked at: {type(error).__name__}: {error}", 1
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

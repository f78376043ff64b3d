"""What feeds the components is computed without Node: a warm render never starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gpustack

PACKAGE = Path(gpustack.__file__).parent
FEEDING = sorted(
    "gpustack." + str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".")
    for path in [*(PACKAGE / "components").rglob("*_inputs.py"), PACKAGE / "components" / "registry.py"]
)


def test_inputs_import_no_construct() -> None:
    """No module of inputs imports cdk8s, constructs or jsii, by whatever way."""
    assert len(FEEDING) > 25
    code = (
        "import sys, importlib; "
        "sys.modules.update(dict.fromkeys(('cdk8s', 'constructs', 'jsii'))); "
        "[importlib.import_module(name) for name in sys.argv[1:]]"
    )
    done = subprocess.run([sys.executable, "-c", code, *FEEDING], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr

"""What all tests share: cdk8s runs on the Node that the product would choose, and no example has a deadline.

A deadline in wall time fails where other programs run; what must be fast is measured by tests/bench.
"""

from __future__ import annotations

import os

from hypothesis import settings

from gpustack.compiler import node

node.configure(os.environ)
settings.register_profile("gpustack", deadline=None)
settings.load_profile("gpustack")

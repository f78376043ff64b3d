"""What the nodes of a pool serve, for inputs that ask for nothing else of policy/workloads.py."""

from __future__ import annotations

from ...policy.workloads import Workload as Workload
from ...policy.workloads import default_workload as default_workload
from ...policy.workloads import kata as kata
from ...policy.workloads import sandbox as sandbox
from ...policy.workloads import serving as serving
from ...policy.workloads import workload as workload

"""The objects by which nodes are made and let in.

Solves: Karpenter takes what an instance type has for what a node offers, and for shared or cut GPUs would start a node
for each pod, or none. A NodeOverlay says what the device plugin makes of them. A MachineConfig is rendered, so that who
reviews sees what is written onto hosts.
"""

from ..component import Given


class Nodes(Given):
    """After what nodes need: a node that comes up finds it there, and nothing waits for programs of others."""

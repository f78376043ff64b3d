"""What a change does to nodes and workloads, in words and numbers.

::

    tiers.py      how much a change may do, from 0 (refused) to 5 (routine)
    rule.py       what a rule of impact is, and the list of all
    subject.py    what a rule looks at: the changes of one cluster, and the policies of both sides where they are known
    nodes.py      which nodes a DaemonSet's pods are on, and how fast they may be taken out of service
    drivers.py    IMP1xx: driver pods
    pods.py       IMP2xx: the other pods, their images and what they may do to their node
    gpus.py       IMP3xx: what nodes advertise, and sharing
    mig.py        IMP3xx: MIG layouts, and who brings them to the nodes
    rights.py     IMP4xx: who may do what
    objects.py    IMP5xx: what goes, and what the API server or an engine can't change in place
    metrics.py    IMP6xx: what monitoring sees
    versions.py   IMP7xx: releases, driver branches and Kubernetes
    engines.py    IMP8xx: from where, to where and how Argo CD or Flux syncs
    effects.py    many clusters -> each effect once, with the clusters and nodes it is in, and its digests
    classifier.py IMP9xx: the tier of every change; what no rule knows, held against the lists of what is harmless
    origin.py     whether a change comes from a field of the policy, a component or from elsewhere
    table.py      the lists of fields with their tiers; leaves.py, bounds.py: values, and how far they may go

A rule is a generator over one cluster's changes. It finds out what a reviewer would have to know by heart without it:
what a DaemonSet's update strategy does not protect from, for example.
"""

"""The catalogue: facts about releases, platforms, GPUs, drivers, metrics and fields, as data files with typed access.

Facts change with every release of the operator and every new GPU; rules rarely do. So facts stand in `data/`, with a
comment that names their source, and the modules here read them into small frozen values:

    releases       what the operator's chart of a release writes, images included
    platforms      what a platform (EKS, GKE, k3s, Talos, ...) changes about these defaults, and what it asks of nodes
    gpus, mig      GPU products, MIG profiles, their placements and the operator's default MIG configuration
    drivers, oses  driver branches, kernel modules, minimum versions; operating systems, image tags, directories
    dcgm           DCGM fields and the exporter's default counters
    alerts         alerts about GPUs: when each fires, and what of it a policy may change
    plugin_config  the device plugin's configuration file
    nfd            what rules of node feature discovery can ask about
    fields         every field of the operator's custom resources
    chart          what values of the operator's chart are called in the spec
    object_kinds   where kinds have what rules look at, which are rendered at all, which CRDs there are
    texts          files that are the value of a ConfigMap as they are
    kubernetes     Kubernetes versions, and where their schemas lie

Reading is lazy and cached per process, one file for one question: a render that has no MIG never reads MIG data.
Nothing here knows policies, and nothing validates at run time what tests/catalog/ proves of the data once (pydantic
was rejected for that reason: it would cost more than all reading together). What callers get is read-only, unless a
docstring says that it is a fresh copy.
"""

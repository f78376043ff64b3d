"""What differs between two renders, as people review it: objects and fields, each change once for all its clusters.

::

    sides.py     a folder, a Git revision or the policies of now -> for each cluster, its objects
    own.py       names that are a cluster's own, so that they don't count as differences from the next one
    fields.py    two bodies -> changes of fields: lists by their keys, quantities by value
    objects.py   two sets of objects -> added, removed, changed, renamed, moved
    groups.py    the changes of many clusters -> each change with the clusters it is in
    present.py   changes as lines that people read; engine_fold.py: another engine as one of them
    ranges.py    a list of clusters as people write it: prod-eu-1..12

Everything below is pure but sides.py. A property test: the old side and the groups give the new side.
"""

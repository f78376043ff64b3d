"""What a change means: between two renders (diff/, impact/, accepted.py, report/), between two releases (releases.py),
between rings (rings.py), of nodes and drivers (upgrade.py), and to files beside policies (steering.py). And what
clusters run: their images (images/), and what an advisory names of it (advisory.py).
"""

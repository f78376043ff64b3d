"""What a change means: between two renders (diff, impact, accepted, report), releases or rings, of nodes and drivers
(upgrade), and of files beside policies (steering). And what clusters run: images, and what advisories name of it."""

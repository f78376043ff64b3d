"""Which images a fleet needs: what the rendered objects name (checks.objects.images), and whose they are.

Taken from the objects, not from the policy: what a cluster pulls is what its manifests say, `extraObjects` and texts
in ConfigMaps included. The policy is asked only for what no manifest says: which image a mirror's stands for, and for
which node pools a driver was built.
"""

"""What GitOps engines are told: marks on rendered objects, and the engines' own objects. Pure functions, no cdk8s."""

FOLDER = ".gitops"
"""Where the engines' objects are below dist/: no cluster can be called so, and no engine syncs it along with one."""

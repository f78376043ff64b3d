"""What GitOps engines are told: marks on rendered objects, and the engines' own objects. Pure functions, no cdk8s."""

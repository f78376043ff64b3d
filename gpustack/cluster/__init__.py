"""What a policy means: who gets which driver, MIG layout and sharing, and what the nodes offer then."""

"""What components are made of: pods, DaemonSets, RBAC, waiting containers, and inputs that many share."""

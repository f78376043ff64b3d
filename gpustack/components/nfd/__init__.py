"""Node feature discovery, and the rules by which it labels GPU nodes."""

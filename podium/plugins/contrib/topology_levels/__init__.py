"""Groups of pods near each other: within one rack, or else one block, by an ordered list of node labels."""

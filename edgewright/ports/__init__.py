"""What Edgewright needs of the world, as small protocols. Adapters implement them; fakes prove them."""

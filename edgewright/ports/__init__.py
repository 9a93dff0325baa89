"""What Edgewright needs from the outside world, as small protocols. Adapters and test fakes implement them."""

"""What edges tell of themselves."""

"""Years of one cluster in minutes: what they cost, what stays bounded, and whether the timeline tells all of it."""
